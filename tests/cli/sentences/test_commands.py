from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from support.commands import CommandResult, invoke_recbias

TERMS = """\
whole_words: true
categories:
  age:
    groups: [old, young]
    targets: [[grandmother, granddaughter], [old man, young man]]
    attributes: [[slow, fast], [tired, null]]
"""
SPEC = """\
name: own
dataset:
  name: sentence_tables
  train: parts/train.jsonl
  validation: parts/validation.jsonl
  test: parts/test.jsonl
queries: {name: sentences, part: test}
models: [{name: sentence_scores, label: scores, path: scores.csv}]
metrics: [{name: perplexity_gap, a: old, b: young}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "terms.yaml").write_text(TERMS)
    posts = [f"@user{number} My grandmother {number} is slow!!" for number in range(30)]
    (tmp_path / "posts.txt").write_text("\n".join([*posts, "nothing", posts[0]]))
    return tmp_path


def invoke(folder: Path, *words: object) -> CommandResult:
    return invoke_recbias("sentences", *words, folder=folder)


def answer(path: Path, *, rater: int) -> None:
    """Fill a sheet: the first rater doubts sentences whose number ends in 5."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    for row in rows[1:]:
        row[2] = "no" if rater == 0 and "5 is" in row[1] else "yes"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


def test_a_corpus_is_built_from_posts_to_a_run(folder: Path) -> None:
    terms = ("--terms", "terms.yaml")
    collected = invoke(folder, "collect", "posts.txt", *terms, "--out", "all.jsonl")
    assert collected.code == 0, collected.err
    lines = collected.out.splitlines()
    assert {"posts: 32", "sentences: 30", "duplicates: 1"} <= set(lines)
    annotated = invoke(folder, "annotate", "all.jsonl", "--out", "sheets")
    assert annotated.code == 0, annotated.err
    sheets = [f"sheets/rater-{number}.csv" for number in (1, 2, 3)]
    for rater, sheet in enumerate(sheets):
        answer(folder / sheet, rater=rater)
    key = ("--sentences", "all.jsonl", "--key", "sheets/key.jsonl")
    agreed = invoke(folder, "agree", *sheets, *key, "--out", "biased.jsonl")
    assert agreed.code == 0, agreed.err
    # 3 of 30 sentences have two of three votes: P = 1 - 3 * (2/3) / 30 = 0.9333,
    # P_e = (87/90)^2 + (3/90)^2 = 0.93556, kappa = (0.9333 - 0.93556) / (1 - 0.93556) = -0.0345
    assert "unanimously biased: 27" in agreed.out
    assert "Fleiss' kappa: -0.03448" in agreed.out
    sizes = ("--train", 10, "--validation", 5, "--test", 10)
    divided = invoke(folder, "split", "biased.jsonl", *terms, "--out", "parts", *sizes)
    assert divided.code == 0, divided.err
    assert "sentences not used: 2" in divided.out
    rows = [json.loads(line) for line in (folder / "parts/test.jsonl").read_text().splitlines()]
    assert len(rows) == 20
    table = "".join(
        f"{row['id']},{row['pair_id']},{row['group']},{9 if row['group'] == 'old' else 7}\n"
        for row in rows
    )
    (folder / "scores.csv").write_text(f"sentence_id,pair_id,group,perplexity\n{table}")
    (folder / "own.yaml").write_text(SPEC)
    result = invoke_recbias("run", "own.yaml", "--quiet", folder=folder)
    assert result.code == 0, result.err
    assert "2.0000" in result.out


def test_pairs_are_made_from_own_sentences(folder: Path) -> None:
    table = "id,text,category\n1,The old man is slow.,age\n2,Nobody is slow.,age\n"
    (folder / "own.csv").write_text(table)
    swapped = invoke(folder, "swap", "own.csv", "--terms", "terms.yaml", "--out", "pairs.jsonl")
    assert swapped.code == 0, swapped.err
    assert swapped.out.splitlines()[:2] == ["pairs: 2", "pairs with the same text: 1"]
    options = ("--terms", "terms.yaml", "--attributes", "--out", "attributes.jsonl")
    assert invoke(folder, "swap", "own.csv", *options).code == 0
    lines = (folder / "attributes.jsonl").read_text().splitlines()
    assert json.loads(lines[1])["text"] == "The old man is fast."


def test_nothing_is_overwritten_and_other_keys_are_refused(folder: Path) -> None:
    table = "id,text\n1,One.\n2,Two.\n"
    (folder / "own.csv").write_text(table)
    assert invoke(folder, "annotate", "own.csv", "--out", "sheets", "--raters", 1).code == 0
    again = invoke(folder, "annotate", "own.csv", "--out", "sheets")
    assert (again.code, "is not overwritten" in again.err) == (2, True)
    (folder / "other.csv").write_text("id,text\n1,One.\n")
    options = ("--sentences", "other.csv", "--key", "sheets/key.jsonl", "--out", "out.jsonl")
    result = invoke(folder, "agree", "sheets/rater-1.csv", *options)
    assert (result.code, "there is no sentence '2'" in result.err) == (2, True)
    options = ("--sentences", "own.csv", *options[2:])
    empty = invoke(folder, "agree", "sheets/rater-1.csv", *options)
    assert (empty.code, "no sentence is biased" in empty.err) == (2, True)
