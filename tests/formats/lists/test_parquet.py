from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from recbias.formats.lists.parquet import is_nested, read_flat, read_nested

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract, MalformedLine, UnknownColumn
from recbias.models.given.lists import GivenLists
from support.worlds.small_worlds import make_interactions as interactions


def write_nested(folder: Path, lists: list[list[dict[str, Any]]], **keys: list[Any]) -> Path:
    path = folder / "a.parquet"
    parquet.write_table(pa.table({**keys, "items": lists}), path)
    return path


def test_nested_rows_are_lists(tmp_path: Path) -> None:
    lists = [
        [{"item_id": 3, "rank": 1, "score": 2.0}, {"item_id": 1, "rank": 2, "score": 1.0}],
        [],
        [{"item_id": 1, "rank": 1, "score": 9.0}],
    ]
    path = write_nested(tmp_path, lists, user_id=[7, 8, 9])
    rows, roles = read_nested(path)
    assert is_nested(path)
    # the list of user 8 is empty
    assert rows.query_ids.ids.tolist() == ["7", "8", "9"]
    assert rows.queries.tolist() == [0, 0, 2]
    assert rows.item_ids.ids[rows.items].tolist() == ["3", "1", "1"]
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [1.0, 2.0, 1.0]
    assert roles["query_id"] == "user_id"
    assert [rows.place(1), rows.place(2)] == [f"{path}: row 1", f"{path}: row 3"]


def test_items_without_rank_and_score_are_in_list_order(tmp_path: Path) -> None:
    lists = [[{"item_id": "b"}, {"item_id": "a"}], [{"item_id": "c"}]]
    rows, _ = read_nested(write_nested(tmp_path, lists, query_id=["p", "q"]))
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [1.0, 2.0, 1.0]


def test_a_null_list_is_empty(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct({"item_id": pa.int64(), "score": pa.float64()}))
    lists = pa.array([None, [{"item_id": 1, "score": 1.0}]], kind)
    parquet.write_table(pa.table({"user_id": [1, 2], "items": lists}), tmp_path / "a.parquet")
    rows, _ = read_nested(tmp_path / "a.parquet")
    assert rows.query_ids.ids.tolist() == ["1", "2"]
    assert rows.queries.tolist() == [1]


def test_a_flat_file_has_one_row_per_item(tmp_path: Path) -> None:
    table = pa.table({"q_id": ["q"], "doc_id": ["i"], "score": [1.5]})  # as ranx writes it
    parquet.write_table(table, tmp_path / "a.parquet")
    rows, roles = read_flat(tmp_path / "a.parquet")
    assert not is_nested(tmp_path / "a.parquet")
    assert roles == {"query_id": "q_id", "item_id": "doc_id", "score": "score"}
    assert rows.place(0).endswith("a.parquet: row 1")


def test_lists_without_a_query_are_rejected(tmp_path: Path) -> None:
    path = write_nested(tmp_path, [[{"item_id": 1}]], session=[1])
    with pytest.raises(UnknownColumn, match="no column 'query_id'"):
        read_nested(path)


def test_two_lists_of_the_same_query_are_rejected(tmp_path: Path) -> None:
    items = [{"item_id": 1, "rank": 1}]
    path = write_nested(
        tmp_path, [items, [{"item_id": 2, "rank": 1}]], user_id=[1, 1], model=["a", "b"]
    )
    with pytest.raises(BrokenContract, match="repeats a rank in the list") as caught:
        GivenLists(path=path).fit(TrainingData(interactions([(0, 0)])), np.random.default_rng(0))
    assert caught.value.where == f"{path}: row 2"


@pytest.mark.parametrize("read", [is_nested, read_flat, read_nested])
def test_other_files_are_rejected(tmp_path: Path, read: Any) -> None:
    (tmp_path / "a.parquet").write_bytes(b"query_id,item_id,rank\n")
    with pytest.raises(MalformedLine, match="not a Parquet file"):
        read(tmp_path / "a.parquet")


def test_nested_lists_may_name_their_dataset(tmp_path: Path) -> None:
    lists = [[{"item_id": "x"}, {"item_id": "y"}], [{"item_id": "z"}]]
    path = write_nested(tmp_path, lists, user_id=[7, 7], dataset=["A", "B"])
    rows, _ = read_nested(path)
    subset = rows.of_dataset("B")
    assert subset.query_ids.ids.tolist() == ["7"]
    assert subset.item_ids.ids.tolist() == ["z"]
    assert subset.place(0) == f"{path}: row 2"


def test_flat_rows_may_name_their_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    cells = {"query_id": ["q", "q"], "item_id": ["i", "j"], "rank": [1, 1]}
    parquet.write_table(pa.table({**cells, "dataset": ["A", "B"]}), path)
    rows, _ = read_flat(path)
    assert rows.of_dataset("B").item_ids.ids.tolist() == ["j"]
