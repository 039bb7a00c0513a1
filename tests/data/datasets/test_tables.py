from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset
from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn
from recbias.data.tables import Tables
from recbias.formats.delimited import BadLines

ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def load(source: Tables) -> Dataset:
    return source.load(Path("nowhere"), np.random.default_rng(1))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


@given(pairs=st.lists(st.tuples(ids, ids), min_size=1, max_size=15))
def test_identifiers_are_kept_as_written(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("tables") / "clicks.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
        writer.writerows([("user_id", "item_id"), *pairs])
    rows = load(Tables(interactions=path)).interactions
    users, items = rows.user_ids.ids[rows.users], rows.item_ids.ids[rows.items]
    assert list(zip(users, items, strict=True)) == pairs
    assert rows.values.tolist() == [1.0] * len(pairs)
    assert rows.times is None


def test_the_vocabulary_is_that_of_all_tables_together(tmp_path: Path) -> None:
    source = Tables(
        interactions=write(tmp_path / "i.csv", "user_id,item_id,rating\nu,a,4\n007,b,2.5\n"),
        items=write(tmp_path / "t.csv", "item_id,genres,year,zip\nc,X|Y,1999,01\na,,2000,5\n"),
        users=write(tmp_path / "u.csv", "user_id,gender\n7,F\n007,M\n"),
    )
    with collect_warnings() as notes:
        data = load(source)
    assert "'7' is written '007' there: 1 of 1" in notes[0]
    assert data.item_ids.ids.tolist() == ["a", "b", "c"]
    assert data.user_ids.ids.tolist() == ["007", "7", "u"]
    assert data.items is not None
    assert data.users is not None
    assert data.items.frame["genres"].tolist() == [None, None, "X|Y"]
    np.testing.assert_array_equal(data.items.frame["year"], [2000, np.nan, 1999])
    assert data.items.frame["zip"].tolist() == ["5", None, "01"]
    assert data.users.frame["gender"].tolist() == ["M", "F", None]
    assert data.items.membership("genres").values == ("X", "Y")
    assert (data.items.kind, data.users.kind) == ("item", "user")
    assert data.interactions.values.tolist() == [4.0, 2.5]
    assert source.gives() == {"train", "items", "users"}
    assert [path.name for path in source.files(tmp_path)] == ["i.csv", "t.csv", "u.csv"]


def test_a_byte_order_mark_and_windows_line_ends_are_ignored(tmp_path: Path) -> None:
    text = "\ufeffitem_id,user_id,timestamp\r\nb,u,1970-01-01T00:00:09Z\r\na,u,1970-01-02\r\n"
    rows = load(Tables(interactions=write(tmp_path / "i.csv", text))).interactions
    assert rows.item_ids.ids[rows.items].tolist() == ["b", "a"]
    assert rows.times is not None
    assert rows.times.tolist() == [9, 86_400]


def test_items_without_interactions_are_a_dataset(tmp_path: Path) -> None:
    source = Tables(items=write(tmp_path / "t.csv", "item_id,price\na,$\nb,$$\n"))
    data = load(source)
    assert (len(data.interactions), data.interactions.n_users, data.interactions.n_items) == (
        0,
        0,
        2,
    )
    assert data.users is None
    assert source.gives() == {"items"}


def test_no_tables_are_an_empty_dataset(tmp_path: Path) -> None:
    data = load(Tables())
    assert (len(data.interactions), len(data.user_ids), len(data.item_ids)) == (0, 0, 0)
    assert Tables().gives() == frozenset()
    assert Tables().files(tmp_path) == []


def test_a_table_may_have_only_identifiers(tmp_path: Path) -> None:
    data = load(Tables(items=write(tmp_path / "t.csv", "item_id\nb\na\n")))
    assert data.items is not None
    assert data.items.frame.shape == (2, 0)


def test_a_table_without_rows_has_a_warning(tmp_path: Path) -> None:
    with collect_warnings() as warnings:
        data = load(Tables(interactions=write(tmp_path / "i.csv", "user_id,item_id,timestamp\n")))
    assert len(data.interactions) == 0
    assert warnings == ["i.csv has no rows"]


def test_empty_timestamps_are_no_times(tmp_path: Path) -> None:
    path = write(tmp_path / "i.csv", "user_id,item_id,timestamp\nu,a,\n")
    assert load(Tables(interactions=path)).interactions.times is None


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (",a,1,1", "user_id is empty"),
        ("u,,1,1", "item_id is empty"),
        ("u,a,,1", "rating is empty"),
        ("u,a,nan,1", "rating is not a finite number"),
        ("u,a,1e39,1", "rating is not a finite number"),
        ("u,a,good,1", "rating is not a finite number"),
        ("u,a,1", "has 3 cells, not 4"),
        ("u,a,1,soon", "timestamp is neither"),
        ("u,a,1,", "timestamp is neither"),
    ],
)
def test_a_malformed_row_is_refused_with_its_line_number(
    tmp_path: Path, row: str, problem: str
) -> None:
    text = f'user_id,item_id,rating,timestamp\n"v\nw",a,1,1\n{row}\nz,b,2,2\n'
    path = write(tmp_path / "i.csv", text)
    with pytest.raises(MalformedLine, match=problem) as caught:
        load(Tables(interactions=path))
    assert caught.value.where == f"{path}:4"
    with collect_warnings():
        data = load(Tables(interactions=path, bad_lines="skip"))
    assert data.user_ids.ids.tolist() == ["v\nw", "z"]
    assert data.counts == {"bad_lines": 1}
    assert data.interactions.times is not None
    assert data.interactions.times.tolist() == [1, 2]


