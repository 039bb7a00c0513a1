from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from recbias.core.dataset.dataset import Dataset
from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn
from recbias.data.datasets.tables import INTERACTIONS, Tables
from recbias.formats.interactions import is_blank, read_interactions, to_seconds


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def load(path: Path) -> Dataset:
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
    assert rows.times is not None
    assert rows.times.tolist() == [60, 90]


def test_timestamps_are_optional_in_elliot_files(tmp_path: Path) -> None:
    (tmp_path / "train.tsv.gz").write_bytes(gzip.compress(b"1\t7\t1\n2\t7\t1\n"))
    rows = load(tmp_path / "train.tsv.gz").interactions
    assert rows.user_ids.ids.tolist() == ["1", "2"]
    assert rows.times is None


@pytest.mark.parametrize(
    ("name", "text", "kind", "message"),
    [
        ("a.inter", "user_id:token\tmovie:token\n1\t2\n", UnknownColumn, "no column 'item_id'"),
        ("a.inter", "user_id:token\titem_id:token\n1\t2\n1\n", MalformedLine, "a.inter:3"),
        ("a.inter", "user_id\titem_id\n1\t2\n", MalformedLine, "not a kind of table"),
        ("a.tsv", "1\t2\t5\n1\t2\n", MalformedLine, "a.tsv:2"),
        ("a.tsv", "1\t2\t5\n1\t3\tgood\n", MalformedLine, "a.tsv:2"),
        ("a.tsv", "1\t2\n1\t3\n", UnknownColumn, "no column 'user_id'"),
        ("a.tsv", "", MalformedLine, "no header"),
    ],
)
def test_malformed_content_is_reported_with_its_line(
    tmp_path: Path, name: str, text: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        load(write(tmp_path, name, text))


def test_rows_are_located_by_line(tmp_path: Path) -> None:
    table = read_interactions(write(tmp_path, "a.tsv", "1\t2\t5\n1\t3\t5\n"), INTERACTIONS)
    assert table.where(1).endswith("a.tsv:2")


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_interactions(tmp_path / "none.inter", INTERACTIONS)


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
