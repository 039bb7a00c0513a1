from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, UserError
from recbias.core.stage_context import collect_warnings
from recbias.formats.lists import Layout, read_rows

ROLES = "item is the item_id; prediction is the score"
ODD = ["a,b", 'say "hi"', "two\nlines", "\N{OK HAND SIGN}", " spaced ", "NA", "007"]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def pairs(path: Path) -> list[tuple[str, str]]:
    rows = read_rows(path)
    queries = rows.query_ids.ids[rows.queries]
    return list(zip(queries.tolist(), rows.item_ids.ids[rows.items].tolist(), strict=True))


def test_columns_may_have_any_order_and_others_between(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "item_id,note,rank,query_id\ni1,x,1,q\ni2,,2,q\n")
    rows = read_rows(path)
    assert pairs(path) == [("q", "i1"), ("q", "i2")]
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [1.0, 2.0]
    assert rows.scores is None


def test_ids_are_kept_as_written(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["query_id", "item_id", "rank"])
        writer.writerows([item, item, 1] for item in ODD)
    assert pairs(path) == [(item, item) for item in ODD]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1)))
def test_any_id_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str]
) -> None:
    quoted = ['"' + item.replace('"', '""') + '"' for item in ids]
    lines = "".join(f"q,{item},{rank}\n" for rank, item in enumerate(quoted))
    folder = tmp_path_factory.mktemp("ids")
    path = write(folder, "a.csv", "query_id,item_id,rank\n" + lines)
    assert [item for _, item in pairs(path)] == ids


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "query_id\titem_id\tscore\nq\ti1\t2.5\nq\ti2\t1\n"),
        ("a.csv", "\ufeffquery_id,item_id,score\r\nq,i1, 2.5\r\nq,i2,1 \r\n"),
        ("a.run", "q Q0 i1 1 2.5 tag\nq Q0 i2 2 1 tag\n"),
        ("a.trec", "q\tQ0\ti1\t1\t2.5\ttag\nq\tQ0\ti2\t2\t1\ttag\n"),
        ("b.trec", "q  Q0 i1\t1   2.5 tag  \n\nq Q0 i2 2 1 tag"),
        ("c.run", "q Q0  i1 1 2.5 tag\r\nq Q0 i2 2 1 tag\r\n"),
        ("runs.txt", "q Q0 i1 1 2.5 tag\nq Q0 i2 2 1 tag\n"),
        ("elliot.tsv", "q\ti1\t2.5\nq\ti2\t1.0\n"),
        ("recbole.inter", "user_id:token\titem_id:token\tscore:float\nq\ti1\t2.5\nq\ti2\t1\n"),
        ("ranx.json", '{"q": {"i1": 2.5, "i2": 1}}'),
        ("tools.csv", "userId,item,fold,prediction\nq,i1,0,2.5\nq,i2,0,1\n"),
    ],
)
def test_every_layout_is_read(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, name, text)
    with collect_warnings():
        scores = read_rows(path).scores
        assert pairs(path) == [("q", "i1"), ("q", "i2")]
    assert scores is not None
    assert scores.tolist() == [2.5, 1.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv.gz", "query_id,item_id,rank\nq,i1,1\n"),
        ("a.tsv.gz", "query_id\titem_id\trank\nq\ti1\t1\n"),
        ("a.run.gz", "q Q0 i1 1 2.5 tag\n"),
    ],
)
def test_compressed_files_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    assert pairs(tmp_path / name) == [("q", "i1")]


