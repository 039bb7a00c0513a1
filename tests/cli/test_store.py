from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import invoke_recbias, run_recbias, write_small_spec


def test_clean_empties_the_store_and_keeps_run_folders(tmp_path: Path) -> None:
    spec = write_small_spec(tmp_path)
    assert invoke_recbias("run", spec, "--quiet", folder=tmp_path).code == 0
    results = tmp_path / "results"
    before = sorted(results.glob("store/??/*"))
    dry_run = invoke_recbias("clean", "--dry-run", folder=tmp_path)
    assert "would remove" in dry_run.out
    assert sorted(results.glob("store/??/*")) == before
    recent = invoke_recbias("clean", "--older-than", "1d", folder=tmp_path)
    assert "nothing to remove" in recent.out
    invalid = invoke_recbias("clean", "--older-than", "soon", folder=tmp_path)
    assert invalid.code == 2
    assert "help: write 30d, 12h, 90m or 2w" in invalid.err
    asked = invoke_recbias("clean", folder=tmp_path, typed="n\n")
    assert "They can be computed again. [y/N]" in asked.out
    unanswered = run_recbias("clean", folder=tmp_path)
    assert unanswered.code == 2
    assert "help: add --yes" in unanswered.err
    assert sorted(results.glob("store/??/*")) == before
    cleaned = invoke_recbias("clean", folder=tmp_path, typed="y\n")
    assert cleaned.code == 0
    assert not sorted(results.glob("store/??/*"))
    assert (results / "small" / "latest" / "metrics.csv").is_file()
    assert invoke_recbias("run", spec, "--quiet", folder=tmp_path).code == 0


def write_replies(folder: Path) -> Path:
    """Write two files with three replies."""
    replies = folder / "results" / "replies"
    replies.mkdir(parents=True)
    (replies / "mine.jsonl").write_text("{}\n{}\n", encoding="utf-8")
    (replies / "yours.jsonl").write_text("{}\n", encoding="utf-8")
    return replies


@pytest.mark.parametrize(
    ("options", "typed", "code", "line", "are_kept"),
    [
        (["--yes"], None, 0, "removed 3 replies", False),
        ([], "y\n", 0, "removed 3 replies", False),
        ([], "n\n", 0, "kept 3 replies", True),
        ([], "", 2, "help: add --yes", True),
        (["--yes", "--dry-run"], None, 0, "would remove 3 replies", True),
        (["--yes", "--older-than", "1d"], None, 2, "do not expire", True),
    ],
)
def test_replies_are_removed_only_if_the_user_says_so(
    tmp_path: Path, options: list[str], typed: str | None, code: int, line: str, are_kept: bool
) -> None:
    replies = write_replies(tmp_path)
    cleaned = invoke_recbias("clean", "--replies", *options, folder=tmp_path, typed=typed)
    assert cleaned.code == code
    assert line in cleaned.out + cleaned.err
    assert replies.exists() == are_kept


def test_clean_replies_keeps_stage_results(tmp_path: Path) -> None:
    assert invoke_recbias("run", write_small_spec(tmp_path), "--quiet", folder=tmp_path).code == 0
    stored = sorted((tmp_path / "results" / "store").glob("??/*"))
    assert "nothing to remove" in invoke_recbias("clean", "--replies", folder=tmp_path).out
    write_replies(tmp_path)
    assert invoke_recbias("clean", "--replies", "--yes", folder=tmp_path).code == 0
    assert sorted((tmp_path / "results" / "store").glob("??/*")) == stored
