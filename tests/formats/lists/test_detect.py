from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.errors import WrongType
from recbias.formats.lists.detect import by_line, check_name, guess, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mine.csv", ".csv"),
        ("MINE.CSV.GZ", ".csv"),
        ("a.v2.parquet", ".parquet"),
        ("bm25.trec.gz", ".trec"),
        ("mine", ""),
    ],
)
def test_the_kind_is_the_suffix(name: str, kind: str) -> None:
    assert kind_of(Path(name)) == kind


@pytest.mark.parametrize("name", ["mine.xlsx", "mine", "run.lz4", "mine.pkl.gz"])
def test_another_name_needs_a_layout(name: str) -> None:
    with pytest.raises(WrongType, match=name) as caught:
        check_name(Path(name), "auto")
    assert caught.value.where == "path"
    assert ".parquet" in caught.value.remedy
    check_name(Path(name), "elliot")


@pytest.mark.parametrize("layout", ["trec", "elliot", "recbole", "ranx"])
def test_parquet_is_in_no_layout_of_text(layout: Any) -> None:
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
def test_the_first_line_shows_the_layout(line: str, layout: str) -> None:
    assert by_line(line) == layout


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
def test_the_name_comes_before_the_first_line(
    tmp_path: Path, name: str, text: str, layout: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert guess(tmp_path / name) == layout


def test_a_packed_file_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"1\t7\t0.5\n"))
    assert guess(tmp_path / "a.tsv.gz") == "elliot"


@pytest.mark.parametrize(
    ("items", "layout"),
    [([[{"item_id": 1}]], "lenskit"), ([[1]], "table"), ([1], "table")],
)
def test_parquet_of_lists_of_items_is_lenskit_s(tmp_path: Path, items: Any, layout: str) -> None:
    parquet.write_table(pa.table({"user_id": [1], "items": items}), tmp_path / "a.parquet")
    assert guess(tmp_path / "a.parquet") == layout
