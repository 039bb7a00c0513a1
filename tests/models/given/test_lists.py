from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.evidence import RankedLists, check_lists
from recbias.models.given import GivenLists
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

NAN = float("nan")


def create_data(pairs: list[tuple[int, int]] | None = None) -> TrainingData:
    return TrainingData(make_interactions(pairs or [(0, 5)], n_users=3, n_items=6))


def create_model(
    folder: Path, text: str, *, seen: str = "refuse", name: str = "mine.csv"
) -> GivenLists:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return GivenLists(path=path, seen=seen)  # type: ignore[arg-type]


def recommend_lists(
    model: GivenLists, ids: list[str], *, k: int = 3, data: TrainingData | None = None
) -> RankedLists:
    data = data or create_data()
    users = [
        data.train.user_ids.ids.tolist().index(query) if query[0] == "u" else -1 for query in ids
    ]
    fitted = model.fit(data, np.random.default_rng(0))
    return fitted.recommend(make_queries(ids, users), k, data)


def test_lists_are_in_the_order_of_the_queries_and_of_the_ranks(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu1,i0,2\nu0,i3,1\nu1,i4,1\nu0,i2,2\n")
    lists = recommend_lists(model, ["u1", "u0"])
    assert lists.items.tolist() == [[4, 0, -1], [3, 2, -1]]
    assert np.isnan(lists.scores).all()


def test_a_run_is_ordered_by_rank_and_keeps_its_scores(tmp_path: Path) -> None:
    model = create_model(tmp_path, "u0 Q0 i1 2 1.5 t\nu0 Q0 i2 1 7 t\n", name="mine.run")
    lists = recommend_lists(model, ["u0"])
    assert lists.items.tolist() == [[2, 1, -1]]
    np.testing.assert_array_equal(lists.scores, np.array([[7, 1.5, NAN]], dtype=np.float32))


def test_missing_and_additional_queries_are_counted(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu0,i1,1\nx,i1,1\ny,i2,1\n")
    with collect_warnings() as warnings:
        lists = recommend_lists(model, ["u0", "u1", "u2"])
    assert lists.items[:, 0].tolist() == [1, -1, -1]
    assert warnings == [
        "mine.csv has no list for 2 of 3 queries: empty lists",
        "mine.csv has lists for 2 queries that are not in the run: excluded",
    ]


def test_items_outside_the_dataset_keep_their_rank(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu0,new,1\nu0,i1,2\nu0,\N{SNOWMAN},3\n")
    with collect_warnings() as warnings:
        lists = recommend_lists(model, ["u0"])
    assert lists.items.tolist() == [[6, 1, 7]]
    assert lists.outside.tolist() == ["new", "\N{SNOWMAN}"]
    assert warnings == ["mine.csv: 2 of 3 items are not in the dataset"]
    check_lists(lists, n_queries=1, seen=None, n_items=6, model="lists")


def test_an_item_of_the_history_is_an_error(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu1,i5,1\nu0,i1,1\nu0,i5,2\n")
    with pytest.raises(BrokenContract, match="'i5' is in the query's own") as caught:
        recommend_lists(model, ["u0", "u1"])
    assert caught.value.where == f"{model.path}:4"
    assert "seen: keep" in caught.value.remedy


def test_an_item_of_the_history_is_accepted_if_seen_is_keep(tmp_path: Path) -> None:
    model = create_model(tmp_path, "query_id,item_id,rank\nu0,i5,1\n", seen="keep")
    assert recommend_lists(model, ["u0"], k=1).items.tolist() == [[5]]


TWO_CITIES = (
    "dataset,query_id,item_id,rank\nA,u0,i1,1\nB,u0,i2,1\nA,u0,i3,2\nB,u1,i2,1\nB,u0,x,2\n"
)


@pytest.mark.usefixtures("stage_warnings")
def test_only_rows_of_the_dataset_are_used(tmp_path: Path) -> None:
    model = create_model(tmp_path, TWO_CITIES)
    with collect_warnings() as warnings:
        lists = recommend_lists(model, ["u0", "u1"], data=replace(create_data(), dataset="A"))
    assert lists.items.tolist() == [[1, 3, -1], [-1, -1, -1]]
    # nothing of B is counted: neither its item x nor its query u1
    assert warnings == ["mine.csv has no list for 1 of 2 queries: empty lists"]
    lists = recommend_lists(model, ["u0", "u1"], data=replace(create_data(), dataset="B"))
    assert lists.items.tolist() == [[2, 6, -1], [2, -1, -1]]
    assert lists.outside.tolist() == ["x"]


MASKS = "are excluded as masks: a score of -1e8 or less, or the minimum of float16, or the item -1"


def test_masked_items_are_excluded_and_counted(tmp_path: Path) -> None:
    # Elliot fills short lists with seen items of a score of minus infinity: i5 is u0's history
    model = create_model(tmp_path, "u0\ti1\t2.0\nu0\ti5\t-inf\nu1\ti5\t-inf\n", name="recs.tsv")
    with collect_warnings() as warnings:
        lists = recommend_lists(model, ["u0", "u1"])
    assert lists.items.tolist() == [[1, -1, -1], [-1, -1, -1]]
    assert warnings == [
        "recs.tsv was read as elliot; query 'u0', item 'i1', score 2",
        f"recs.tsv: 2 rows {MASKS}",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "u0\ti3\t2\nu0\ti2\t1\nu0\ti1\t1\n"),
        (
            "a.inter",
            "user_id:token\titem_id:token\tscore:float\nu0\ti2\t1\nu0\ti1\t1\nu0\ti3\t2\n",
        ),
        ("a.json", '{"u0": {"i2": 1, "i1": 1, "i3": 2}}'),
        ("b.json", '{"u0": ["i3", "i2", "i1"]}'),
    ],
)
@pytest.mark.usefixtures("stage_warnings")
def test_ties_of_other_tools_keep_the_order_of_the_file(
    tmp_path: Path, name: str, text: str
) -> None:
    assert recommend_lists(create_model(tmp_path, text, name=name), ["u0"]).items.tolist() == [
        [3, 2, 1]
    ]
