from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recbias
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import select_reviews
from recbias.core.errors import MalformedLine, MissingFile, NothingLeft, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.data.datasets.tables import Tables
from recbias.formats.delimited.layout import BadLines

ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def load(source: Tables) -> Dataset:
    return source.load(Path("nowhere"), np.random.default_rng(1))


def put(path: Path, text: str) -> Path:
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


def test_the_vocabulary_is_of_all_tables_together(tmp_path: Path) -> None:
    source = Tables(
        interactions=put(tmp_path / "i.csv", "user_id,item_id,rating\nu,a,4\n007,b,2.5\n"),
        items=put(tmp_path / "t.csv", "item_id,genres,year,zip\nc,X|Y,1999,01\na,,2000,5\n"),
        users=put(tmp_path / "u.csv", "user_id,gender\n7,F\n007,M\n"),
    )
    data = load(source)
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


def test_a_mark_at_the_beginning_and_line_ends_of_windows(tmp_path: Path) -> None:
    text = "\ufeffitem_id,user_id,timestamp\r\nb,u,1970-01-01T00:00:09Z\r\na,u,1970-01-02\r\n"
    rows = load(Tables(interactions=put(tmp_path / "i.csv", text))).interactions
    assert rows.item_ids.ids[rows.items].tolist() == ["b", "a"]
    assert rows.times is not None
    assert rows.times.tolist() == [9, 86_400]


def test_items_alone(tmp_path: Path) -> None:
    source = Tables(items=put(tmp_path / "t.csv", "item_id,price\na,$\nb,$$\n"))
    data = load(source)
    assert (len(data.interactions), data.interactions.n_users, data.interactions.n_items) == (
        0,
        0,
        2,
    )
    assert data.users is None
    assert source.gives() == {"items"}


def test_nothing_at_all(tmp_path: Path) -> None:
    data = load(Tables())
    assert (len(data.interactions), len(data.user_ids), len(data.item_ids)) == (0, 0, 0)
    assert Tables().gives() == frozenset()
    assert Tables().files(tmp_path) == []


def test_a_table_without_columns_of_its_own(tmp_path: Path) -> None:
    data = load(Tables(items=put(tmp_path / "t.csv", "item_id\nb\na\n")))
    assert data.items is not None
    assert data.items.frame.shape == (2, 0)


def test_a_header_alone_is_noted(tmp_path: Path) -> None:
    with collect_warnings() as notes:
        data = load(Tables(interactions=put(tmp_path / "i.csv", "user_id,item_id,timestamp\n")))
    assert len(data.interactions) == 0
    assert notes == ["i.csv has no rows"]


def test_a_column_of_empty_timestamps_is_none(tmp_path: Path) -> None:
    path = put(tmp_path / "i.csv", "user_id,item_id,timestamp\nu,a,\n")
    assert load(Tables(interactions=path)).interactions.times is None


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (",a,1,1", "user_id is empty"),
        ("u,,1,1", "item_id is empty"),
        ("u,a,,1", "rating is empty"),
        ("u,a,nan,1", "rating is not a finite number"),
        ("u,a,1e39,1", "rating is not a finite number"),
        ("u,a,good,1", "rating is not a number"),
        ("u,a,1", "has 3 cells, not 4"),
        ("u,a,1,soon", "timestamp is neither"),
        ("u,a,1,", "timestamp is neither"),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, row: str, problem: str) -> None:
    text = f'user_id,item_id,rating,timestamp\n"v\nw",a,1,1\n{row}\nz,b,2,2\n'
    path = put(tmp_path / "i.csv", text)
    with pytest.raises(MalformedLine, match=problem) as caught:
        load(Tables(interactions=path))
    assert caught.value.where == f"{path}:4"
    data = load(Tables(interactions=path, bad_lines="skip"))
    assert data.user_ids.ids.tolist() == ["v\nw", "z"]
    assert data.counts == {"bad_lines": 1}
    assert data.interactions.times is not None
    assert data.interactions.times.tolist() == [1, 2]


@pytest.mark.parametrize("bad_lines", ["error", "skip"])
def test_an_item_with_two_rows_is_named(tmp_path: Path, bad_lines: BadLines) -> None:
    path = put(tmp_path / "t.csv", 'item_id,a\nx,"1\n2"\ny,2\nx,3\n')
    with pytest.raises(MalformedLine, match="item_id 'x' has a row already") as caught:
        load(Tables(items=path, bad_lines=bad_lines))
    assert caught.value.where == f"{path}:5"
    assert f"{path}:2" in caught.value.remedy


