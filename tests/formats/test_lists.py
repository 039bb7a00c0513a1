"""Lists of other tools: their layouts, columns and order, and the queries that they answer."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.core.errors import Contradiction, UnknownColumn, UnknownIdentifier, WrongType
from recbias.formats.lists import check_list_ids, check_name, detect_by_line, order_rows, read_rows
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

ROLES = "item is the item_id; prediction is the score"
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


@pytest.mark.parametrize("name", ["mine.xlsx", "mine", "run.lz4", "mine.pkl.gz"])
def test_an_unknown_suffix_needs_a_layout(name: str) -> None:
    with pytest.raises(WrongType, match=name) as caught:
        check_name(Path(name), "auto")
    assert caught.value.where == "path"
    assert ".parquet" in caught.value.remedy
    check_name(Path(name), "elliot")


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
    assert rows.ranks.tolist() == [float(rank)]


def test_elliot_files_have_no_header(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", '1\t07\t0.5\n1\t"x\t-inf\r\n2\t07\t1e-3\n')
    assert to_tuples(path) == [("1", "07", 0.5), ("1", '"x', -np.inf), ("2", "07", 0.001)]


def test_nested_lists_may_name_their_dataset(tmp_path: Path) -> None:
    lists = [[{"item_id": "x"}, {"item_id": "y"}], [{"item_id": "z"}]]
    path = write_nested(tmp_path, lists, user_id=[7, 7], dataset=["A", "B"])
    rows = read_rows(path)
    subset = rows.of_dataset("B")
    assert subset.query_ids.ids.tolist() == ["7"]
    assert subset.item_ids.ids.tolist() == ["z"]
    assert subset.place(0) == f"{path}: row 2"


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
        ordered = order_rows(lists)
    # rows 0 and 2 are of a, the better one first; the masked row is excluded
    assert ordered.number(np.arange(3)).tolist() == [2, 0, 1]
    assert ordered.queries.tolist() == [0, 0, 1]
    assert [note[:39] for note in notes] == ["mine.csv: 1 rows are excluded as masks:"]


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
