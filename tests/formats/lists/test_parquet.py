from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract, MalformedLine, UnknownColumn
from recbias.formats.lists.parquet import is_nested, read_flat, read_nested
from recbias.models.given.lists import GivenLists
from support.worlds import rows as interactions


def nested(folder: Path, lists: list[list[dict[str, Any]]], **keys: list[Any]) -> Path:
    path = folder / "a.parquet"
    parquet.write_table(pa.table({**keys, "items": lists}), path)
    return path


def test_a_row_of_lenskit_is_a_list(tmp_path: Path) -> None:
    lists = [
        [{"item_id": 3, "rank": 1, "score": 2.0}, {"item_id": 1, "rank": 2, "score": 1.0}],
        [],
        [{"item_id": 1, "rank": 1, "score": 9.0}],
    ]
    path = nested(tmp_path, lists, user_id=[7, 8, 9])
    rows, roles = read_nested(path)
    assert is_nested(path)
    # user 8 has an empty list: asked, and nothing answered
    assert rows.query_ids.ids.tolist() == ["7", "8", "9"]
    assert rows.queries.tolist() == [0, 0, 2]
    assert rows.item_ids.ids[rows.items].tolist() == ["3", "1", "1"]
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [1.0, 2.0, 1.0]
    assert roles["query_id"] == "user_id"
    assert [rows.place(1), rows.place(2)] == [f"{path}: row 1", f"{path}: row 3"]


def test_without_rank_and_score_the_order_of_a_list_counts(tmp_path: Path) -> None:
    lists = [[{"item_id": "b"}, {"item_id": "a"}], [{"item_id": "c"}]]
    rows, _ = read_nested(nested(tmp_path, lists, query_id=["p", "q"]))
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [1.0, 2.0, 1.0]


def test_a_list_may_be_missing(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct({"item_id": pa.int64(), "score": pa.float64()}))
    lists = pa.array([None, [{"item_id": 1, "score": 1.0}]], kind)
    parquet.write_table(pa.table({"user_id": [1, 2], "items": lists}), tmp_path / "a.parquet")
    rows, _ = read_nested(tmp_path / "a.parquet")
    assert rows.query_ids.ids.tolist() == ["1", "2"]
    assert rows.queries.tolist() == [1]


def test_a_flat_file_has_a_row_an_item(tmp_path: Path) -> None:
    table = pa.table({"q_id": ["q"], "doc_id": ["i"], "score": [1.5]})  # as ranx writes it
    parquet.write_table(table, tmp_path / "a.parquet")
    rows, roles = read_flat(tmp_path / "a.parquet")
    assert not is_nested(tmp_path / "a.parquet")
    assert roles == {"query_id": "q_id", "item_id": "doc_id", "score": "score"}
    assert rows.place(0).endswith("a.parquet: row 1")


def test_a_collection_with_other_keys_only_is_refused(tmp_path: Path) -> None:
    path = nested(tmp_path, [[{"item_id": 1}]], session=[1])
    with pytest.raises(UnknownColumn, match="no column 'query_id'"):
        read_nested(path)


def test_two_lists_of_one_query_are_refused(tmp_path: Path) -> None:
    one = [{"item_id": 1, "rank": 1}]
    path = nested(tmp_path, [one, [{"item_id": 2, "rank": 1}]], user_id=[1, 1], model=["a", "b"])
    with pytest.raises(BrokenContract, match="a rank that the list has before") as caught:
        GivenLists(path=path).fit(TrainingData(interactions([(0, 0)])), np.random.default_rng(0))
    assert caught.value.where == f"{path}: row 2"


@pytest.mark.parametrize("read", [is_nested, read_flat, read_nested])
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, read: Any) -> None:
    (tmp_path / "a.parquet").write_bytes(b"query_id,item_id,rank\n")
    with pytest.raises(MalformedLine, match="not a Parquet file"):
        read(tmp_path / "a.parquet")


def test_a_list_may_be_of_a_dataset(tmp_path: Path) -> None:
    lists = [[{"item_id": "x"}, {"item_id": "y"}], [{"item_id": "z"}]]
    path = nested(tmp_path, lists, user_id=[7, 7], dataset=["A", "B"])
    rows, _ = read_nested(path)
    own = rows.of_dataset("B")
    assert own.query_ids.ids.tolist() == ["7"]
    assert own.item_ids.ids.tolist() == ["z"]
    assert own.place(0) == f"{path}: row 2"


def test_a_row_may_be_of_a_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    cells = {"query_id": ["q", "q"], "item_id": ["i", "j"], "rank": [1, 1]}
    parquet.write_table(pa.table({**cells, "dataset": ["A", "B"]}), path)
    rows, _ = read_flat(path)
    assert rows.of_dataset("B").item_ids.ids.tolist() == ["j"]
