from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, Unwritable
from recbias.formats.annotation_sheets import read_sheets, write_sheets

TEXTS = {f"sentence-{number}": f"Text {number}" for number in range(20)}
QUESTION = "biased"


def fill(path: Path, answers: dict[str, str]) -> Path:
    """Write answers by text into a sheet, as a rater does."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    filled = [rows[0], *([item, text, answers.get(text, "")] for item, text, _ in rows[1:])]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(filled)
    return path


def write(folder: Path, n_raters: int = 2) -> list[Path]:
    return write_sheets(folder, TEXTS, QUESTION, n_raters, np.random.default_rng(1))


def read_columns(path: Path) -> tuple[list[str], list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["item", "text", QUESTION]
    assert all(row[2] == "" for row in rows[1:])
    return [row[0] for row in rows[1:]], [row[1] for row in rows[1:]]


def test_sheets_are_blinded_and_shuffled(tmp_path: Path) -> None:
    (first_items, first_texts), (items, texts) = map(read_columns, write(tmp_path / "sheets"))
    assert sorted(texts) == sorted(first_texts) == sorted(TEXTS.values())
    assert texts != first_texts
    assert list(TEXTS.values()) not in (texts, first_texts)
    assert dict(zip(items, texts, strict=True)) == dict(zip(first_items, first_texts, strict=True))
    by_number = [text for _, text in sorted(zip(items, texts, strict=True))]
    assert by_number != list(TEXTS.values())
    assert not any("sentence-" in item for item in items)


def test_answers_return_to_their_texts(tmp_path: Path) -> None:
    paths = write(tmp_path)
    fill(paths[0], {text: "Yes" if text.endswith("1") else "no" for text in TEXTS.values()})
    fill(paths[1], {"Text 3": " 是 ", "Text 4": "0"})
    answers = read_sheets(paths, tmp_path / "key.jsonl", QUESTION)
    ratings = dict(zip(answers.ids, answers.ratings.T, strict=True))
    assert set(ratings) == set(TEXTS)
    assert [ratings[f"sentence-{number}"][0] for number in (1, 11, 2)] == [1, 1, 0]
    assert [ratings[f"sentence-{number}"][1] for number in (3, 4)] == [1, 0]
    assert np.isnan(answers.ratings[1]).sum() == 18


def test_other_answers_are_numbers_of_their_own(tmp_path: Path) -> None:
    (path,) = write(tmp_path, 1)
    fill(path, {"Text 5": "2"})
    scores = {"0": 0.0, "1": 1.0, "2": 2.0}
    answers = read_sheets([path], tmp_path / "key.jsonl", QUESTION, scores)
    assert np.nanmax(answers.ratings) == 2


def test_sheets_are_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(Unwritable, match="exists"):
        write(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("item-99,text,yes", "'item-99' is not in the key"),
        ("item-01,text,yes\nitem-01,text,no", "'item-01' has two rows"),
        ("item-01,text,perhaps", "biased is 'perhaps'"),
    ],
)
def test_faulty_rows_are_named(tmp_path: Path, row: str, message: str) -> None:
    write(tmp_path)
    path = tmp_path / "filled.csv"
    path.write_text(f"item,text,biased\n{row}\n")
    with pytest.raises(MalformedLine, match=message) as caught:
        read_sheets([path], tmp_path / "key.jsonl", QUESTION)
    assert caught.value.where.startswith(f"{path}:")
    assert caught.value.remedy


def test_other_files_are_refused(tmp_path: Path) -> None:
    paths = write(tmp_path)
    with pytest.raises(MissingFile):
        read_sheets([tmp_path / "absent.csv"], tmp_path / "key.jsonl", QUESTION)
    paths[0].write_text("item;text;biased\nitem-01;a;yes\n")
    with pytest.raises(UnknownColumn, match="item"):
        read_sheets(paths[:1], tmp_path / "key.jsonl", QUESTION)
