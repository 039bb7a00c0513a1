from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset
from recbias.core.errors import MalformedLine
from recbias.data.tables import Tables
from recbias.formats.delimited import BadLines

ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def load(source: Tables) -> Dataset:
    return source.load(Path("nowhere"), np.random.default_rng(1))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


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
