from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract, MalformedLine, UnknownIdentifier, WrongType
from recbias.core.outputs.list_checks import check_lists
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.stage_context import collect_warnings
from recbias.models.given.lists import GivenLists
from support.asked import make_queries
from support.worlds import make_interactions

NAN = float("nan")


def world(pairs: list[tuple[int, int]] | None = None) -> TrainingData:
    return TrainingData(make_interactions(pairs or [(0, 5)], n_users=3, n_items=6))


def given(folder: Path, text: str, *, seen: str = "refuse", name: str = "mine.csv") -> GivenLists:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return GivenLists(path=path, seen=seen)  # type: ignore[arg-type]


def lists_of(
    model: GivenLists, ids: list[str], *, k: int = 3, data: TrainingData | None = None
) -> RankedLists:
    data = data or world()
    users = [
        data.train.user_ids.ids.tolist().index(each) if each[0] == "u" else -1 for each in ids
    ]
    fitted = model.fit(data, np.random.default_rng(0))
    return fitted.recommend(make_queries(ids, users), k, data)


def test_lists_are_in_the_order_of_the_queries_and_of_the_ranks(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nu1,i0,2\nu0,i3,1\nu1,i4,1\nu0,i2,2\n")
    lists = lists_of(model, ["u1", "u0"])
    assert lists.items.tolist() == [[4, 0, -1], [3, 2, -1]]
    assert np.isnan(lists.scores).all()


@pytest.mark.parametrize("first", [0, 1, 5])
def test_ranks_only_order(tmp_path: Path, first: int) -> None:
    lines = f"u0,i1,{first + 7}\nu0,i2,{first}\nu0,i3,{first + 2}\n"
    lists = lists_of(given(tmp_path, "query_id,item_id,rank\n" + lines), ["u0"])
    assert lists.items.tolist() == [[2, 3, 1]]


def test_scores_order_where_there_is_no_rank(tmp_path: Path) -> None:
    lists = lists_of(
        given(tmp_path, "query_id,item_id,score\nu0,i1,0.5\nu0,i2,2\nu0,i3,-1\n"), ["u0"]
    )
    assert lists.items.tolist() == [[2, 1, 3]]
    assert lists.scores.tolist() == [[2.0, 0.5, -1.0]]


def test_ties_of_scores_go_to_the_first_item_by_number(tmp_path: Path) -> None:
    # by text "10" would come before "9"
    lists = lists_of(given(tmp_path, "query_id,item_id,score\nu0,10,1\nu0,9,1\nu0,8,2\n"), ["u0"])
    assert lists.outside[lists.items - 6].tolist() == [["8", "9", "10"]]


def test_a_run_is_ordered_by_rank_and_keeps_its_scores(tmp_path: Path) -> None:
    model = given(tmp_path, "u0 Q0 i1 2 1.5 t\nu0 Q0 i2 1 7 t\n", name="mine.run")
    lists = lists_of(model, ["u0"])
    assert lists.items.tolist() == [[2, 1, -1]]
    np.testing.assert_array_equal(lists.scores, np.array([[7, 1.5, NAN]], dtype=np.float32))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_lists_are_cut_and_padded_to_k(tmp_path: Path, k: int) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nu0,i1,1\nu0,i2,2\nu0,i3,3\n")
    lists = lists_of(model, ["u0"], k=k)
    assert lists.items.tolist() == [[1, 2, 3, -1, -1][:k]]


def test_queries_that_only_one_side_has_are_counted(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nu0,i1,1\nx,i1,1\ny,i2,1\n")
    with collect_warnings() as notes:
        lists = lists_of(model, ["u0", "u1", "u2"])
    assert lists.items[:, 0].tolist() == [1, -1, -1]
    assert notes == [
        "mine.csv has no list for 2 of 3 queries: they are empty",
        "mine.csv has lists for 2 queries that were not asked: left out",
    ]


def test_items_that_the_dataset_lacks_keep_their_place(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nu0,new,1\nu0,i1,2\nu0,\N{SNOWMAN},3\n")
    with collect_warnings() as notes:
        lists = lists_of(model, ["u0"])
    assert lists.items.tolist() == [[6, 1, 7]]
    assert lists.outside.tolist() == ["new", "\N{SNOWMAN}"]
    assert notes == ["mine.csv: 2 of 3 items are not in the dataset"]
    check_lists(lists, n_queries=1, seen=None, n_items=6, model="lists")


def test_an_item_of_the_own_history_is_refused(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nu1,i5,1\nu0,i1,1\nu0,i5,2\n")
    with pytest.raises(BrokenContract, match="'i5' is one of the query's own") as caught:
        lists_of(model, ["u0", "u1"])
    assert caught.value.where == f"{model.path}:4"
    assert "seen: keep" in caught.value.remedy


def test_an_item_of_the_own_history_below_k_does_not_matter(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nu0,i1,1\nu0,i5,2\n")
    assert lists_of(model, ["u0"], k=1).items.tolist() == [[1]]


def test_an_item_of_the_own_history_can_be_kept(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nu0,i5,1\n", seen="keep")
    assert lists_of(model, ["u0"], k=1).items.tolist() == [[5]]


def test_a_query_that_is_no_user_has_no_history(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nprompt,i5,1\n")
    assert lists_of(model, ["prompt"], k=1).items.tolist() == [[5]]


def test_a_dataset_without_interactions_will_do(tmp_path: Path) -> None:
    empty = TrainingData(make_interactions([], n_users=0, n_items=0))
    model = given(tmp_path, "query_id,item_id,rank\nprompt,a,1\nprompt,b,2\n")
    lists = lists_of(model, ["prompt", "other"], data=empty)
    assert lists.items.tolist() == [[0, 1, -1], [-1, -1, -1]]
    assert lists.outside.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "text"), [("mine.csv", "query_id,item_id,rank\n"), ("mine.json", "{}")]
)
def test_a_file_without_rows_is_refused(tmp_path: Path, name: str, text: str) -> None:
    model = given(tmp_path, text, name=name)
    with pytest.raises(MalformedLine, match="holds no list"):
        lists_of(model, ["u0", "u1"])
    with pytest.raises(MalformedLine, match="holds no list"):
        model.check_files(["here"])


TWO_CITIES = (
    "dataset,query_id,item_id,rank\nA,u0,i1,1\nB,u0,i2,1\nA,u0,i3,2\nB,u1,i2,1\nB,u0,x,2\n"
)


def test_of_each_dataset_only_its_own_rows_count(tmp_path: Path) -> None:
    model = given(tmp_path, TWO_CITIES)
    with collect_warnings() as notes:
        lists = lists_of(model, ["u0", "u1"], data=replace(world(), dataset="A"))
    assert lists.items.tolist() == [[1, 3, -1], [-1, -1, -1]]
    # nothing of B is counted: neither its item x nor its query u1
    assert notes == ["mine.csv has no list for 1 of 2 queries: they are empty"]
    lists = lists_of(model, ["u0", "u1"], data=replace(world(), dataset="B"))
    assert lists.items.tolist() == [[2, 6, -1], [2, -1, -1]]
    assert lists.outside.tolist() == ["x"]


def test_a_dataset_that_no_row_is_of_is_an_error_that_names_theirs(tmp_path: Path) -> None:
    model = given(tmp_path, TWO_CITIES)
    model.check_files(["A", "B"])
    with pytest.raises(UnknownIdentifier, match="'C': its column 'dataset' has 'A', 'B'"):
        model.check_files(["A", "C"])


def test_the_rows_of_each_dataset_are_checked_at_their_line(tmp_path: Path) -> None:
    model = given(tmp_path, TWO_CITIES + "B,u1,i4,1\n")
    model.check_files(["A"])
    with pytest.raises(BrokenContract, match="has a rank that the list has before") as caught:
        model.check_files(["A", "B"])
    assert caught.value.where.endswith("mine.csv:7")


@pytest.mark.parametrize(
    ("lines", "line", "found"),
    [
        (
            "u0,i1,1,9\nu0,i2,2,8\nu0,i1,3,7\n",
            4,
            "'i1' stands twice in the list of query 'u0'",
        ),
        ("u0,i1,1,9\nu0,i2,1,8\n", 3, "'i2' has a rank that the list has before"),
        ("u0,i1,1.5,9\n", 2, "a rank that is not a whole number"),
        ("u0,i1,nan,9\n", 2, "a rank that is not a whole number"),
        ("u0,i1,inf,9\n", 2, "a rank that is not a whole number"),
        ("u0,i1,1,nan\n", 2, "a score of NaN"),
        ("u0,i1,1,1\nu0,i2,2,3\nu0,i3,3,4\n", 3, "and 1 more such rows"),
        ("u0,i1,2,2\nu0,i2,1,1\n", 2, "'i1' has a higher score than the item ranked before it"),
    ],
)
def test_a_broken_list_is_named(tmp_path: Path, lines: str, line: int, found: str) -> None:
    model = given(tmp_path, "query_id,item_id,rank,score\n" + lines)
    with pytest.raises(BrokenContract, match=found) as caught:
        lists_of(model, ["u0"])
    assert caught.value.where == f"{model.path}:{line}"


def test_the_same_ranks_and_items_in_other_lists_are_fine(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank,score\nu0,i1,1,1\nu1,i1,1,5\nu1,i2,2,5\n")
    assert lists_of(model, ["u0", "u1"], k=2).items.tolist() == [[1, -1], [1, 2]]


def test_the_name_is_checked_when_the_plug_in_is_built() -> None:
    with pytest.raises(WrongType, match=r"lists\.xlsx"):
        GivenLists(path=Path("lists.xlsx"))
    with pytest.raises(WrongType, match="not in the trec layout"):
        GivenLists(path=Path("lists.parquet"), layout="trec")


def test_masked_items_are_left_out_and_counted(tmp_path: Path) -> None:
    # Elliot fills short lists with seen items of a score of minus infinity: i5 is u0's history
    model = given(tmp_path, "u0\ti1\t2.0\nu0\ti5\t-inf\nu1\ti5\t-inf\n", name="recs.tsv")
    with collect_warnings() as notes:
        lists = lists_of(model, ["u0", "u1"])
    assert lists.items.tolist() == [[1, -1, -1], [-1, -1, -1]]
    assert notes == [
        "recs.tsv was read as elliot",
        "recs.tsv: 2 rows with a score of minus infinity: left out",
    ]


def test_rows_behind_masked_ones_keep_their_line(tmp_path: Path) -> None:
    model = given(tmp_path, "u0\ti5\t-inf\nu0\ti1\t2.0\nu0\ti1\t1.0\n", name="recs.tsv")
    with pytest.raises(BrokenContract, match="'i1' stands twice") as caught:
        lists_of(model, ["u0"])
    assert caught.value.where == f"{model.path}:3"


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
def test_ties_of_other_tools_stand_in_the_order_of_the_file(
    tmp_path: Path, name: str, text: str
) -> None:
    assert lists_of(given(tmp_path, text, name=name), ["u0"]).items.tolist() == [[3, 2, 1]]


def test_lines_may_be_in_the_order_of_the_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item\nu0,i3\nu1,i2\nu0,i1\n", encoding="utf-8")
    model = GivenLists(path=path, layout="recbole")
    assert lists_of(model, ["u0", "u1"]).items.tolist() == [[3, 1, -1], [2, -1, -1]]


def test_queries_that_nobody_asked_are_refused(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\n0,i1,1\n1,i1,1\n")
    with pytest.raises(UnknownIdentifier, match="none of the 2 queries of mine"):
        lists_of(model, ["u0", "u1"])


def test_queries_of_users_who_were_not_asked_are_no_strangers(tmp_path: Path) -> None:
    model = given(tmp_path, "query_id,item_id,rank\nu1,i1,1\n")
    assert lists_of(model, ["u0"], k=1).items.tolist() == [[-1]]


@pytest.mark.parametrize("n", [1, 7])
def test_our_own_lists_come_back_from_a_file(
    tmp_path: Path, n: int, rng: np.random.Generator
) -> None:
    items = np.argsort(rng.random((n, 6)), axis=1)[:, :4]
    lines = [
        f"u{query},i{item},{rank}"
        for query, row in enumerate(items.tolist())
        for rank, item in enumerate(row)
    ]
    text = "\n".join(["query_id,item_id,rank", *rng.permutation(lines)])
    train: Interactions = make_interactions([], n_users=n, n_items=6)
    lists = lists_of(
        given(tmp_path, text), [f"u{each}" for each in range(n)], k=4, data=TrainingData(train)
    )
    assert lists.items.tolist() == items.tolist()
