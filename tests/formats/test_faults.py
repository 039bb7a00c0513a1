"""Faults of users' files, by reader: one line with the file, the line and a remedy."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.context import collect_warnings
from recbias.core.errors import MissingFile, UserError, WrongType
from recbias.formats.delimited import Layout, read_table
from recbias.formats.interactions import read_interactions, read_qrels
from recbias.formats.json_files import read_json_lines
from recbias.formats.lists import order_rows, read_rows
from recbias.formats.ratings import read_ratings
from recbias.formats.tables import TableColumns, read_file, read_text_table
from recbias.formats.text_files import FREE_BYTES
from recbias.formats.vectors import read_word_vectors

INTERACTIONS = TableColumns(
    needed={"user_id": "id", "item_id": "id"}, optional={"rating": "float32"}
)
PLAIN = Layout(
    columns={"user": "int32", "item": "int32", "rating": "float32", "time": "int64"},
    delimiter="::",
    header=False,
)
FIELDS = pa.schema({"id": pa.string(), "stars": pa.float64()})


def own(path: Path) -> Any:
    return read_file(path, TableColumns(needed={"query_id": "id"}, others=True))


def rated(path: Path) -> Any:
    return read_interactions(path, INTERACTIONS)


def plain(path: Path) -> Any:
    return read_table(path, PLAIN)


def texts(path: Path) -> Any:
    return read_text_table(path)


def lists(path: Path) -> Any:
    return order_rows(read_rows(path))


def qrels(path: Path) -> Any:
    return read_qrels(path, 1)


def records(path: Path) -> Any:
    return read_json_lines(path, FIELDS, needed=["id"])


def vectors(path: Path) -> Any:
    return read_word_vectors(path, ["fish"])


def check(read: Callable[[Path], Any], path: Path, message: str, line: int) -> UserError:
    """Return the error of a reader, which has a place and a remedy."""
    with pytest.raises(UserError, match=message) as caught, collect_warnings():
        read(path)
    where = str(caught.value.where)
    assert where == f"{path}:{line}" if line else where.startswith(str(path))
    assert caught.value.remedy
    assert "\n" not in f"{caught.value.message}{caught.value.remedy}"
    return caught.value


HEAD = "query_id,item_id,rank\n"

TABLES = [own, texts, lists]


@pytest.mark.parametrize("read", TABLES)
@pytest.mark.parametrize(
    ("rows", "message", "line"),
    [
        (f"{HEAD}u,a,1\nv,b\n", r"has 2 cells, not 3 \(query_id,item_id,rank\)", 3),
        (f"{HEAD}u,a,1\n\nv,b,2,3\n", "has 4 cells", 4),
        (f'{HEAD}u,a,1\nv,"b,1\nw,c,1\n', "a quote is never closed", 3),
        (f'{HEAD}u,"a\n\nb",1\nv,"c,1\nw,d', "a quote is never closed", 5),
        (f'{HEAD}"u,a,1\n"v,b,2\n', "a cell is malformed", 2),
        (f'{HEAD}u,"a"b,1\n', "a cell is malformed", 2),
        ("", "the file is empty", 1),
        ("\n\n", "the file is empty", 1),
        ("query_id,query_id,item_id,rank\n", "two columns are called 'query_id'", 1),
        ("query_id item_id rank\nu a 1\n", "separated by blanks: 'query_id item_id rank'", 1),
        ('{"query_id": "u"}\n{"query_id": "v"}\n', "is JSON, not a table", 1),
    ],
)
def test_faults_of_tables(tmp_path: Path, read: Any, rows: str, message: str, line: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text(rows, encoding="utf-8")
    check(read, path, message, line)


@pytest.mark.parametrize("read", [*TABLES, rated, qrels, records, vectors])
@pytest.mark.parametrize(
    ("encode", "message", "line"),
    [
        (lambda text: text.encode("utf-16"), "is UTF-16", 1),
        (lambda text: text.encode("utf-16-be"), "is UTF-16", 1),
        (lambda text: b"\xff" + text.encode(), "(?i)utf-8|number", 1),
    ],
)
def test_other_encodings_and_line_ends(
    tmp_path: Path, read: Any, encode: Any, message: str, line: int
) -> None:
    contents = {
        rated: ("a.csv", "user_id,item_id\nu,a\n"),
        qrels: ("a.qrels", "q 0 a 1\nq 0 b 1\n"),
        records: ("a.json", '{"id": "a"}\n{"id": "b"}\n'),
        vectors: ("a.txt", "fish 1 2\nsoup 3 4\n"),
    }
    name, text = contents.get(read, ("a.csv", f"{HEAD}u,a,1\n"))
    path = tmp_path / name
    path.write_bytes(encode(text))
    if read is vectors and line == 1 and message.startswith("(?i)"):
        return  # words are bytes: those that are not UTF-8 are not needed
    check(read, path, message, line)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(encode(text)))
    check(read, path, message, line)


@pytest.mark.parametrize("read", [*TABLES, rated])
def test_text_that_is_not_utf_8_is_named_at_its_line(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "a.csv"
    head = "user_id,item_id\n" if read is rated else "query_id,rank,item_id\n"
    row = b"u,\xe9\n" if read is rated else b"u,1,\xe9\n"
    path.write_bytes(head.encode() + b"\n" + row)
    check(read, path, "(?i)is not utf-8", 3)


@pytest.mark.parametrize("read", [own, texts, lists, rated, qrels, records, vectors])
def test_damaged_and_oversized_gzip_files(tmp_path: Path, read: Any) -> None:
    names = {qrels: "a.qrels.gz", records: "a.json.gz", vectors: "a.txt.gz"}
    path = tmp_path / names.get(read, "a.csv.gz")
    text = b"user_id,item_id,query_id,rank\n" * 20
    for data in (gzip.compress(text)[:-9], gzip.compress(text)[:8], text):
        path.write_bytes(data)
        check(read, path, "compressed data is damaged", 0)
    if read in {texts, records}:
        path.write_bytes(gzip.compress(b"x" * (FREE_BYTES + 1), 1))
        check(read, path, "unpacks to more than", 0)


@pytest.mark.parametrize(
    ("read", "name", "text", "message", "line"),
    [
        (plain, "a", "1::2::3::4\n1::2::3\n", "has 3 cells", 2),
        (plain, "a", "1::2::5::\n", "time is empty", 1),
        (plain, "a", "1:9:2::5::9\n", "has 3 cells", 1),
        (plain, "a", "1::2::nan::9\n", "rating is not a finite number: 'nan'", 1),
        (plain, "a", "1::2::1e39::9\n", "rating is not a finite number", 1),
        (plain, "a", "1::2::five::9\n", "rating is not a finite number: 'five'", 1),
        (plain, "a", "\n1::2::5::9.5\n", "time is not a whole number", 2),
        (plain, "a", "1_0::2::5::9\n", "user is not a whole number", 1),
        (plain, "a", "2147483648::2::5::9\n", r"user is not a whole number below 2\^31", 1),
        (rated, "a.csv", "user_id,item_id,rating\nu,i,5\n,j,4\n", "user_id is empty", 3),
        (rated, "a.csv", "user_id,item_id,rating\nu,i,\n", "rating is empty", 2),
        (rated, "a.csv", "user_id,movie\nu,i\n", "no column 'item_id'", 1),
        (rated, "a.csv", "PK\x03\x04", "is a file of zip or Excel, not of text", 0),
        (rated, "a.csv", "PAR1", "is a file of Parquet, not of text", 0),
        (rated, "a.inter", "user_id:token\tmovie:token\n1\t2\n", "no column 'item_id'", 1),
        (rated, "a.inter", "user_id:token\titem_id:token\n1\t2\n1\n", "has 1 cells", 3),
        (rated, "a.inter", "user_id\tmovie\n1\t2\n", "no column 'item_id'", 1),
        (rated, "a.csv", "u,1,5\nu,2,5\n", "does not name the columns: 'u,1,5'", 1),
        (rated, "a.csv", "1,1,5\n1,2,5\n", "does not name the columns: '1,1,5'", 1),
        (rated, "a.jsonl", '{"user_id": "u"}\n', "no column 'item_id'", 0),
        (rated, "a.tsv", "1\t2\t5\n1\t3\tgood\n", "rating is not a finite number", 2),
        (rated, "a.tsv", "1\t2\n1\t3\n", "does not name the columns", 1),
        (own, "a.xlsx", "query_id,b\n", "is no Excel file", 0),
        (own, "a.xls", "", "not a kind of table", 0),
        (own, "a.parquet", "not one", "is not a Parquet file", 0),
        (own, "a.csv", "query,b\n1,2\n", "no column 'query_id'", 1),
        (texts, "a.csv", "id,text\n", "the file has no rows", 0),
        (texts, "a.jsonl", '{"id": 1}\n{"id"\n', "is not JSON", 2),
        (texts, "a.jsonl", '{"id": 1}\n\n[2]\n', "not a JSON object", 3),
        (texts, "a.jsonl", '{"id": 1}\n{"id": {"a": 1}}\n', "the id is neither text nor", 2),
        (texts, "a.jsonl", '{"id": "\\ud83d"}\n', "half a character", 1),
        (texts, "a.jsonl", "[" * 100_000, "nested too deeply", 1),
        (texts, "a.jsonl", "9" * 5000, "4300 digits", 1),
        (texts, "a.parquet", "id\n1\n", "not a Parquet file", 0),
        (lists, "a.csv", f"{HEAD}q,i,1\nq,j,two\n", "rank is not a number: 'two'", 3),
        (lists, "a.csv", f"{HEAD}q,i,\n", "has a rank that is not a whole number", 2),
        (lists, "a.csv", f'{HEAD}q,"i\n\n",1\nq,j,x\n', "rank is not a number: 'x'", 5),
        (lists, "a.csv", f"{HEAD}q,,1\n", "item_id is empty", 2),
        (lists, "a.csv", f"{HEAD}q,i,1\nq,i,2\n", "'i' occurs twice in the list", 3),
        (lists, "a.csv", f"{HEAD}q,i,1\nq,j,1\n", "repeats a rank", 3),
        (lists, "a.csv", "query_id,item_id,score\nq,i,nan\n", "has a score of NaN", 2),
        (lists, "a.csv", "query_id,item_id,rank,score\nq,i,1,1\nq,j,2,3\n", "higher score", 3),
        (lists, "a.csv", "reader,item_id,rank\nq,i,1\n", "no column 'query_id'", 1),
        (lists, "a.csv", "x,y,z\nq,i,1\n", "'query_id' and no .* 'item_id' and no .* 'rank'", 1),
        (lists, "a.csv", "query_id,item_id,place\nq,i,1\n", "neither a column 'rank' nor", 1),
        (lists, "a.csv", "user,userId,item,rank\nq,q,i,1\n", "may each be the query_id", 1),
        (lists, "a.inter", "user_id:token\tuser_id:float\titem_id:token\n", "two columns", 1),
        (lists, "a.run", "q Q0 i 1 2 tag\n\nq Q0 i 1 2\n", "has 5 cells, not 6", 3),
        (lists, "a.run", "q Q0 i 1 2 tag\n\nq Q0 i 1 high tag\n", "score is not a number", 3),
        (lists, "a.tsv", "1\t2\t3\n1\t2\n", "has 2 cells, not 3", 2),
        (lists, "a.tsv", "1\t2\t3\n\t2\t3\n", "query_id is empty", 2),
        (lists, "a.json", '{"q": {"i": 1},\n "r": }', "not JSON", 2),
        (lists, "a.json", "[1]", "not an object", 1),
        (lists, "a.json", '{"q": 1}\n{"q": 2}\n', "one JSON object a line", 1),
        (lists, "a.json", '{"q": {"i": 1},\n"q": {"j": 1}}', "'q' occurs twice in one object", 0),
        (lists, "a.json", '{"q": {"i": 1},\n"r": ["j"]}', "query 'r' does not have the form", 0),
        (lists, "a.json", '{"q": {"i": 1,\n "j": "x"}}', "a score of NaN", 0),
        (lists, "a.json", '{"q": ["i",\n true]}', "an item is a text or a whole number", 0),
        (lists, "a.json", '{"q": {\n"": 1}}', "item_id is empty", 0),
        (lists, "a.parquet", "PAR1", "not a Parquet file", 0),
        (qrels, "a.qrels", "q 0 d 1\n\nq 0 d\n", "has 3 cells, not 4", 3),
        (qrels, "a.qrels", "q Q0 d 1 2.5 tag\n", "has 6 cells, not 4", 1),
        (qrels, "a.qrels", "q 0 d 1\n\nq 0 e high\n", "grade is not a number: 'high'", 3),
        (qrels, "a.qrels", "q 0 d nan\n", "the grade of item 'd' is no number", 1),
        (qrels, "a.qrels", "q 0 d 1\nr 0 d 1\nq 0 d 0\n", "is judged twice", 3),
        (qrels, "a.json", '{"q": {"d": 1},\n"r": ["d"]}', "does not have the form", 0),
        (qrels, "a.json", '{"q": {"d": 1,\n"e": "x"}}', "the grade of item 'e' is no number", 0),
        (records, "a.json", '{"id": "a"}\n{"id": "x"', "is not JSON", 2),
        (records, "a.json", '{"id": "a"}\n[1]\n', "is not a JSON object", 2),
        (records, "a.json", '{"id": "a"}\n\n{"stars": 3}\n', "id is missing", 3),
        (records, "a.json", '{"id": "x", "stars": "3"}\n', "stars is not a double: '3'", 1),
        (records, "a.json", '{"id": "x", "stars": NaN}\n', "stars is not a finite number", 1),
        (vectors, "a.txt", "", "the file is empty", 0),
        (vectors, "a.txt", "the\n", "not a word and its numbers", 1),
        (vectors, "a.txt", "the 1 2\nfish 1\n", "not 2 finite numbers", 2),
        (vectors, "a.txt", "the 1 2\nfish 1 x\n", "not 2 finite numbers", 2),
        (vectors, "a.txt", "the 1 2\nfish 1 nan\n", "not 2 finite", 2),
    ],
)  # fmt: skip
def test_faults_of_files(
    tmp_path: Path, read: Any, name: str, text: str, message: str, line: int
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    check(read, path, message, line)


@pytest.mark.parametrize("read", [*TABLES, rated, qrels, vectors, read_ratings])
def test_missing_files_and_other_kinds(tmp_path: Path, read: Any) -> None:
    names = {qrels: "none.qrels", vectors: "none.txt"}
    with pytest.raises(MissingFile, match="no such file"):
        read(tmp_path / names.get(read, "none.csv"))
    if read in {texts, vectors, read_ratings}:
        with pytest.raises(WrongType) as caught:
            read(tmp_path / "a.bin")
        assert "name it" in caught.value.remedy


@pytest.mark.parametrize(
    ("read", "columns", "message", "where"),
    [
        (own, {"query_id": ["a", None]}, "query_id is empty", ": row 2"),
        (own, {"query_id": [1.0, 2.0]}, "decimal numbers", ": query_id"),
        (own, {"query_id": [b"a", b"\xff"]}, "is a column of binary", ": query_id"),
        (rated, {"user_id": [1], "item_id": [1], "rating": [1e300]}, "not a finite", ": row 1"),
        (rated, {"user_id": [1], "item_id": [1], "rating": ["x"]}, "not of numbers", ": rating"),
        (lists, {"query_id": ["q", None], "item_id": ["i", "j"], "rank": [1, 2]}, "empty", ""),
        (lists, {"query_id": [{"a": 1}], "item_id": ["i"], "rank": [1]}, "not of text", ""),
        (lists, {"session": [1], "items": [[{"item_id": 1}]]}, "no column 'query_id'", ""),
    ],
)
def test_faults_of_parquet_files(
    tmp_path: Path, read: Any, columns: dict[str, Any], message: str, where: str
) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table(columns), path)
    assert str(check(read, path, message, 0).where).startswith(f"{path}{where}")
    path.write_bytes(path.read_bytes()[:-5])
    check(read, path, "is not a Parquet file", 0)