@pytest.mark.parametrize("ids", [[1, 2], ["1", "2"]])
def test_parquet_ids_may_be_numbers(tmp_path: Path, ids: list[object]) -> None:
    table = pa.table({"query_id": ["q", "q"], "item_id": ids, "rank": [2, 1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    rows = read_rows(tmp_path / "a.parquet")
    assert rows.item_ids.ids.tolist() == ["1", "2"]
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [2.0, 1.0]
    assert rows.place(1) == f"{tmp_path / 'a.parquet'}: row 2"


def test_a_file_with_a_header_only_has_no_rows(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path, "a.csv", "query_id,item_id,rank\n"))
    assert rows.queries.size == 0
    assert len(rows.item_ids) == 0


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("reader,item_id,rank", "no column 'query_id'"),
        ("query_id,book,rank", "no column 'item_id'"),
        ("query_id,item_id,position", "neither a column 'rank' nor 'score'"),
    ],
)
def test_a_missing_column_is_an_error(tmp_path: Path, header: str, message: str) -> None:
    path = write(tmp_path, "a.csv", f"{header}\nq,i,1\n")
    with pytest.raises(UnknownColumn, match=message) as caught:
        read_rows(path)
    assert caught.value.where == f"{path}:1"
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("a.csv", "query_id,item_id,rank\nq,i,1\nq,j,two\n", 3, "the rank 'two' is not a number"),
        ("a.csv", "query_id,item_id,rank\nq,i,\n", 2, "the rank '' is not a number"),
        ("a.csv", "query_id,item_id,score\nq,i,0x\n", 2, "the score '0x' is not a number"),
        ("a.csv", 'query_id,item_id,rank\nq,"i\n\n",1\nq,j,x\n', 5, "the rank 'x'"),
        ("a.csv", "query_id,item_id,rank\nq,,1\n", 2, "an empty item_id"),
        ("a.csv", "query_id,item_id,rank\n\n,i,1\n", 3, "an empty query_id"),
        ("a.csv", "query_id,item_id,rank\nq,i,1\nq,j\n", 3, "2 cells, not 3"),
        ("a.csv", "query_id,item_id,rank\nq,i,1,9\n", 2, "4 cells, not 3"),
        ("a.csv", "rank,query_id,item_id,rank\n1,q,i,1\n", 1, "two columns are called 'rank'"),
        ("a.run", "q Q0 i 1 2 tag\n\nq Q0 i 1 2\n", 3, "5 cells, not 6"),
        ("a.run", "q Q0 i 1 2 tag\n\nq Q0 i 1 high tag\n", 3, "the score 'high' is not"),
    ],
)
def test_a_malformed_line_is_reported_or_skipped(
    tmp_path: Path, name: str, text: str, line: int, message: str
) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(MalformedLine, match=message) as caught:
        read_rows(path)
    assert caught.value.where == f"{path}:{line}"


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", b""), ("a.run", b""), ("a.parquet", b"PAR1")]
)
def test_other_files_are_rejected(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(MalformedLine) as caught:
        read_rows(path)
    assert caught.value.where == str(path)


def test_an_empty_parquet_cell_is_rejected(tmp_path: Path) -> None:
    table = pa.table({"query_id": ["q", None], "item_id": ["i", "j"], "rank": [1, 2]})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(MalformedLine, match="an empty query_id") as caught:
        read_rows(tmp_path / "a.parquet")
    assert caught.value.where.endswith("row 2")


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"none\.csv"):
        read_rows(tmp_path / "none.csv")


def test_codes_refer_to_the_ids(tmp_path: Path) -> None:
    lines = [f"q{i % 3},i{i % 5},{i}" for i in range(30)]
    path = write(tmp_path, "a.csv", "\n".join(["query_id,item_id,score", *lines]))
    rows = read_rows(path)
    assert rows.queries.dtype == rows.items.dtype == np.int32
    assert pairs(path) == [(f"q{i % 3}", f"i{i % 5}") for i in range(30)]


@pytest.mark.parametrize(
    ("name", "text", "notes"),
    [
        ("a.csv", "query_id,item_id,score\nq,i,1\n", []),
        ("a.csv", "user_id,item_id,score,rank\nq,i,1,1\n", []),
        ("a.run", "q Q0 i 1 2 tag\n", []),
        ("a.json", '{"q": {"i": 1}}', []),
        (
            "a.csv",
            "user,item,prediction\nq,i,1\n",
            [f"a.csv was read as table; user is the query_id; {ROLES}"],
        ),
        ("a.tsv", "q\ti\t1\n", ["a.tsv was read as elliot"]),
        (
            "a.inter",
            "user_id:token\titem_id:token\tscore:float\nq\ti\t1\n",
            ["a.inter was read as recbole"],
        ),
    ],
)
def test_inferred_layouts_and_columns_are_warned_of(
    tmp_path: Path, name: str, text: str, notes: list[str]
) -> None:
    with collect_warnings() as messages:
        read_rows(write(tmp_path, name, text))
    assert messages == notes


@pytest.mark.parametrize(
    ("name", "text", "layout", "line", "message", "really"),
    [
        ("a.csv", "query_id,item_id,rank\nq,i,1\n", "trec", 1, "1 cells, not 6", "table"),
        ("a.tsv", "query_id\titem_id\tscore\nq\ti\t1\n", "elliot", 1, "'score' is not", "table"),
        ("a.tsv", "q\ti\t1\n", "table", 1, "no column 'query_id'", "elliot"),
        ("a.tsv", "q\ti\t1\n", "recbole", 1, "no column 'query_id'", "elliot"),
        ("a.csv", "query_id,item_id,rank\nq,i,1\n", "ranx", 1, "not JSON", "table"),
        ("a.json", '{"q": {"i": 1}}', "table", 1, "no column 'query_id'", "ranx"),
        ("a.json", '{"q": {"i": 1}}', "lenskit", 1, "no column 'query_id'", "ranx"),
    ],
)
def test_the_detected_layout_is_suggested_for_a_wrong_one(
    tmp_path: Path, name: str, text: str, layout: Layout, line: int, message: str, really: str
) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises((MalformedLine, UnknownColumn), match=message) as caught:
        read_rows(path, layout)
    assert isinstance(caught.value, UserError)
    assert caught.value.where == f"{path}:{line}"
    assert f"it is {really}" in caught.value.remedy


def test_a_file_with_a_named_layout_may_have_any_suffix(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path, "ItemKNN_nn=40.out", "1\t7\t0.5\n"), "elliot")
    assert rows.item_ids.ids.tolist() == ["7"]


def test_the_lenskit_layout_includes_plain_tables(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "user_id,item_id,score,rank\nq,i,1,1\n")
    assert read_rows(path, "lenskit").query_ids.ids.tolist() == ["q"]
