from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from recbias.formats.arrow.parquet_files import (
    decode_dictionary,
    read_parquet,
    read_schema,
    to_numbers,
    to_text,
)

from recbias.core.errors import MalformedLine


def test_columns_can_be_selected(tmp_path: Path) -> None:
    path = tmp_path / "part=1" / "a.parquet"
    path.parent.mkdir()
    parquet.write_table(pa.table({"a": [1], "b": ["x"]}), path)
    assert read_schema(path).names == ["a", "b"]
    assert read_parquet(path).column_names == ["a", "b"]
    assert read_parquet(path, ["b"]).to_pydict() == {"b": ["x"]}


def test_other_files_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    for read in (read_schema, read_parquet):
        with pytest.raises(MalformedLine, match="not a Parquet file") as caught:
            read(path)
        assert caught.value.where == str(path)


def test_columns_are_converted_to_text_or_numbers() -> None:
    words = pa.array(["1", None]).dictionary_encode()
    assert decode_dictionary(words).type == pa.string()
    assert to_text(words, "a").to_pylist() == ["1", ""]
    assert to_text(pa.array([7]), "a").to_pylist() == ["7"]
    number, missing = to_numbers(words, "a").to_pylist()
    assert number == 1.0
    assert math.isnan(missing)
    assert to_numbers(pa.array([2**63 - 1]), "a").to_pylist() == [2.0**63]


def test_columns_of_other_types_are_rejected() -> None:
    with pytest.raises(MalformedLine, match="a column of list<item: int64>, not of text"):
        to_text(pa.array([[1]]), "a")
    with pytest.raises(MalformedLine, match="a column of binary, not of numbers"):
        to_numbers(pa.array([b"x"]), "a")
