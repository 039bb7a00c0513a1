from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import (
    Contradiction,
    MalformedLine,
    MissingFile,
    UnknownColumn,
    Unwritable,
    WrongType,
)
from recbias.formats.ratings import (
    ResponseRatings,
    SheetItem,
    digest_response,
    guard_formula,
    read_ratings,
    read_sheets,
    write_ratings,
    write_sheets,
)

TEXTS = {f"sentence-{number}": f"Text {number}" for number in range(20)}
QUESTION = "biased"

RATINGS = np.array([[1.0, 0.0, np.nan], [np.nan, 0.0, np.nan]])
ROW = {"query_id": "1", "response_sha256": "a", "models": ["m"], "rater": "x", "question": "q"}


def fill(path: Path, answers: dict[str, str]) -> Path:
    """Write answers by text into a sheet, as a rater does."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    filled = [rows[0], *([item, text, answers.get(text, "")] for item, text, _ in rows[1:])]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(filled)
    return path


def write(
    folder: Path, n_raters: int = 2, texts: Mapping[str, str] = TEXTS, question: str = QUESTION
) -> list[Path]:
    items = [SheetItem({"text": text}, {"id": name}) for name, text in texts.items()]
    return write_sheets(folder, items, question, n_raters, np.random.default_rng(1))


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
    ratings = dict(zip(answers.key["id"], answers.ratings.T, strict=True))
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
    with pytest.raises(Unwritable, match="cannot be written") as caught:
        write(tmp_path / "key.jsonl" / "below")
    assert caught.value.remedy


def test_a_spreadsheet_may_change_numbers_spaces_and_columns(tmp_path: Path) -> None:
    texts = {"a": "=1+1 is\x07 a  sum\n\n- yes", "b": "'quoted'", "c": "", "d": "half \udc80"}
    (path,) = write(tmp_path, 1, texts)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert {row[1] for row in rows[1:]} == {
        *("'=1+1 is a sum\n- yes", "'quoted'", "", "half \\udc80")
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        saved = csv.writer(file, lineterminator="\r\n")
        saved.writerow(["comment", *rows[0]])
        saved.writerows(["why", item, text.lstrip("'") + " ", "1.0"] for item, text, _ in rows[1:])
    answers = read_sheets([path], tmp_path / "key.jsonl", QUESTION)
    assert answers.ratings.tolist() == [[1.0] * 4]


@pytest.mark.parametrize("start", [*"=+-@＝", "\t", "\r", "\n"])
def test_no_cell_of_a_sheet_is_a_formula(start: str) -> None:
    assert guard_formula(f"{start}cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0"


def test_the_key_says_what_an_item_is_and_no_sheet_does(tmp_path: Path) -> None:
    write(tmp_path)
    key = [json.loads(line) for line in (tmp_path / "key.jsonl").read_text().splitlines()]
    assert [row["id"] for row in key] == [*TEXTS]
    with pytest.raises(Contradiction, match="another column"):
        write(tmp_path / "other", question="text")


def test_a_sheet_counts_once(tmp_path: Path) -> None:
    path, other = write(tmp_path)
    other.write_bytes(path.read_bytes())
    with pytest.raises(Contradiction, match="is the same as"):
        read_sheets([path, tmp_path / "." / path.name], tmp_path / "key.jsonl", QUESTION)
    with collect_warnings() as warnings:
        read_sheets([path, other], tmp_path / "key.jsonl", QUESTION)
    assert "is the same as" in warnings[0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("item-99,{text},yes", "'item-99' is not in the key"),
        ("{item},{text},yes\n{item},{text},no", "'item-..' has two rows"),
        ("{item},{text},perhaps", "biased is 'perhaps'"),
        ("{item},{text},2", "biased is '2'"),
        ("{item},Text,yes", "the texts of 'item-..' are not those"),
    ],
)
def test_faulty_rows_are_named(tmp_path: Path, row: str, message: str) -> None:
    items, texts = read_columns(write(tmp_path)[0])
    path = tmp_path / "filled.csv"
    path.write_text(f"item,text,biased\n{row.format(item=items[0], text=texts[0])}\n")
    with pytest.raises(MalformedLine, match=message) as caught:
        read_sheets([path], tmp_path / "key.jsonl", QUESTION)
    assert caught.value.where.startswith(f"{path}:")
    assert caught.value.remedy


def test_other_files_are_refused(tmp_path: Path) -> None:
    paths = write(tmp_path)
    with pytest.raises(MissingFile):
        read_sheets([tmp_path / "absent.csv"], tmp_path / "key.jsonl", QUESTION)
    paths[0].write_text("thing,text,biased\nitem-01,a,yes\n")
    with pytest.raises(UnknownColumn, match="item"):
        read_sheets(paths[:1], tmp_path / "key.jsonl", QUESTION)


def make_ratings() -> ResponseRatings:
    digests = np.array([digest_response(text) for text in ("yes", "no", "maybe")], dtype=object)
    models = (("a",), ("a", "b"), ("b",))
    ids = np.array(["q1", "q1", "q2"], dtype=object)
    return ResponseRatings(ids, digests, models, ("first", "second"), RATINGS)


def test_ratings_are_read_as_written(tmp_path: Path) -> None:
    read = read_ratings(write_ratings(tmp_path / "ratings.jsonl", make_ratings(), "biased"))
    assert read.raters == ("first", "second")
    assert len(read) == 2  # nobody rated the third
    assert set(read.models) == {("a",), ("a", "b")}
    expected = [[1, 0, np.nan], [np.nan, 0, np.nan]]
    selected = read.select(["q1", "q1", "q2"], [" yes ", "no", "maybe"])
    assert np.array_equal(selected, expected, equal_nan=True)


def test_ratings_of_another_text_do_not_count() -> None:
    selected = make_ratings().select(["q1", "q2", "q3"], ["yes!", "yes", "yes"])
    assert np.isnan(selected).all()
    assert make_ratings().select([], []).shape == (2, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([{"rating": ""}], "no number"),
        ([{"rating": "inf"}], "no number"),
        ([{"rating": 1}, {"rating": 0}], "'x' already rated this response to '1'"),
        ([{"rating": 1}, {"rating": 0, "rater": "y", "question": "r"}], "the question is 'r'"),
        ([{"rating": 1, "rater": ""}], "rater is empty"),
    ],
)
def test_faulty_ratings_are_named(tmp_path: Path, changes: list[Any], message: str) -> None:
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(json.dumps({**ROW, **change}) + "\n" for change in changes))
    with pytest.raises(MalformedLine, match=message) as caught:
        read_ratings(path)
    assert caught.value.where == f"{path}:{len(changes)}"


def test_other_files_of_ratings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("query_id,rating\n1,1\n")
    with pytest.raises(UnknownColumn, match="response_sha256"):
        read_ratings(tmp_path / "other.csv")
    with pytest.raises(WrongType, match="JSON lines") as caught:
        write_ratings(tmp_path / "ratings.csv", make_ratings(), "biased")
    assert caught.value.remedy == "name it ratings.jsonl"
