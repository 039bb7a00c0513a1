from __future__ import annotations

from pathlib import Path

import pytest

from recbias.cli.store import parse_age
from recbias.core.errors import WrongType
from support.commands import invoke_recbias, run_recbias, write_small_spec


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400.0), ("12h", 43200.0), ("30d", 2592000.0), ("2w", 1209600.0), (None, 0.0)],
)
def test_age_is_parsed_to_seconds(text: str | None, seconds: float) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["30", "d", "-3d", "3 days", ""])
def test_invalid_age_is_rejected(text: str) -> None:
    with pytest.raises(WrongType, match="is not an age"):
        parse_age(text)


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
    cleaned = run_recbias("clean", folder=tmp_path)
    assert cleaned.code == 0
    assert not sorted(results.glob("store/??/*"))
    assert (results / "small" / "latest" / "metrics.csv").is_file()
    assert invoke_recbias("run", spec, "--quiet", folder=tmp_path).code == 0