def test_an_item_with_two_rows_of_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"item_id": [3, 4, 3]}).to_parquet(path)
    with pytest.raises(MalformedLine, match="'3' has a row already") as caught:
        load(Tables(items=path))
    assert caught.value.where == f"{path}: row 3"


def test_times_and_ratings_of_a_parquet_file(tmp_path: Path) -> None:
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
    there = frame["timestamp"].dt.tz_localize("Asia/Kolkata")
    frame.assign(timestamp=there).to_parquet(path)
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
def test_a_column_that_is_not_there(tmp_path: Path, header: str, column: str, remedy: str) -> None:
    path = put(tmp_path / "i.csv", f"{header}\n1,2\n")
    with pytest.raises(UnknownColumn, match=f"no column '{column}'") as caught:
        load(Tables(interactions=path))
    assert remedy in caught.value.remedy


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        Tables(users=tmp_path / "none.csv").files(tmp_path)


SAID = [
    ("u", "a", 'A "fine" dish,\nsaid twice'),
    ("007", "b", ""),
    ("u", "b", "  "),
    ("7", "a", "é"),
]
PAIRS = "user_id,item_id,rating\nu,a,4\n007,b,2.5\nu,b,1\n7,a,5\nu,c,3\n"


def put_reviews(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    """Write reviews as the name of the file asks."""
    frame = pd.DataFrame(rows, columns=["user_id", "item_id", "text"])
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def said_in(data: Dataset) -> list[tuple[str, str, str]]:
    """Return the reviews of a dataset with the identifiers that were written."""
    assert data.reviews is not None
    users = data.user_ids.ids[data.reviews.users]
    items = data.item_ids.ids[data.reviews.items]
    return list(zip(users, items, data.reviews.texts, strict=True))


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.csv.gz", "r.tsv.gz", "r.parquet"])
def test_reviews_are_kept_as_written(tmp_path: Path, name: str) -> None:
    path = put_reviews(tmp_path / name, SAID)
    source = Tables(interactions=put(tmp_path / "i.csv", PAIRS), reviews=path)
    data = load(source)
    assert said_in(data) == SAID
    assert len(data.interactions) == 5
    assert source.gives() == {"train", "reviews"}
    assert [each.name for each in source.files(tmp_path)] == ["i.csv", name]
    part = select_reviews(data.reviews, data.interactions.take(np.array([0, 4])))
    assert part is not None
    assert part.texts.tolist() == [SAID[0][2]]


def test_reviews_in_which_texts_are_missing(tmp_path: Path) -> None:
    rows = pd.DataFrame({"user_id": ["u", "v"], "item_id": [1, 2], "text": [None, "good"]})
    for texts in (rows["text"], pd.Series([None, None], dtype=object)):
        path = tmp_path / "r.parquet"
        rows.assign(text=texts).to_parquet(path)
        data = load(Tables(reviews=path))
        assert data.reviews is not None
        assert data.reviews.texts.tolist() == ["" if each is None else each for each in texts]
    rows.assign(text=[1.5, 2.5]).to_parquet(path)
    with pytest.raises(MalformedLine, match="numbers, not of text") as caught:
        load(Tables(reviews=path))
    assert caught.value.where == f"{path}: text"


def test_reviews_of_others_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [("x", "a", "no such user"), *SAID[:2], ("u", "z", "no such item"), ("7", "b", "new")]
    source = Tables(
        interactions=put(tmp_path / "i.csv", PAIRS),
        items=put(tmp_path / "t.csv", "item_id\nd\n"),
        reviews=put_reviews(tmp_path / "r.csv", [*rows, ("u", "d", "of the items")]),
    )
    with collect_warnings() as notes:
        data = load(source)
    assert said_in(data) == [*SAID[:2], ("7", "b", "new"), ("u", "d", "of the items")]
    assert data.item_ids.ids.tolist() == ["a", "b", "c", "d"]
    assert data.user_ids.ids.tolist() == ["007", "7", "u"]
    assert notes == ["r.csv: 2 review(s) by others or of other items left out"]
    learned = select_reviews(data.reviews, data.interactions)
    assert learned is not None
    assert learned.texts.tolist() == [text for _, _, text in SAID[:2]]


def test_reviews_by_strangers_alone_are_refused(tmp_path: Path) -> None:
    path = put_reviews(tmp_path / "r.csv", [("tt01", "a", "good"), ("u", "tt02", "bad")])
    with pytest.raises(NothingLeft, match="every review is by a user, or of an item") as caught:
        load(Tables(interactions=put(tmp_path / "i.csv", PAIRS), reviews=path))
    assert caught.value.where == str(path)
    assert "leave interactions out" in caught.value.remedy


def test_reviews_alone_are_the_interactions(tmp_path: Path) -> None:
    items = put(tmp_path / "t.csv", "item_id,title\nc,C\na,A\n")
    source = Tables(items=items, reviews=put_reviews(tmp_path / "r.csv", SAID))
    with collect_warnings() as notes:
        data = load(source)
    rows = data.interactions
    pairs = zip(rows.user_ids.ids[rows.users], rows.item_ids.ids[rows.items], strict=True)
    assert list(pairs) == [(user, item) for user, item, _ in SAID]
    assert (rows.values.tolist(), rows.times) == ([1.0] * 4, None)
    assert rows.item_ids.ids.tolist() == ["a", "b", "c"]
    assert said_in(data) == SAID
    assert notes == []
    assert source.gives() == {"train", "items", "reviews"}


def test_reviews_without_rows(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "user_id,item_id,text\n")
    for interactions in (None, put(tmp_path / "i.csv", PAIRS)):
        with collect_warnings() as notes:
            data = load(Tables(interactions=interactions, reviews=path))
        assert data.reviews is not None
        assert len(data.reviews) == 0
        assert notes == ["r.csv has no rows"]


def test_reviews_without_a_column_of_text(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "user_id,item_id,texts\nu,a,good\n")
    with pytest.raises(UnknownColumn, match="no column 'text'") as caught:
        load(Tables(reviews=path))
    assert "did you mean texts?" in caught.value.remedy


def test_malformed_reviews_are_counted_once(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", "user_id,item_id,text\nu,a,good\n,a,bad\n")
    with pytest.raises(MalformedLine, match="user_id is empty"):
        load(Tables(reviews=path))
    data = load(Tables(reviews=path, bad_lines="skip"))
    assert data.counts == {"bad_lines": 1}
    assert said_in(data) == [("u", "a", "good")]


def test_a_model_learns_from_reviews_of_rated_films(tmp_path: Path) -> None:
    films = {f"{place}": word for place, word in enumerate(("ship", "robot", "waltz"))}
    pairs = [(f"u{user:02d}", item) for item in films for user in range(20)]
    put(
        tmp_path / "ratings.csv",
        "\n".join(["user_id,item_id,rating", *(f"{user},{item},4" for user, item in pairs)]),
    )
    put(
        tmp_path / "films.csv",
        "\n".join(["item_id,title", *(f"{item},The {word}" for item, word in films.items())]),
    )
    rows = [(user, item, f"the {films[item]} was good") for user, item in pairs]
    path = put_reviews(tmp_path / "reviews.csv", rows)
    with gzip.open(tmp_path / "reviews.csv.gz", "wb") as packed:
        packed.write(path.read_bytes())
    tables = {"interactions": "ratings.csv", "items": "films.csv", "reviews": "reviews.csv.gz"}
    spec = {
        "name": "films",
        "dataset": {"name": "tables", **tables},
        "split": {"name": "random", "per": "item", "test": 0.2},
        "models": [{"name": "TFIDF-LR", "ngrams": 1, "min_df": 1}],
        "metrics": ["class_accuracy", "class_MRR"],
        "report": {"formats": ["csv"]},
    }
    (tmp_path / "films.json").write_text(json.dumps(spec), encoding="utf-8")
    run = recbias.run(tmp_path / "films.json", out=tmp_path / "results", data=tmp_path)
    assert run.failures == []
    assert run.metrics.set_index("metric")["value"].to_dict() == {
        "class_accuracy": 1.0,
        "class_MRR": 1.0,
    }
    assert run.metrics["n"].tolist() == [12, 12]
    digests = json.dumps(run.manifest)
    assert "reviews.csv.gz" in digests
