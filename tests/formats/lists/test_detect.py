from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.errors import WrongType
from recbias.formats.lists import check_name, detect_by_line, detect_layout


@pytest.mark.parametrize("name", ["mine.xlsx", "mine", "run.lz4", "mine.pkl.gz"])
def test_an_unknown_suffix_needs_a_layout(name: str) -> None:
    with pytest.raises(WrongType, match=name) as caught:
        check_name(Path(name), "auto")
    assert caught.value.where == "path"
    assert ".parquet" in caught.value.remedy
    check_name(Path(name), "elliot")


@pytest.mark.parametrize("layout", ["trec", "elliot", "recbole", "ranx"])
def test_parquet_files_have_no_text_layout(layout: Any) -> None:
    with pytest.raises(WrongType, match=layout) as caught:
        check_name(Path("a.parquet"), layout)
    assert caught.value.where == "layout"


@pytest.mark.parametrize(
    ("line", "layout"),
    [
        ("query_id,item_id,rank", "table"),
        ("user_id\titem_id\tscore", "table"),
        ("user_id:token\titem_id:token\tscore:float", "recbole"),
        ("user_id:token,item_id:token", "recbole"),
        ("user_id:token\titem_id:token\titem_list:token_seq", "recbole"),
        ("a:b\tc:d\te:f", "table"),
        ("1\t7\t0.5", "elliot"),
        ("1\t7\t-inf", "elliot"),
        ("1\t7", "table"),
        ("1\t7\t0.5\t978300760", "table"),
        ("1,7,0.5", "table"),
        ("q Q0 i 1 2.5 tag", "trec"),
        ("q\tQ0\ti\t1\t2.5\ttag", "trec"),
        ("one two three four five six", "table"),
        ("", "table"),
    ],
)
def test_the_layout_is_detected_by_the_first_line(line: str, layout: str) -> None:
    assert detect_by_line(line) == layout


@pytest.mark.parametrize(
    ("name", "text", "layout"),
    [
        ("a.tsv", "\n\ufeff1\t7\t0.5\n", "elliot"),
        ("a.json", "not read", "ranx"),
        ("a.run", "not read", "trec"),
        ("a.txt", "q Q0 i 1 2 t\n", "trec"),
        ("recs.out", "1\t7\t0.5\n", "elliot"),
        ("a.csv", "", "table"),
    ],
)
def test_the_suffix_takes_precedence_over_the_first_line(
    tmp_path: Path, name: str, text: str, layout: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert detect_layout(tmp_path / name) == layout


def test_the_first_line_of_a_compressed_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"1\t7\t0.5\n"))
    assert detect_layout(tmp_path / "a.tsv.gz") == "elliot"


@pytest.mark.parametrize(
    ("items", "layout"),
    [([[{"item_id": 1}]], "lenskit"), ([[1]], "table"), ([1], "table")],
)
def test_parquet_with_lists_of_items_is_in_lenskit_layout(
    tmp_path: Path, items: Any, layout: str
) -> None:
    parquet.write_table(pa.table({"user_id": [1], "items": items}), tmp_path / "a.parquet")
    assert detect_layout(tmp_path / "a.parquet") == layout
