"""Invalid input files are reported at the location of the spec that names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.commands import CommandResult, invoke_recbias

MODELS = """\
name: broken
dataset: {name: demo, n_users: 40, n_items: 60, per_user: 12}
split: {name: random, test: 0.2}
models:
  - MostPop
  - ItemKNN
"""


def run_with_models(folder: Path, *models: str) -> CommandResult:
    """Run the spec with more models, one per line from line 7."""
    lines = "".join(f"  - {model}\n" for model in models)
    (folder / "spec.yaml").write_text(f"{MODELS}{lines}metrics: [nDCG]\n", encoding="utf-8")
    return invoke_recbias("run", "spec.yaml", folder=folder)


def assert_rejected(result: CommandResult, *messages: str) -> None:
    """Assert that the faults have locations and help lines, and that no model was trained."""
    assert result.code == 2, result.err
    lines = result.err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == len(messages), result.err
    for error, message in zip(errors, messages, strict=True):
        assert error.startswith(f"error: spec.yaml:{message}"), result.err
        assert lines[lines.index(error) + 1].startswith("help: ")
    assert "Traceback" not in result.err
    assert "fit" not in result.err
    assert "failed" not in result.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.csv:1: the file is empty"),
        ("query_id,item_id,rank\n", "mine.csv: the file holds no list"),
        ("query_id,item_id,rank\n1,a,1\n1,b\n", "mine.csv:3: "),
        ("query_id,item_id,score\n1,a,2\n1,b,nan\n", "mine.csv:3: item 'b' has a score of NaN"),
        ("query_id,item_id,rank\n1,a,1\n1,a,2\n", "mine.csv:3: item 'a' occurs twice"),
    ],
)
def test_invalid_lists_are_reported_before_training(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    result = run_with_models(tmp_path, "{name: lists, label: mine, path: mine.csv}")
    assert_rejected(result, f"7:38: models[2].path: {message}")


def test_faults_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("query_id,item_id,rank\n", encoding="utf-8")
    np.save(tmp_path / "nan.npy", np.array([[1.0, np.nan]]))
    np.save(tmp_path / "i.npy", np.ones((3, 2)))
    (tmp_path / "u.txt").write_text("1\n", encoding="utf-8")
    (tmp_path / "i.txt").write_text("1\n2\n2\n", encoding="utf-8")
    result = run_with_models(
        tmp_path,
        "{name: lists, path: empty.csv}",
        "{name: vectors, users: nan.npy, items: i.npy, user_ids: u.txt, item_ids: i.txt}",
    )
    assert_rejected(
        result,
        "7:25: models[2].path: empty.csv: the file holds no list",
        "8:28: models[3].users: nan.npy: 1 vectors contain NaN",
        "8:78: models[3].item_ids: i.txt:3: id '2' already occurs on line 2",
    )
