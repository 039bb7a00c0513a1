from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, WrongType
from recbias.formats import text_tables
from recbias.formats.sizes import estimate_table
from recbias.formats.tables import find_suffix, read_text_table

ROWS = [{"id": "007", "text": 'a, "b"\nc', "n": 1.5}, {"id": "x", "text": "", "n": None}]


def write(folder: Path, name: str) -> Path:
    path, frame = folder / name, pd.DataFrame(ROWS)
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    elif ".jsonl" in name:
        text = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS) + "\n"
        open_file = gzip.open if name.endswith(".gz") else open
        with open_file(path, "wt", encoding="utf-8") as file:
            file.write(text)
    else:
        frame.to_csv(path, sep="\t" if ".tsv" in name else ",", index=False)
    return path


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.gz", "A.CSV", "a.parquet", "a.jsonl", "a.jsonl.gz"]
)
def test_every_kind_of_file_has_the_same_columns(tmp_path: Path, name: str) -> None:
    table = read_text_table(write(tmp_path, name))
    assert table.ids("id").tolist() == ["007", "x"]
    assert table.texts("text").tolist() == ['a, "b"\nc', ""]
    assert table.optional("text").tolist() == ['a, "b"\nc', None]
    assert table.optional("other").tolist() == [None, None]
    assert table.numbers("n").tolist() == pytest.approx([1.5, np.nan], nan_ok=True)
    assert table.labels(["id", "n"]).to_dict("list") == {"text": ['a, "b"\nc', None]}


def test_rows_know_their_line(tmp_path: Path) -> None:
    assert read_text_table(write(tmp_path, "a.csv")).place(1).endswith("a.csv:4")
    assert read_text_table(write(tmp_path, "a.jsonl")).place(1).endswith("a.jsonl:3")
    assert read_text_table(write(tmp_path, "a.parquet")).place(1).endswith("a.parquet: row 2")


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_list_of_numbers_is_joined_by_spaces(tmp_path: Path, name: str) -> None:
    path, rows = tmp_path / name, [{"logs": [-1.5, -2.0]}, {"logs": []}]
    if name == "a.parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert read_text_table(path).texts("logs").tolist() == ["-1.5 -2.0", ""]


def test_json_objects_of_different_blocks_have_different_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "BLOCK_ROWS", 2)
    path, rows = tmp_path / "a.jsonl", [{"a": "1"}, {}, {"b": "2"}, {"a": 3}, {"b": None}]
    path.write_text("\n\n".join(map(json.dumps, rows)), encoding="utf-8")
    table = read_text_table(path)
    assert table.texts("a").tolist() == ["1", "", "", "3", ""]
    assert table.texts("b").tolist() == ["", "", "2", "", ""]
    assert table.place(4).endswith("a.jsonl:9")


def test_a_cell_of_a_later_block_is_reported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "BLOCK_ROWS", 2)
    path, rows = tmp_path / "a.jsonl", [{"a": "1"}, {"a": "2"}, {"a": "3"}, {"a": {}}]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(MalformedLine, match="neither text nor a number") as raised:
        read_text_table(path)
    assert str(raised.value.where).endswith("a.jsonl:4")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_the_size_of_a_table_is_that_of_its_cells(tmp_path: Path, name: str) -> None:
    path, frame = tmp_path / name, pd.DataFrame({"id": ["1", "2"], "text": ["ab", "c\u4e2d"]})
    if name == "a.csv":
        frame.to_csv(path, index=False)
        cell_bytes = path.stat().st_size
    else:
        frame.to_json(path, orient="records", lines=True)
        cell_bytes = 1 + 2 + 1 + 4 + 2  # and the ends of the lines
    size = estimate_table(path)
    assert size is not None
    assert size.text_bytes == pytest.approx(cell_bytes, abs=2)
    assert size.cells == 2 * size.rows


@pytest.mark.parametrize("name", ["a.txt", "a", "a.csv.zip"])
def test_files_of_other_types_are_rejected(name: str) -> None:
    with pytest.raises(WrongType, match="no table of text") as caught:
        find_suffix(Path(name))
    assert caught.value.where == "path"


@pytest.mark.parametrize(
    ("name", "content", "message", "where"),
    [
        ("a.csv", "", "the file is empty", ":1"),
        ("a.csv", "id,text\n", "no rows", ""),
        ("a.csv", "id,id\n1,2\n", "two columns are called 'id'", ":1"),
        ("a.csv", "id,text\n1,2\n3\n", "1 cells, not 2", ":3"),
        ("a.jsonl", "", "no rows", ""),
        ("a.jsonl", '{"id": 1}\n{"id"\n', "not JSON", ":2"),
        ("a.jsonl", '{"id": 1}\n[2]\n', "not a JSON object", ":2"),
        ("a.jsonl", '{"id": 1}\n\n{"id": {"a": 1}}\n', "the id is neither", ":3"),
        ("a.parquet", "id\n1\n", "not a Parquet file", ""),
    ],
)
def test_malformed_files_are_rejected_with_their_line(
    tmp_path: Path, name: str, content: str, message: str, where: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MalformedLine, match=message) as caught:
        read_text_table(path)
    assert caught.value.where == f"{path}{where}"


def test_malformed_cells_are_reported_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,n\na,1\n,x\nb, \na,NaN\n", encoding="utf-8")
    table = read_text_table(path)
    with pytest.raises(MalformedLine, match="an empty id") as caught:
        table.ids("id")
    assert caught.value.where == f"{path}:3"
    with pytest.raises(MalformedLine, match="the n 'x' is not a number") as caught:
        table.numbers("n")
    assert caught.value.where == f"{path}:3"
    with pytest.raises(UnknownColumn, match="no column 'ids'") as missing:
        table.need("n", "ids")
    assert "did you mean id?" in missing.value.remedy
    with pytest.raises(MalformedLine, match="row 3 again") as caught:
        table.refuse_repeats(table.texts("id"), lambda row: f"row {row} again")
    assert caught.value.where == f"{path}:5"
    assert f"{path}:2" in caught.value.remedy


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"a\.csv"):
        read_text_table(tmp_path / "a.csv")
