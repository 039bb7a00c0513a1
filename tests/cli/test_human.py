from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.commands import CommandResult, invoke_recbias

SPEC = """\
name: dialogues
dataset: {name: tables, label: dialogues}
queries: {name: sentences, dialogues: dialogues.jsonl}
models:
  - {name: responses, label: before, path: before.csv}
  - {name: responses, label: after, path: after.csv}
metrics:
  - {name: human_rate, ratings: ratings.jsonl, by: category}
tests: [paired_t]
"""
SOURCES = ("before=before.csv", "after=after.csv", "--dialogues", "dialogues.jsonl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the responses of two models to 12 dialogues of two categories."""
    lines = []
    tables = {name: ["query_id,response,reference"] for name in ("before", "after")}
    for number in range(12):
        category = ("tea", "soup")[number % 2]
        context = [f"Hello {number}", "How is it?"]
        lines.append({"id": f"d{number}", "context": context, "category": category})
        tables["before"].append(f"d{number},It is bad {number},fine")
        # every third answer is the same as before
        tables["after"].append(f"d{number},It is {'bad' if number % 3 == 0 else 'good'} {number},")
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "dialogues.jsonl").write_text(text)
    for name, rows in tables.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path


def invoke(folder: Path, *words: object) -> CommandResult:
    return invoke_recbias("human", *words, folder=folder)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, question: str, judge: Callable[[str], object]) -> None:
    """Answer a sheet by the text of each response."""
    rows = read(path)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows({**row, question: judge(row["response"])} for row in rows)


def test_responses_are_rated_from_tables_to_a_run(folder: Path) -> None:
    exported = invoke(folder, "export", *SOURCES, "--out", "sheets", "--raters", 2)
    assert exported.code == 0, exported.err
    # four of the twelve answers are those of both models
    assert exported.out.splitlines()[:3] == [
        "models: before, after",
        "queries: 12",
        "responses: 20",
    ]
    sheets = [folder / f"sheets/rater-{number}.csv" for number in (1, 2)]
    rows = read(sheets[0])
    assert [*rows[0]] == ["item", "context", "response", "biased"]
    assert {row["context"] for row in rows} == {f"Hello {n}\nHow is it?" for n in range(12)}
    assert not any(word in sheets[0].read_text("utf-8") for word in ("before", "after", "tea"))
    assert [row["response"] for row in rows] != [row["response"] for row in read(sheets[1])]
    fill(sheets[0], "biased", lambda text: "yes" if "bad" in text else "no")
    fill(sheets[1], "biased", lambda text: "" if text.endswith(" 1") else "no")
    options = ("--key", "sheets/key.jsonl", "--out", "ratings.jsonl")
    imported = invoke(folder, "import", "sheets/rater-1.csv", "sheets/rater-2.csv", *options)
    assert imported.code == 0, imported.err
    lines = imported.out.splitlines()
    assert "with an answer of every rater: 18" in lines
    assert "answers missing from rater-2: 2" in lines
    result = invoke_recbias("run", "spec.yaml", "--quiet", folder=folder)
    assert result.code == 0, result.err
    (run,) = (folder / "results" / "dialogues").glob("2*")
    rows_of_run = read(run / "metrics.csv")
    values = {(row["model"], row["group"]): row["value"] for row in rows_of_run}
    # before: eleven halves and, with one rating, 1: 6.5 / 12
    assert float(values["before", ""]) == pytest.approx(6.5 / 12)
    assert float(values["after", "category=tea"]) == pytest.approx(1 / 6)  # d0 and d6 of six
    tests = read(run / "significance.csv")
    (test,) = (row for row in tests if (row["between"], row["group"]) == ("models", ""))
    assert test["n"] == "12"
    assert float(test["difference"]) == pytest.approx(4.5 / 12)
    # the run itself can be exported too, with the same items
    again = invoke(folder, "export", "dialogues", *SOURCES[2:], "--out", "again", "--raters", 1)
    assert again.code == 0, again.err
    assert "responses: 20" in again.out
    assert {row["response"] for row in read(folder / "again/rater-1.csv")} == {
        row["response"] for row in rows
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("before=absent.csv",), "absent.csv: no such file"),
        (("nowhere",), "nowhere"),
        (("before.csv", "before=after.csv"), "before has two responses to 'd0'"),
        (("before.csv", "other.csv"), "no query is answered by all models"),
        (("before.csv", "--by", "colour"), "has no label 'colour'"),
        (("before.csv", "--answers", "0"), "'0' are no answers"),
        (("before.csv", "--question", "response"), "another column"),
        (("other.csv", "--dialogues", "dialogues.jsonl"), "the query 'x' has no context"),
        ((*SOURCES, "--sample", 1, "--by", "category"), "fewer than the 2 values of category"),
    ],
)
def test_faults_of_an_export_are_named(
    folder: Path, words: tuple[object, ...], message: str
) -> None:
    (folder / "other.csv").write_text("query_id,response\nx,Yes\n")
    result = invoke(folder, "export", *words, "--out", "sheets")
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert "help: " in result.err
    assert not (folder / "sheets").exists()
