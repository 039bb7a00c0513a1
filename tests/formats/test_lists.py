"""Lists of other tools: their layouts, columns and order, and the queries that they answer."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MalformedLine,
    UnknownColumn,
    UnknownIdentifier,
    UserError,
    WrongType,
)
from recbias.formats.lists import (
    ListLayout,
    ListRows,
    check_list_ids,
    check_name,
    detect_by_line,
    detect_layout,
    order_rows,
    read_rows,
)
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

ROLES = "item is the item_id; prediction is the score"
ODD = ["a,b", 'say "hi"', "two\nlines", "\N{OK HAND SIGN}", " spaced ", "NA", "007"]
WORLD = TrainingData(make_interactions([(0, 5)], n_users=3, n_items=6))


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def write_nested(folder: Path, lists: Any, **keys: list[Any]) -> Path:
    parquet.write_table(pa.table({**keys, "items": lists}), folder / "a.parquet")
    return folder / "a.parquet"


def to_tuples(path: Path, layout: Any = "auto") -> list[tuple[str, str, float | None]]:
    """Return the query, item and score of each row."""
    with collect_warnings():
        rows = read_rows(path, layout)
    queries, items = rows.query_ids.ids[rows.queries], rows.item_ids.ids[rows.items]
    scores = [None] * queries.size if rows.scores is None else rows.scores.tolist()
    return list(zip(queries.tolist(), items.tolist(), scores, strict=True))


def test_columns_may_have_any_order_and_others_between(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "item_id,note,rank,query_id\ni1,x,1,q\ni2,,2,q\n")
    rows = read_rows(path)
    assert [pair[:2] for pair in to_tuples(path)] == [("q", "i1"), ("q", "i2")]
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [1.0, 2.0]
    assert rows.scores is None


def test_ids_are_kept_as_written(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["query_id", "item_id", "rank"])
        writer.writerows([item, item, 1] for item in ODD)
    assert [pair[:2] for pair in to_tuples(path)] == [(item, item) for item in ODD]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1)))
def test_any_id_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str]
) -> None:
    quoted = ['"' + item.replace('"', '""') + '"' for item in ids]
    lines = "".join(f"q,{item},{rank}\n" for rank, item in enumerate(quoted))
    folder = tmp_path_factory.mktemp("ids")
    path = write(folder, "a.csv", "query_id,item_id,rank\n" + lines)
    assert [item for _, item in [pair[:2] for pair in to_tuples(path)]] == ids


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "query_id\titem_id\tscore\nq\ti1\t2.5\nq\ti2\t1\n"),
        ("a.csv", "\ufeffquery_id,item_id,score\r\nq,i1, 2.5\r\nq,i2,1 \r\n"),
        ("a.run", "q Q0 i1 1 2.5 tag\nq Q0 i2 2 1 tag\n"),
        ("a.trec", "q\tQ0\ti1\t1\t2.5\ttag\nq\tQ0\ti2\t2\t1\ttag\n"),
        ("b.trec", "q  Q0 i1\t1   2.5 tag  \n\nq Q0 i2 2 1 tag"),
        ("c.run", "q Q0  i1 1 2.5 tag\r\nq Q0 i2 2 1 tag\r\n"),
        ("runs.txt", "q Q0 i1 1 2.5 tag\nq Q0 i2 2 1 tag\n"),
        ("elliot.tsv", "q\ti1\t2.5\nq\ti2\t1.0\n"),
        ("recbole.inter", "user_id:token\titem_id:token\tscore:float\nq\ti1\t2.5\nq\ti2\t1\n"),
        ("ranx.json", '{"q": {"i1": 2.5, "i2": 1}}'),
        ("tools.csv", "userId,item,fold,prediction\nq,i1,0,2.5\nq,i2,0,1\n"),
    ],
)
def test_every_layout_is_read(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, name, text)
    assert to_tuples(path) == [("q", "i1", 2.5), ("q", "i2", 1.0)]
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert to_tuples(packed) == to_tuples(path)


@pytest.mark.parametrize("ids", [[1, 2], ["1", "2"]])
def test_parquet_ids_may_be_numbers(tmp_path: Path, ids: list[object]) -> None:
    table = pa.table({"query_id": ["q", "q"], "item_id": ids, "rank": [2, 1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    rows = read_rows(tmp_path / "a.parquet")
    assert rows.item_ids.ids.tolist() == ["1", "2"]
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [2.0, 1.0]
    assert rows.place(1) == f"{tmp_path / 'a.parquet'}: row 2"


def test_a_file_with_a_header_only_has_no_rows(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path, "a.csv", "query_id,item_id,rank\n"))
    assert rows.queries.size == 0
    assert len(rows.item_ids) == 0


@pytest.mark.parametrize(
    ("name", "text", "notes"),
    [
        ("a.csv", "query_id,item_id,score\nq,i,1\n", []),
        ("a.csv", "user_id,item_id,score,rank\nq,i,1,1\n", []),
        ("a.run", "q Q0 i 1 2 tag\n", []),
        ("a.json", '{"q": {"i": 1}}', []),
        (
            "a.csv",
            "user,item,prediction\nq,i,1\n",
            [f"a.csv was read as table; user is the query_id; {ROLES}"],
        ),
        ("a.tsv", "q\ti\t1\n", ["a.tsv was read as elliot; query 'q', item 'i', score 1"]),
        (
            "a.inter",
            "user_id:token\titem_id:token\tscore:float\nq\ti\t1\n",
            ["a.inter was read as recbole; query 'q', item 'i', score 1"],
        ),
    ],
)
def test_inferred_layouts_and_columns_are_warned_of(
    tmp_path: Path, name: str, text: str, notes: list[str]
) -> None:
    with collect_warnings() as messages:
        read_rows(write(tmp_path, name, text))
    assert messages == notes


@pytest.mark.parametrize(
    ("name", "text", "layout", "line", "message", "really"),
    [
        ("a.csv", "query_id,item_id,rank\nq,i,1\n", "trec", 1, "1 cells, not 6", "table"),
        ("a.tsv", "query_id\titem_id\tscore\nq\ti\t1\n", "elliot", 1, "'score' is not", "table"),
        ("a.tsv", "q\ti\t1\n", "table", 1, "does not name", "elliot"),
        ("a.tsv", "q\ti\t1\n", "recbole", 1, "does not name", "elliot"),
        ("a.csv", "query_id,item_id,rank\nq,i,1\n", "ranx", 1, "not JSON", "table"),
        ("a.json", '{"q": {"i": 1}}', "table", 1, "is JSON", "ranx"),
        ("a.json", '{"q": {"i": 1}}', "lenskit", 1, "is JSON", "ranx"),
    ],
)
def test_the_detected_layout_is_suggested_for_a_wrong_one(
    tmp_path: Path, name: str, text: str, layout: ListLayout, line: int, message: str, really: str
) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises((MalformedLine, UnknownColumn), match=message) as caught:
        read_rows(path, layout)
    assert isinstance(caught.value, UserError)
    assert caught.value.where == f"{path}:{line}"
    assert f"it is {really}" in caught.value.remedy


def test_a_file_with_a_named_layout_may_have_any_suffix(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path, "ItemKNN_nn=40.out", "1\t7\t0.5\n"), "elliot")
    assert rows.item_ids.ids.tolist() == ["7"]


def test_the_lenskit_layout_includes_plain_tables(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "user_id,item_id,score,rank\nq,i,1,1\n")
    assert read_rows(path, "lenskit").query_ids.ids.tolist() == ["q"]


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


@pytest.mark.parametrize(
    ("items", "layout"),
    [([[{"item_id": 1}]], "lenskit"), ([[1]], "table"), ([1], "table")],
)
def test_parquet_with_lists_of_items_is_in_lenskit_layout(
    tmp_path: Path, items: Any, layout: str
) -> None:
    parquet.write_table(pa.table({"user_id": [1], "items": items}), tmp_path / "a.parquet")
    assert detect_layout(tmp_path / "a.parquet") == layout


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ("user_id item_id rank score", "user_id item_id rank score"),  # LensKit, RecTools
        ("userId itemId rank rating", "userId itemId rank rating"),
        ("q_id doc_id rank score", "q_id doc_id rank score"),  # ranx
        ("User Item rank Prediction", "User Item rank Prediction"),
        # a column that has the name of its role comes first
        ("user_id query_id item item_id rank score rating", "query_id item_id rank score"),
        ("timestamp user item_id rank score", "user item_id rank score"),
    ],
)
def test_roles_are_assigned_by_column_name(tmp_path: Path, names: str, columns: str) -> None:
    cells = {name: str(number + 1) for number, name in enumerate(names.split())}
    path = write(tmp_path, "a.csv", "\n".join(map(",".join, (cells, cells.values()))))
    query, item, rank, score = (cells[name] for name in columns.split())
    assert to_tuples(path) == [(query, item, float(score))]
    with collect_warnings():
        rows = read_rows(path)
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [float(rank)]


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_recbole_lists_are_in_file_order(tmp_path: Path, delimiter: str) -> None:
    text = "score:float|item_id:token|user_id:token\n2|b|u\n2|a|u\n".replace("|", delimiter)
    path = write(tmp_path, "a.inter", text)
    assert to_tuples(path) == [("u", "b", 2.0), ("u", "a", 2.0)]
    with collect_warnings():
        assert read_rows(path).in_order
    path = write(tmp_path, "a.csv", "user,item\nu,b\nu,a\n")
    assert to_tuples(path, "recbole") == [("u", "b", None), ("u", "a", None)]


def test_elliot_files_have_no_header(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", '1\t07\t0.5\n1\t"x\t-inf\r\n2\t07\t1e-3\n')
    assert to_tuples(path) == [("1", "07", 0.5), ("1", '"x', -np.inf), ("2", "07", 0.001)]


def to_scores(rows: ListRows) -> dict[str, dict[str, float]]:
    scores = rows.scores
    scores_by_query: dict[str, dict[str, float]] = {}
    for row, (query, item) in enumerate(zip(rows.queries, rows.items, strict=True)):
        score = float(scores[row]) if scores is not None else 0.0
        scores_by_query.setdefault(rows.query_ids.ids[query], {})[rows.item_ids.ids[item]] = score
    return scores_by_query


def test_scores_by_item_are_read(tmp_path: Path) -> None:
    rows = read_rows(
        write(tmp_path, "a.json", '{"q1": {"d1": 0.9, "d2": 1}, "q2": {"d1": -1e-3}}')
    )
    assert to_scores(rows) == {"q1": {"d1": 0.9, "d2": 1.0}, "q2": {"d1": -0.001}}
    assert rows.in_order


def test_lists_of_items_are_in_list_order(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path, "a.json", '{"196": ["b", "a"], "7": [3]}'))
    assert rows.item_ids.ids[rows.items].tolist() == ["b", "a", "3"]
    assert rows.scores is None
    assert rows.ranks is None
    assert rows.in_order


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1),
        st.dictionaries(
            st.text(st.characters(codec="utf-8"), min_size=1), st.integers(-5, 5), min_size=1
        ),
    )
)
def test_any_run_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("runs") / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps(run).encode()))
    assert to_scores(read_rows(path)) == run


def test_values_of_json_are_located_by_query(tmp_path: Path) -> None:
    rows = read_rows(write(tmp_path, "a.json", '{"q": {"i": 1, "j": 2}, "r": {"i": 3}}'))
    assert rows.place(2).endswith("a.json: query 'r'")


def test_nested_rows_are_lists(tmp_path: Path) -> None:
    lists = [
        [{"item_id": 3, "rank": 1, "score": 2.0}, {"item_id": 1, "rank": 2, "score": 1.0}],
        [],
        [{"item_id": 1, "rank": 1, "score": 9.0}],
    ]
    path = write_nested(tmp_path, lists, user_id=[7, 8, 9])
    rows = read_rows(path)
    # the list of user 8 is empty
    assert rows.query_ids.ids.tolist() == ["7", "8", "9"]
    assert rows.queries.tolist() == [0, 0, 2]
    assert rows.item_ids.ids[rows.items].tolist() == ["3", "1", "1"]
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [1.0, 2.0, 1.0]
    assert [rows.place(1), rows.place(2)] == [f"{path}: row 1", f"{path}: row 3"]


def test_items_without_rank_and_score_are_in_list_order(tmp_path: Path) -> None:
    lists = [[{"item_id": "b"}, {"item_id": "a"}], [{"item_id": "c"}]]
    rows = read_rows(write_nested(tmp_path, lists, query_id=["p", "q"]))
    assert rows.ranks is not None
    assert rows.ranks.tolist() == [1.0, 2.0, 1.0]


def test_nested_lists_may_name_their_dataset(tmp_path: Path) -> None:
    lists = [[{"item_id": "x"}, {"item_id": "y"}], [{"item_id": "z"}]]
    path = write_nested(tmp_path, lists, user_id=[7, 7], dataset=["A", "B"])
    rows = read_rows(path)
    subset = rows.of_dataset("B")
    assert subset.query_ids.ids.tolist() == ["7"]
    assert subset.item_ids.ids.tolist() == ["z"]
    assert subset.place(0) == f"{path}: row 2"


def test_a_null_list_is_empty(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct({"item_id": pa.int64(), "score": pa.float64()}))
    lists = pa.array([None, [{"item_id": 1, "score": 1.0}]], kind)
    rows = read_rows(write_nested(tmp_path, lists, user_id=[1, 2]))
    assert rows.query_ids.ids.tolist() == ["1", "2"]
    assert rows.queries.tolist() == [1]


def test_two_lists_of_the_same_query_are_rejected(tmp_path: Path) -> None:
    lists = [[{"item_id": 1, "rank": 1}], [{"item_id": 2, "rank": 1}]]
    path = write_nested(tmp_path, lists, user_id=[1, 1], model=["a", "b"])
    with pytest.raises(BrokenContract, match="repeats a rank in the list") as caught:
        order_rows(read_rows(path))
    assert caught.value.where == f"{path}: row 2"


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_rows_of_a_dataset_have_only_its_ids(tmp_path: Path, name: str) -> None:
    cells = {"query_id": ["q", "r", "q"], "item_id": ["a", "b", "c"], "rank": [1, 1, 2]}
    table = pa.table({**cells, "dataset": ["X", "Y", "X"]})
    if name == "a.csv":
        table.to_pandas().to_csv(tmp_path / name, index=False)
    else:
        parquet.write_table(table, tmp_path / name)
    lists = read_rows(tmp_path / name)
    subset = lists.of_dataset("X")
    assert subset.query_ids.ids.tolist() == ["q"]
    assert subset.item_ids.ids.tolist() == ["a", "c"]
    assert subset.items.tolist() == [0, 1]
    assert subset.place(1) == lists.place(2)
    assert lists.take(np.array([1, 2])).of_dataset("X").item_ids.ids.tolist() == ["c"]
    assert lists.of_dataset("") is lists
    with pytest.raises(UnknownIdentifier, match="'Z': its column 'dataset' has 'X', 'Y'"):
        lists.of_dataset("Z")


def test_rows_are_sorted_by_list_and_score(tmp_path: Path) -> None:
    lists = read_rows(
        write(tmp_path, "mine.csv", "query_id,item_id,score\na,x,1\nb,x,2\na,y,3\na,z,-inf\n")
    )
    with collect_warnings() as notes:
        unmasked, order = order_rows(lists)
    # rows 0 and 2 are of a, the better one first; the masked row is excluded
    assert order.tolist() == [2, 0, 1]
    assert unmasked.queries.tolist() == [0, 1, 0]
    assert [note[:39] for note in notes] == ["mine.csv: 1 rows are excluded as masks:"]


def test_excluded_rows_do_not_shift_the_reported_line(tmp_path: Path) -> None:
    lists = read_rows(
        write(tmp_path, "mine.csv", "query_id,item_id,score\na,x,-inf\na,y,1\na,y,2\n")
    )
    with collect_warnings(), pytest.raises(BrokenContract, match="'y' occurs twice") as caught:
        order_rows(lists)
    assert caught.value.where.endswith("mine.csv:4")


def check(folder: Path, queries: list[str], items: list[str], query_ids: list[str]) -> None:
    rows = [f"{query},{item},1\n" for query, item in zip(queries, items, strict=True)]
    path = write(folder, "mine.csv", "query_id,item_id,rank\n" + "".join(rows))
    check_list_ids(read_rows(path), make_queries(query_ids, [-1] * len(query_ids)), WORLD)


@pytest.mark.parametrize(
    ("queries", "items", "query_ids", "remedy"),
    [
        (["i1", "i2"], ["p7", "u1"], ["p7"], "its columns of queries and items look swapped"),
        ([" p7 ", "p8 "], ["i1", "i1"], ["p7", "p9"], "' p7 ' is written 'p7' there: 1 of 2"),
        (["7.0", "8.0"], ["i1", "i1"], ["007"], "'7.0' is written '007' there"),
        (["prompt_7", "x"], ["i1", "i1"], ["prompt-7"], "did you mean prompt-7?"),
        (["1", "2"], ["i1", "i1"], ["ana", "ben"], "not the internal numbers of a tool"),
    ],
)
def test_the_most_likely_explanation_is_given(
    tmp_path: Path, queries: list[str], items: list[str], query_ids: list[str], remedy: str
) -> None:
    with pytest.raises(UnknownIdentifier) as caught:
        check(tmp_path, queries, items, query_ids)
    assert remedy in caught.value.remedy
    assert caught.value.where.endswith("mine.csv")


def test_the_ids_of_the_file_and_of_the_queries_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UnknownIdentifier) as caught:
        check(tmp_path, list("abcd"), ["i1"] * 4, ["x", "y"])
    assert caught.value.message == (
        "none of the 4 queries of mine.csv is in the dataset: "
        "it has 'a', 'b', 'c', ..., the dataset 'x', 'y'"
    )


def test_a_known_query_or_user_or_no_row_is_enough(tmp_path: Path) -> None:
    check(tmp_path, ["p1", "x"], ["i1", "i1"], ["p1", "p2"])
    check(tmp_path, ["u1"], ["i1"], ["u0"])
    check(tmp_path, [], [], ["x"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "customer,sku,place,user_id\nq,i1,1,other\nq,i2,2,other\n"),
        ("a.inter", "customer:token\tsku:token\tplace:float\nq\ti1\t1\nq\ti2\t2\n"),
    ],
)
def test_columns_are_renamed(tmp_path: Path, name: str, text: str) -> None:
    columns = (("customer", "query_id"), ("sku", "item_id"), ("place", "rank"))
    paths = [write(tmp_path, name, text), tmp_path / "a.parquet"]
    table = {"customer": ["q", "q"], "sku": ["i1", "i2"], "place": [1, 2]}
    parquet.write_table(pa.table(table), paths[1])
    for path in paths:
        with collect_warnings() as messages:
            rows = read_rows(path, columns=columns)
        assert rows.query_ids.ids.tolist() == ["q"]
        assert rows.item_ids.ids.tolist() == ["i1", "i2"]
        assert rows.ranks is not None
        assert rows.ranks.tolist() == [1, 2]
        assert not any("is the" in message for message in messages)


def test_a_column_that_is_not_there_cannot_be_renamed(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "query_id,item_id,rank\nq,i,1\n")
    with pytest.raises(UnknownColumn, match="no table has a column 'sku'"):
        read_rows(path, columns=(("sku", "item_id"),))
    with pytest.raises(Contradiction, match="two columns are called 'rank'"):
        read_rows(path, columns=(("item_id", "rank"),))
    run = write(tmp_path, "a.trec", "q Q0 i 1 0.5 x\n")
    with pytest.raises(Contradiction, match="read as trec, which does not name its columns"):
        read_rows(run, columns=(("a", "b"),))