@pytest.mark.parametrize("bad_lines", ["error", "skip"])
def test_a_repeated_item_is_refused_with_both_lines(tmp_path: Path, bad_lines: BadLines) -> None:
    path = write(tmp_path / "t.csv", 'item_id,a\nx,"1\n2"\ny,2\nx,3\n')
    with pytest.raises(MalformedLine, match="item_id 'x' has two rows") as caught:
        load(Tables(items=path, bad_lines=bad_lines))
    assert caught.value.where == f"{path}:5"
    assert f"{path}:2" in caught.value.remedy


def test_a_repeated_item_of_a_parquet_file_is_refused_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"item_id": [3, 4, 3]}).to_parquet(path)
    with pytest.raises(MalformedLine, match="'3' has two rows") as caught:
        load(Tables(items=path))
    assert caught.value.where == f"{path}: row 3"


def test_times_and_ratings_of_a_parquet_file_are_converted(tmp_path: Path) -> None:
    path = tmp_path / "i.parquet"
    frame = pd.DataFrame(
        {
            "user_id": ["u", "v"],
            "item_id": [1, 2],
            "rating": [4, 5],
            "timestamp": pd.to_datetime(["1970-01-01 00:00:05", "1970-01-02 00:00:00"]),
        }
    )
    frame.to_parquet(path)
    rows = load(Tables(interactions=path)).interactions
    assert rows.times is not None
    assert rows.times.tolist() == [5, 86_400]
    assert rows.values.tolist() == [4.0, 5.0]
    local_times = frame["timestamp"].dt.tz_localize("Asia/Kolkata")
    frame.assign(timestamp=local_times).to_parquet(path)
    rows = load(Tables(interactions=path)).interactions
    assert rows.times is not None
    assert rows.times.tolist() == [5 - 19_800, 86_400 - 19_800]  # five and a half hours before
    frame.assign(timestamp=[7.0, 8.0]).to_parquet(path)
    rows = load(Tables(interactions=path)).interactions
    assert rows.times is not None
    assert rows.times.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("header", "column", "remedy"),
    [
        ("userid,item_id", "user_id", "did you mean userid?"),
        ("user,item", "user_id", "did you mean user?"),
        ("user_id,movie", "item_id", "the valid names are"),
    ],
)
def test_a_missing_column_suggests_the_nearest_name(
    tmp_path: Path, header: str, column: str, remedy: str
) -> None:
    path = write(tmp_path / "i.csv", f"{header}\n1,2\n")
    with pytest.raises(UnknownColumn, match=f"no column '{column}'") as caught:
        load(Tables(interactions=path))
    assert remedy in caught.value.remedy


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        Tables(users=tmp_path / "none.csv").files(tmp_path)
