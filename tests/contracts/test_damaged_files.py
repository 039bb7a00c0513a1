"""Every fault of a user's file, for every reader of such files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.errors import UserError
from recbias.core.stage_context import collect_warnings
from recbias.formats.interactions import read_interactions, read_qrels
from recbias.formats.json_files import Fields, read_json_lines
from recbias.formats.lists import order_rows, read_rows
from recbias.formats.tables import TableColumns, read_file, read_text_table
from recbias.models.given.responses import read_responses
from recbias.models.given.sentence_scores import read_sentences
from recbias.models.given.vector_files import read_ids

INTERACTIONS = TableColumns(
    needed={"user_id": "id", "item_id": "id"}, optional={"rating": "float32"}
)
FIELDS = Fields(types={"id": pa.string(), "stars": pa.float64()}, needed=("id",))


def read_lists(path: Path) -> Any:
    with collect_warnings():
        return order_rows(read_rows(path))


def read_scores(path: Path) -> Any:
    return read_sentences(read_text_table(path))


def read_replies(path: Path) -> Any:
    return read_responses(read_text_table(path))


def read_grades(path: Path) -> Any:
    return read_qrels(path, 1)


def read_ratings(path: Path) -> Any:
    return read_interactions(path, INTERACTIONS)


def read_records(path: Path) -> Any:
    return read_json_lines(path, FIELDS)


@dataclass(frozen=True)
class Format:
    """A reader and a file for it, whose second line holds an id and a number.

    Args:
        read: The reader.
        name: The name of the file.
        text: Its content, with ``ID`` and ``5`` on the second line.
        infinite: Whether the number may be infinite, or be any text.
    """

    read: Callable[[Path], Any]
    name: str
    text: str
    infinite: bool = False

    def __str__(self) -> str:
        return f"{self.read.__name__}-{self.name}"

    @property
    def is_json(self) -> bool:
        return ".json" in self.name


TEXTS = [
    Format(read_lists, "a.csv", "query_id,item_id,rank\nID,i,5\n"),
    Format(read_lists, "a.tsv", "query_id\titem_id\trank\nID\ti\t5\n"),
    Format(read_lists, "a.inter", "user_id:token,item_id:token,rank:float\nID,i,5\n"),
    Format(read_lists, "a.trec", "q Q0 i 1 1.0 t\nID Q0 i 5 0.5 t\n"),
    Format(read_lists, "elliot.tsv", "u\ti\t0.4\nID\ti\t5\n", infinite=True),
    Format(read_lists, "a.json", '{\n"ID": {"i": 5}}\n'),
    Format(read_scores, "a.csv", "sentence_id,pair_id,group,perplexity\nID,p,g,5\n"),
    Format(read_scores, "logs.csv", "sentence_id,pair_id,group,log_probabilities\nID,p,g,-5\n"),
    Format(
        read_scores,
        "a.jsonl",
        '\n{"sentence_id": "ID", "pair_id": "p", "group": "g", "perplexity": 5}\n',
    ),
    Format(read_replies, "a.tsv", "query_id\tresponse\nID\t5\n", infinite=True),
    Format(read_replies, "a.jsonl", '\n{"query_id": "ID", "response": 5}\n'),
    Format(read_grades, "a.qrels", "q 0 i 1\nID 0 i 5\n"),
    Format(read_grades, "a.json", '{\n"ID": {"i": 5}}\n'),
    Format(read_ratings, "a.csv", "user_id,item_id,rating\nID,i,5\n"),
    Format(read_ratings, "a.inter", "user_id:token\titem_id:token\trating:float\nID\ti\t5\n"),
    Format(read_ratings, "elliot.tsv", "u\ti\t0.4\nID\ti\t5\n"),
    Format(read_records, "a.json", '{"id": "a", "stars": 1}\n{"id": "ID", "stars": 5}\n'),
    Format(read_ids, "a.txt", "a\nID\n", infinite=True),
]
PACKED = [format_ for format_ in TEXTS if format_.read is not read_ids]
JSON = [format_ for format_ in TEXTS if format_.is_json]
NUMBERED = [format_ for format_ in TEXTS if not format_.infinite]


def catch_error(read: Callable[[Path], Any], path: Path, *, line: int | None = None) -> UserError:
    """Return the user's error, which has a location and a remedy and is short."""
    with pytest.raises(UserError) as caught:
        read(path)
    error = caught.value
    assert error.where.startswith(f"{path}:{line}" if line else str(path))
    assert error.remedy
    assert len(error.message) < 400
    return error


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def change_checksum(data: bytes) -> bytes:
    """Return compressed data with another checksum."""
    return data[:-8] + bytes(byte ^ 0xFF for byte in data[-8:-4]) + data[-4:]


@pytest.mark.parametrize("format_", TEXTS, ids=str)
@pytest.mark.parametrize("length", [1, 140_000, 2_500_000])
def test_cells_of_any_length_are_read(tmp_path: Path, format_: Format, length: int) -> None:
    text = format_.text.replace("ID", "x" * length)
    format_.read(write(tmp_path, format_.name, text.encode()))
    if format_ in PACKED:
        format_.read(write(tmp_path, f"{format_.name}.gz", gzip.compress(text.encode(), 1)))


@pytest.mark.parametrize("format_", PACKED, ids=str)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-12],
        lambda data: data[:8],
        lambda data: data + b"more",
        gzip.decompress,
        change_checksum,
    ],
    ids=["cut", "header", "longer", "unpacked", "checksum"],
)
def test_damaged_gzip_is_an_error(
    tmp_path: Path, format_: Format, damage: Callable[[bytes], bytes]
) -> None:
    data = damage(gzip.compress(format_.text.encode()))
    error = catch_error(format_.read, write(tmp_path, f"{format_.name}.gz", data))
    assert "compressed data is damaged" in error.message


