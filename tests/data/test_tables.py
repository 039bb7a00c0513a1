from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import recbias
from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset, select_reviews
from recbias.core.errors import Contradiction, Faults, MalformedLine, NothingLeft, UserError
from recbias.data.tables import Tables
from recbias.formats.delimited import BadLines
from recbias.formats.table_settings import Clean

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
    assert data.items.frame["genres"].tolist() == [None, None, "X|Y"]
    np.testing.assert_array_equal(data.items.frame["year"], [2000, np.nan, 1999])
    assert data.items.frame["zip"].tolist() == ["5", None, "01"]
    assert data.users.frame["gender"].tolist() == ["M", "F", None]
    assert data.items.membership("genres").values == ("X", "Y")
    assert (data.items.kind, data.users.kind) == ("item", "user")
    assert data.interactions.values.tolist() == [4.0, 2.5]
    assert source.gives() == {"train", "items", "users"}
    assert [path.name for path in source.files(tmp_path)] == ["i.csv", "t.csv", "u.csv"]


@pytest.mark.parametrize("with_users", [False, True])
def test_settings_that_only_interactions_could_follow_are_refused(
    tmp_path: Path, *, with_users: bool
) -> None:
    rows = write(tmp_path / "i.csv", "user_id,item_id,rating\nu,a,-1\nv,b,2\n")
    users = write(tmp_path / "u.csv", "user_id,g\nu,F\nv,x\n") if with_users else None
    for settings in (
        {"types": {"rating": "yes_no"}},
        {"separator": {"item_id": "i"}},
        {"types": {"user_id": "text"}},
        *([] if with_users else [{"missing": (-1,)}, {"clean": Clean(trim=True)}]),
    ):
        with pytest.raises(Contradiction, match=r"has no effect: .* read as written"):
            load(Tables(interactions=rows, users=users, **settings))  # type: ignore[arg-type]
    if with_users:
        with collect_warnings() as notes:
            load(Tables(interactions=rows, users=users, missing=("x", -1)))
        (note,) = [note for note in notes if "missing" in note]
        assert "i.csv: rating has values of missing, which acts on no inter" in note


def test_the_columns_that_all_files_lack_are_named_at_once(tmp_path: Path) -> None:
    for name, text in (
        ("u", "who,g\nu,F\n"),
        ("t", "who,sku\nu,a\n"),
        ("l", "who,sku,x\nu,a,1\n"),
    ):
        write(tmp_path / f"{name}.csv", text)
    spec = {
        "name": "columns",
        "dataset": {"name": "tables", "users": f"{tmp_path}/u.csv"},
        "split": {"name": "given", "train": f"{tmp_path}/t.csv", "test": f"{tmp_path}/t.csv"},
        "models": [{"name": "lists", "path": f"{tmp_path}/l.csv"}],
        "metrics": ["HR"],
    }
    with pytest.raises(Faults) as caught:
        recbias.run(spec, out=tmp_path)
    places = [str(fault).partition(": ")[0] for fault in caught.value.faults]
    assert places == ["dataset.users", "split.train", "models[0].path"]


def test_the_help_of_a_split_names_no_setting_of_the_dataset(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "user_id,item_id,rating\nu,a,x\n")
    split = {"name": "given", "train": str(path), "test": str(path)}
    spec = {"name": "help", "dataset": "tables", "split": split, "models": ["MostPop"]}
    with pytest.raises(UserError, match="rating is not a finite number") as caught:
        recbias.run(spec | {"metrics": ["HR"]}, out=tmp_path)
    assert caught.value.remedy == "correct the line"


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


REVIEWS = [
    ("u", "a", 'A "fine" dish,\nin two lines'),
    ("007", "b", ""),
    ("u", "b", "  "),
    ("7", "a", "é"),
]
PAIRS = "user_id,item_id,rating\nu,a,4\n007,b,2.5\nu,b,1\n7,a,5\nu,c,3\n"


def write_reviews(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    """Write reviews in the format of the file name."""
    frame = pd.DataFrame(rows, columns=["user_id", "item_id", "text"])
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def list_reviews(data: Dataset) -> list[tuple[str, str, str]]:
    """Return the reviews of a dataset with their original identifiers."""
    users = data.user_ids.ids[data.reviews.users]
    items = data.item_ids.ids[data.reviews.items]
    return list(zip(users, items, data.reviews.texts, strict=True))


def test_missing_texts_are_empty_and_numbers_are_refused(tmp_path: Path) -> None:
    rows = pd.DataFrame({"user_id": ["u", "v"], "item_id": [1, 2], "text": [None, "good"]})
    for texts in (rows["text"], pd.Series([None, None], dtype=object)):
        path = tmp_path / "r.parquet"
        rows.assign(text=texts).to_parquet(path)
        data = load(Tables(reviews=path))
        assert data.reviews.texts.tolist() == [text or "" for text in texts]
    rows.assign(text=[1.5, 2.5]).to_parquet(path)
    with pytest.raises(MalformedLine, match="numbers, not of text") as caught:
        load(Tables(reviews=path))
    assert caught.value.where == f"{path}: text"


def test_reviews_of_unknown_users_or_items_are_excluded_with_a_warning(tmp_path: Path) -> None:
    rows = [
        ("x", "a", "no such user"),
        *REVIEWS[:2],
        ("u", "z", "no such item"),
        ("7", "b", "new"),
    ]
    source = Tables(
        interactions=write(tmp_path / "i.csv", PAIRS),
        items=write(tmp_path / "t.csv", "item_id\na\nd\n"),
        reviews=write_reviews(tmp_path / "r.csv", [*rows, ("u", "d", "of the items")]),
    )
    with collect_warnings() as warnings:
        data = load(source)
    assert list_reviews(data) == [*REVIEWS[:2], ("7", "b", "new"), ("u", "d", "of the items")]
    assert data.item_ids.ids.tolist() == ["a", "b", "c", "d"]
    assert data.user_ids.ids.tolist() == ["007", "7", "u"]
    assert warnings == ["r.csv: excluded 2 review(s) by other users or of other items"]
    training_reviews = select_reviews(data.reviews, data.interactions)
    assert training_reviews.texts.tolist() == [text for _, _, text in REVIEWS[:2]]


def test_reviews_of_only_unknown_users_or_items_are_refused(tmp_path: Path) -> None:
    path = write_reviews(tmp_path / "r.csv", [("tt01", "a", "good"), ("u", "tt02", "bad")])
    with pytest.raises(NothingLeft, match="every review is by a user or of an item") as caught:
        load(Tables(interactions=write(tmp_path / "i.csv", PAIRS), reviews=path))
    assert caught.value.where == str(path)
    assert "remove interactions" in caught.value.remedy


def test_reviews_without_interactions_are_the_interactions(tmp_path: Path) -> None:
    items = write(tmp_path / "t.csv", "item_id,title\nc,C\na,A\n")
    source = Tables(items=items, reviews=write_reviews(tmp_path / "r.csv", REVIEWS))
    with collect_warnings() as warnings:
        data = load(source)
    rows = data.interactions
    pairs = zip(rows.user_ids.ids[rows.users], rows.item_ids.ids[rows.items], strict=True)
    assert list(pairs) == [(user, item) for user, item, _ in REVIEWS]
    assert (rows.values.tolist(), rows.times) == ([1.0] * 4, None)
    assert rows.item_ids.ids.tolist() == ["a", "b", "c"]
    assert list_reviews(data) == REVIEWS
    assert warnings == []
    assert source.gives() == {"train", "items", "reviews"}
