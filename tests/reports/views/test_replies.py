from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recbias.core.errors import MissingRun
from recbias.reports.llm import build_reply_tables
from recbias.reports.run import read_run
from recbias.reports.wording import Table
from support.run_folders import RunSpec, make_run


def make_line(*ranks: tuple[str, str], **changes: Any) -> dict[str, Any]:
    """Return a reply with (title, outcome) at each rank: 10 tokens of prompt, 5 of reply."""
    parsed = [{"title": title, "outcome": outcome} for title, outcome in ranks]
    return {
        "dataset": "ml-1m",
        "model": "WOK",
        "seed": 1,
        "fold": 1,
        "query_id": "1",
        "prompt": "p",
        "reply": "r",
        "outcome": "complete",
        "parsed": parsed,
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        "cached": False,
        **changes,
    }


def build(folder: Path, *lines: dict[str, Any]) -> list[Table]:
    make_run(folder, RunSpec(models=("Random",), metrics=("HR",), users=5))
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "responses.jsonl").write_text(text, encoding="utf-8")
    return build_reply_tables(read_run(folder))


def read_rows(table: Table) -> list[tuple[str, ...]]:
    return [tuple(cell.text for cell in row) for row in table.rows]


def test_outcomes_and_tokens_are_counted_over_folds(tmp_path: Path) -> None:
    (table,) = build(
        tmp_path,
        make_line(("Heat (1995)", "matched")),
        make_line(outcome="length", cached=True),
        make_line(outcome="refusal", fold=2),
        make_line(outcome="failed", model="other", usage=None),
    )
    assert [column.title for column in table.columns] == [
        *("model", "replies", "complete", "length", "refusal", "empty", "failed"),
        *("stored before", "tokens in", "tokens out"),
    ]
    assert read_rows(table) == [
        ("WOK", "3", "1", "1", "1", "0", "0", "1", "30", "15"),
        ("other", "1", "0", "0", "0", "0", "1", "0", "0", "0"),
    ]


def test_unmatched_titles_are_counted_by_words_and_reason(tmp_path: Path) -> None:
    _, table = build(
        tmp_path,
        make_line(("No  Such Film", "unknown"), ("Heat (1995)", "watched")),
        make_line(("no such film", "unknown"), ("Dune (2021)", "newer"), ("", "missing")),
    )
    assert read_rows(table) == [
        ("WOK", "No  Such Film", "unknown", "2"),
        ("WOK", "Dune (2021)", "newer", "1"),
    ]


def test_control_characters_of_titles_are_escaped(tmp_path: Path) -> None:
    table = build(tmp_path, make_line(("a\x1b[2J\nb\ud800", "unknown")))[1]
    assert read_rows(table)[0][1] == "a\\x1b[2J\\nb\\ud800"


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"outcome": "complete", "dataset": "x"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    make_run(tmp_path)
    (tmp_path / "responses.jsonl").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(MissingRun, match="line 1 is not a reply"):
        build_reply_tables(read_run(tmp_path))


def test_repeated_requests_are_counted_over_folds(tmp_path: Path) -> None:
    build(tmp_path, make_line(("Heat (1995)", "matched")))
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    names = ("repeated_requests", "repeated_same_text", "repeated_same_titles")
    manifest["stages"] = [
        {"kind": "answer", "model": "WOK", "facts": dict(zip(names, counts, strict=True))}
        for counts in [(10, 7, 8), (10, 10, 10)]
    ]
    manifest["stages"].append(
        {"kind": "answer", "model": "other", "facts": dict(zip(names[:2], (4, 3), strict=True))}
    )
    path.write_text(json.dumps(manifest), encoding="utf-8")
    _, table = build_reply_tables(read_run(tmp_path))
    assert table.title == "Repeatability of the replies"
    assert [column.title for column in table.columns] == [
        *("model", "repeated", "same text", "same titles")
    ]
    # titles of the other model are not compared
    assert read_rows(table) == [("WOK", "20", "17", "18"), ("other", "4", "3", "")]