@pytest.mark.parametrize("format_", TEXTS, ids=str)
@pytest.mark.parametrize(
    "raw", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xc3"], ids=["byte", "long", "half", "cut"]
)
def test_bytes_that_are_not_utf_8_are_an_error(
    tmp_path: Path, format_: Format, raw: bytes
) -> None:
    data = format_.text.encode().replace(b"ID", b"x" + raw)
    error = catch_error(format_.read, write(tmp_path, format_.name, data), line=2)
    assert "utf-8" in error.message.lower()


@pytest.mark.parametrize("format_", TEXTS, ids=str)
def test_a_first_line_that_is_not_utf_8_is_an_error(tmp_path: Path, format_: Format) -> None:
    line, line_end, tail = format_.text.encode().partition(b"\n")
    data = line[:1] + b"\xff" + line[1:] + line_end + tail
    catch_error(format_.read, write(tmp_path, format_.name, data), line=1)


@pytest.mark.parametrize("format_", NUMBERED, ids=str)
@pytest.mark.parametrize("number", ["9" * 5000, "-" + "9" * 400], ids=["5000", "400"])
def test_numbers_of_many_digits_are_an_error(tmp_path: Path, format_: Format, number: str) -> None:
    if format_.read is read_replies and len(number) < 4000:
        pytest.skip("a response may be any number")
    text = format_.text.replace("-5", "5").replace("5", number)
    catch_error(format_.read, write(tmp_path, format_.name, text.encode()), line=2)


@pytest.mark.parametrize("format_", JSON, ids=str)
@pytest.mark.parametrize("depth", [990, 100_000])
def test_deep_json_is_an_error(tmp_path: Path, format_: Format, depth: int) -> None:
    text = format_.text.replace("5", "[" * depth + "]" * depth)
    catch_error(format_.read, write(tmp_path, format_.name, text.encode()), line=2)


@pytest.mark.parametrize("format_", JSON, ids=str)
@pytest.mark.parametrize("half", ["\\ud800", "\\uDFFF", "\\ud83d\\ud83d\\ude00"])
def test_a_lone_surrogate_is_an_error(tmp_path: Path, format_: Format, half: str) -> None:
    text = format_.text.replace("ID", half)
    catch_error(format_.read, write(tmp_path, format_.name, text.encode()), line=2)


@pytest.mark.parametrize("format_", JSON, ids=str)
def test_a_pair_of_surrogates_is_a_character(tmp_path: Path, format_: Format) -> None:
    text = format_.text.replace("ID", "\\ud83d\\ude00\\\\ud800")
    format_.read(write(tmp_path, format_.name, text.encode()))


@pytest.mark.parametrize("rank", [2**63 - 1, -(2**60), 2**53 + 2])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_ranks_beyond_the_precision_of_floats_are_an_error(
    tmp_path: Path, name: str, rank: int
) -> None:
    path = tmp_path / name
    if name == "a.csv":
        path.write_text(f"query_id,item_id,rank\nq,i,{rank}\n", encoding="utf-8")
    else:
        parquet.write_table(pa.table({"query_id": ["q"], "item_id": ["i"], "rank": [rank]}), path)
    assert f"{rank}" in catch_error(read_lists, path).message


def make_invalid_text() -> pa.Array:
    """Return a column of text with invalid bytes."""
    ends = pa.py_buffer(np.array([0, 1], np.int32).tobytes())
    return pa.StringArray.from_buffers(1, ends, pa.py_buffer(b"\xff"))


IDS = {
    "binary": pa.array([b"\xff"]),
    "list": pa.array([[{"a": 1}]]),
    "struct": pa.array([{"a": 1}]),
    "bad text": make_invalid_text(),
    "bad dictionary": make_invalid_text().dictionary_encode(),
}
ONE = pa.array(["1"])
TABLES = {
    "lists": (read_lists, ("query_id", "item_id", "rank")),
    "lists by item": (read_lists, ("item_id", "query_id", "score")),
    "lists by rank": (read_lists, ("rank", "query_id", "item_id")),
    "scores": (read_scores, ("sentence_id", "pair_id", "group", "perplexity")),
    "perplexities": (read_scores, ("perplexity", "sentence_id", "pair_id", "group")),
    "responses": (read_replies, ("query_id", "response")),
    "ratings": (read_ratings, ("user_id", "item_id", "rating")),
    "users": (lambda path: read_file(path, TableColumns(needed={"id": "id"})), ("id",)),
}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("table", TABLES)
def test_parquet_columns_of_other_types_are_an_error(
    tmp_path: Path, table: str, kind: str
) -> None:
    read, (column, *other_columns) = TABLES[table]
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({column: IDS[kind], **dict.fromkeys(other_columns, ONE)}), path)
    catch_error(read, path)


@pytest.mark.parametrize("kind", IDS)
def test_nested_lists_of_other_types_are_an_error(tmp_path: Path, kind: str) -> None:
    items = pa.StructArray.from_arrays([IDS[kind]], ["item_id"])
    nested = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), items)
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"query_id": ONE, "items": nested}), path)
    catch_error(read_lists, path)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("length", [0, 3, 40, -5])
def test_truncated_parquet_is_an_error(tmp_path: Path, table: str, length: int) -> None:
    read, names = TABLES[table]
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table(dict.fromkeys(names, ONE)), path)
    path.write_bytes(path.read_bytes()[:length])
    catch_error(read, path)
