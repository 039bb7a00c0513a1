"""Interactions of other tools and their times; judgements of TREC."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset, Interactions
from recbias.core.errors import AmbiguousLayout, Contradiction
from recbias.data.tables import INTERACTIONS, Tables
from recbias.formats.interactions import (
    detect_layout,
    is_blank,
    read_interactions,
    read_qrels,
    to_seconds,
)

TREC = "q1 0 d1 1\nq1 0 d2 0\nq1 0 d3 2\nq2 0 d1 0\n"
GRADES = {"q1": {"d1": 1, "d2": 0, "d3": 2}, "q2": {"d1": 0}}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def load(path: Path) -> Dataset:
    with collect_warnings():
        return Tables(interactions=path).load(path.parent, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # RecBole: the names have types, in any order, with others between
        (
            "a.inter",
            "user_id:token\titem_id:token\trating:float\ttimestamp:float\n07\tb\t5\t60\n07\ta\t3.5\t90\n",
        ),
        (
            "a.csv",
            "item_id:token,x:float,timestamp:float,user_id:token,rating:float\nb,,60,07,5\na,,90.5,07,3.5\n",
        ),
        # Elliot: no header
        ("train.tsv", "07\tb\t5.0\t60\n07\ta\t3.5\t90\n"),
        # and a table
        ("b.tsv", "user_id\titem_id\trating\ttimestamp\n07\tb\t5\t60\n07\ta\t3.5\t90\n"),
    ],
)
def test_the_rows_of_every_tool_are_read(tmp_path: Path, name: str, text: str) -> None:
    rows = load(write(tmp_path, name, text)).interactions
    assert rows.user_ids.ids[rows.users].tolist() == ["07", "07"]
    assert rows.item_ids.ids[rows.items].tolist() == ["b", "a"]
    assert rows.values.tolist() == [5.0, 3.5]
    assert rows.times.tolist() == [60, 90]


def test_timestamps_are_optional_in_elliot_files(tmp_path: Path) -> None:
    (tmp_path / "train.tsv.gz").write_bytes(gzip.compress(b"1\t7\t1\n2\t7\t1\n"))
    rows = load(tmp_path / "train.tsv.gz").interactions
    assert rows.user_ids.ids.tolist() == ["1", "2"]
    assert rows.times is None


def test_rows_are_located_by_line(tmp_path: Path) -> None:
    with collect_warnings() as notes:
        table = read_interactions(write(tmp_path, "a.tsv", "1\t2\t5\n1\t3\t5\n"), INTERACTIONS)
    assert table.place(1).endswith("a.tsv:2")
    assert notes == ["a.tsv was read as elliot, user_id '1', item_id '2', rating '5'"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("978300760", 978_300_760),
        ("978300760.9", 978_300_760),
        ("-1", -1),
        ("1970-01-02", 86_400),
        ("1970-01-01 00:01:00", 60),
        ("1970-01-01T00:01:00.75", 60),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59", -1),
    ],
)
def test_numbers_are_seconds_and_text_is_iso_8601(text: str, seconds: int) -> None:
    times, wrong = to_seconds(pa.chunked_array([[text]]))
    assert (times.tolist(), wrong.tolist()) == ([seconds], [False])


@pytest.mark.parametrize("text", ["", "soon", "2019-02-31", "12:30", "1e9", "05/25/2019"])
@pytest.mark.parametrize("other", ["5", "2019-05-25"])
def test_other_text_is_not_a_time(text: str, other: str) -> None:
    _, wrong = to_seconds(pa.chunked_array([[other, text]]))
    assert wrong.tolist() == [False, True]


def test_numbers_and_dates_cannot_be_mixed() -> None:
    _, wrong = to_seconds(pa.chunked_array([["2019-05-25", "5"]]))
    assert wrong.tolist() == [True, False]


def test_numeric_columns_are_rounded_down_to_seconds() -> None:
    times, wrong = to_seconds(pa.chunked_array([[7.9, float("nan"), float("inf")]]))
    assert (times.tolist(), wrong.tolist()) == ([7, 0, 0], [False, True, True])


@pytest.mark.parametrize(
    ("cells", "blank"),
    [(["", ""], True), (["", "1"], False), ([float("nan")], True), ([1.0], False)],
)
def test_a_column_without_times_is_blank(cells: list[str] | list[float], blank: bool) -> None:
    assert is_blank(pa.chunked_array([cells])) is blank


def pairs(rows: Interactions) -> list[tuple[str, str, float]]:
    users, items = rows.user_ids.ids[rows.users], rows.item_ids.ids[rows.items]
    return list(zip(users.tolist(), items.tolist(), rows.values.tolist(), strict=True))


@pytest.mark.parametrize(
    ("name", "text", "layout"),
    [
        *((name, "", "qrels") for name in ("a.qrels", "A.QREL.GZ", "a.trec", "a.json.gz")),
        *((name, "q 0 d 1\n", "auto") for name in ("a.csv", "a.parquet", "qrels")),
        ("a.txt", "user_id\titem_id\nu\ti\n", "auto"),
        ("a.txt", "q1 0 d1 1\nq2 0 d1 0\n", "qrels"),
        ("a.tsv", "1\t0\t7\t1\n2\t0\t8\t1\n", "qrels"),
        ("a.tsv", "1\t7\t5.0\t60\n", "elliot"),
        ("a.txt", "1 7 5 978300760\n1 8 4 978300761\n", "elliot"),
        ("a.txt", "0 1 2\n1 2\n", "lightgcn"),
        ("a.txt", "0 1 2 3\n", "elliot or lightgcn"),
        ("a.txt", "0 0 1 2\n1 0 2 3\n", "qrels or lightgcn"),
        ("a.tsv", "1\t7\t3\t1\n2\t7\t4\t1\n", "elliot or qrels"),
    ],
)
def test_the_layout_of_interactions_is_named_or_asked_for(
    tmp_path: Path, name: str, text: str, layout: str
) -> None:
    path = write(tmp_path, name, text)
    if " or " not in layout:
        with collect_warnings():
            assert detect_layout(path) == layout
        return
    choices = layout.split(" or ")
    with pytest.raises(AmbiguousLayout) as caught:
        detect_layout(path)
    assert caught.value.remedy == "set " + " or ".join(f"layout: {name}" for name in choices)
    for choice in choices:
        assert detect_layout(path, choice) == choice  # type: ignore[arg-type]


def test_a_layout_that_a_file_cannot_have_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "user_id,item_id\nu,i\n")
    with pytest.raises(Contradiction, match=r"a\.csv cannot be in the layout elliot"):
        read_interactions(path, INTERACTIONS, layout="elliot")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.qrels", TREC),
        ("a.txt", TREC.replace(" ", "\t").replace("\n", "\r\n")),
        ("a.trec", "\ufeff" + TREC.replace(" 0 ", "  Q0\t ") + "\n \n"),
        ("a.json", json.dumps(GRADES)),
    ],
)
def test_relevant_items_are_the_rows(tmp_path: Path, name: str, text: str) -> None:
    with collect_warnings() as messages:
        rows = read_qrels(write(tmp_path, name, text), 1)
    assert pairs(rows) == [("q1", "d1", 1.0), ("q1", "d3", 2.0)]
    assert rows.user_ids.ids.tolist() == ["q1"]
    counts = "1 of 2 queries have no item of grade 1 or more"
    assert messages == [f"{name}: {counts} and are excluded from the evaluation"]
