from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from recbias.core.errors import MalformedLine, MissingFile
from recbias.formats import text_files
from recbias.formats.text_files import (
    get_suffix,
    limit_cells,
    open_text,
    read_text,
    split_line,
    validate_utf8,
)

PATH = Path("a.json")


def test_text_is_decompressed_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.TXT.GZ"
    path.write_bytes(gzip.compress("\ufeffä\r\nb".encode()))
    assert read_text(path) == "ä\r\nb".encode()
    with open_text(path) as file:
        assert list(file) == ["ä\r\n", "b"]


def test_the_line_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\n\xff\n")
    with pytest.raises(MalformedLine, match="UTF-8") as caught:
        read_text(path)
    assert caught.value.where == f"{path}:3"
    with pytest.raises(MalformedLine, match="UTF-8") as caught, open_text(path) as file:
        list(file)
    assert caught.value.where == f"{path}:3"


def test_a_character_may_be_split_between_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "CHUNK_SIZE", 3)
    data = "aé\n€😀b\n".encode()
    validate_utf8(data, PATH)
    for end in (2, 6, 9, 10):
        with pytest.raises(MalformedLine) as caught:
            validate_utf8(data[:end], PATH)
        assert caught.value.where == f"{PATH}:{data.count(10, 0, end) + 1}"


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_text(tmp_path / "a.txt")


def test_the_limit_on_the_length_of_cells_is_restored() -> None:
    before = csv.field_size_limit()
    with limit_cells():
        assert csv.field_size_limit() > before
    assert csv.field_size_limit() == before
    assert split_line("a," + "b" * 200_000, ",")[1] == "b" * 200_000
    assert split_line("", ",") == []


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("mine.csv", ".csv"),
        ("MINE.CSV.GZ", ".csv"),
        ("a.v2.parquet", ".parquet"),
        ("bm25.trec.gz", ".trec"),
        ("mine", ""),
    ],
)
def test_the_suffix_is_in_lower_case_and_without_gz(name: str, suffix: str) -> None:
    assert get_suffix(Path(name)) == suffix
