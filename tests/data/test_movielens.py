from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Dataset, Vocabulary
from recbias.core.errors import MissingFile
from recbias.data.declared import Folder
from recbias.data.movielens import (
    MovieLens1M,
    MovieLens10M,
    MovieLens20M,
    MovieLens25M,
    MovieLens32M,
    MovieLens100K,
    MovieLensLatestSmall,
    Side,
)

CSV_RELEASES = [
    ("ml-20m", MovieLens20M),
    ("ml-25m", MovieLens25M),
    ("ml-32m", MovieLens32M),
    ("ml-latest-small", MovieLensLatestSmall),
]


def get_items(data: Dataset) -> pd.DataFrame:
    return data.items.frame


def write_csv(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "ratings.csv").write_text(
        "userId,movieId,rating,timestamp\n1,10,4.0,964982703\n2,10,0.5,964981247\n1,9,3.5,9\n"
    )
    (folder / "movies.csv").write_text(
        'movieId,title,genres\n9,"Seven, or Se7en (1995)",Crime|Drama\n'
        "10,Death Note: Desu nôto (2006–2007),(no genres listed)\n11,Hyena Road,War\n",
        encoding="utf-8",
    )
    (folder / "links.csv").write_text("movieId,imdbId,tmdbId\n9,0114369,807\n10,0758742,\n")
    (folder / "tags.csv").write_text(
        'userId,movieId,tag,timestamp\n1,9,"dark, rainy",5\n2,9,a|b,6\n3,9,"dark, rainy",7\n'
    )


@pytest.mark.parametrize(("name", "plugin"), CSV_RELEASES)
def test_csv_releases_are_read(tmp_path: Path, name: str, plugin: type) -> None:
    write_csv(tmp_path / name)
    source = plugin(side=("tags", "links"))
    data = source.load(tmp_path, np.random.default_rng(1))
    rows = data.interactions
    assert rows.user_ids.ids.tolist() == ["1", "2"]
    assert rows.item_ids.ids.tolist() == ["9", "10", "11"]  # a movie without ratings stays
    assert rows.items.tolist() == [1, 1, 0]
    assert rows.values.tolist() == [4.0, 0.5, 3.5]
    assert rows.times.tolist() == [964982703, 964981247, 9]
    frame = get_items(data)
    assert frame["title"].iloc[0] == "Seven, or Se7en (1995)"
    np.testing.assert_array_equal(frame["year"], [1995, 2006, np.nan])
    assert frame["genres"].tolist() == ["Crime|Drama", None, "War"]
    assert frame["imdb_id"].tolist() == ["0114369", "0758742", None]
    assert frame["tmdb_id"].tolist() == ["807", None, None]
    assert frame["tags"].tolist() == ["dark, rainy|a/b", None, None]
    assert data.users is None
    assert source.gives() == {"train", "items"}
    names = {path.name for path in source.files(tmp_path)}
    assert names == {"ratings.csv", "movies.csv", "tags.csv", "links.csv"}


def write_1m(folder: Path, *, ratings: str = "2::5::4::978300760\n1::6::3::978300761\n") -> None:
    folder.mkdir(parents=True)
    (folder / "ratings.dat").write_text(ratings)
    (folder / "users.dat").write_text("1::F::1::10::48067\n2::M::56::16::02460\n")
    (folder / "movies.dat").write_bytes(
        "5::Star Wars: Épisode IV (1977)::Action|Sci-Fi\n6::Amélie (2001) ::Comedy\n".encode(
            "latin-1"
        )
    )


@pytest.mark.parametrize("subfolder", ["ml-1m", "ml-1m/ml-1m"])
def test_ml_1m_is_read_with_demographics(tmp_path: Path, subfolder: str) -> None:
    write_1m(tmp_path / subfolder)
    data = MovieLens1M().load(tmp_path, np.random.default_rng(1))
    assert data.users.frame.to_dict("list") == {
        "age": [1.0, 56.0],
        "gender": ["F", "M"],
        "occupation": ["K-12 student", "self-employed"],
        "zip": ["48067", "02460"],
    }
    assert get_items(data).to_dict("list") == {
        "title": ["Star Wars: Épisode IV (1977)", "Amélie (2001)"],
        "year": [1977.0, 2001.0],
        "genres": ["Action|Sci-Fi", "Comedy"],
    }
    assert data.users.value_labels["age"]["56"] == "56+"
    assert data.counts == {"bad_lines": 0}
    assert MovieLens1M().gives() == {"train", "users", "items"}


def test_ml_10m_is_read_from_the_folder_of_its_archive(tmp_path: Path) -> None:
    folder = tmp_path / "ml-10M100K"
    folder.mkdir()
    (folder / "ratings.dat").write_text("7::122::4.5::838985046\n")
    (folder / "movies.dat").write_text("122::Boomerang (1992)::Comedy|Romance\n")
    (folder / "tags.dat").write_text("15::122::so: funny::1215184630\n15::999::x::1\n")
    data = MovieLens10M(side=("tags",)).load(tmp_path, np.random.default_rng(1))
    assert data.interactions.values.tolist() == [4.5]
    assert get_items(data)["tags"].tolist() == ["so: funny"]
    assert data.users is None


def test_ml_100k_is_read_with_demographics(tmp_path: Path) -> None:
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    (folder / "u.data").write_text("1\t2\t3\t881250949\n")
    (folder / "u.user").write_text("1|24|M|technician|85711\n")
    flags = ["0|1|1" + "|0" * 16, "1" + "|0" * 18]
    (folder / "u.item").write_bytes(
        f"1|Brûlée (1995) (V)|01-Jan-1995||http://x|{flags[0]}\n2|unknown||||{flags[1]}\n".encode(
            "latin-1"
        )
    )
    data = MovieLens100K().load(tmp_path, np.random.default_rng(1))
    assert get_items(data)["genres"].tolist() == ["Action|Adventure", None]
    np.testing.assert_array_equal(get_items(data)["year"], [1995, np.nan])
    assert data.users.frame.iloc[0].tolist() == [24.0, "M", "technician", "85711"]


@pytest.mark.real_data
def test_the_published_ml_1m_is_read(real_data: Path, rng: np.random.Generator) -> None:
    source = MovieLens1M(side=("overview", "cast", "director", "links"))
    with collect_warnings():
        data = source.load(real_data, rng)
    rows = data.interactions
    assert (len(rows), rows.n_users, rows.n_items) == (1_000_209, 6_040, 3_883)
    values, counts = np.unique(rows.values, return_counts=True)
    assert values.tolist() == [1, 2, 3, 4, 5]
    assert counts.tolist() == [56_174, 107_557, 261_197, 348_971, 226_310]
    assert int((data.users.numbers("age") < 18).sum()) == 222
    n_present = get_items(data)[["overview", "cast", "imdb_id", "tmdb_id"]].notna().sum()
    assert n_present.tolist() == [3_845, 3_874, 3_840, 3_837]
    assert get_items(data)["imdb_id"].iloc[0] == "0114709"
    assert rows.times is None
    assert len(source.files(real_data)) == 5


@pytest.mark.real_data
def test_the_published_ml_100k_is_read(real_data: Path, rng: np.random.Generator) -> None:
    data = MovieLens100K().load(real_data, rng)
    rows = data.interactions
    assert (len(rows), rows.n_users, rows.n_items) == (100_000, 943, 1_682)
    assert get_items(data).notna().sum().tolist() == [1_682, 1_681, 1_680]
    assert "Misérables, Les (1995)" in set(get_items(data)["title"])


@pytest.mark.real_data
def test_the_published_latest_small_is_read(real_data: Path, rng: np.random.Generator) -> None:
    data = MovieLensLatestSmall(side=("tags", "links")).load(real_data, rng)
    rows = data.interactions
    assert (len(rows), rows.n_users, rows.n_items) == (100_836, 610, 9_742)
    n_present = get_items(data).notna().sum()
    assert n_present.to_dict() == {
        "title": 9_742,
        "year": 9_730,
        "genres": 9_708,
        "imdb_id": 9_742,
        "tmdb_id": 9_734,
        "tags": 1_572,
    }


def test_the_age_groups_of_ml_1m_have_names() -> None:
    assert MovieLens1M().value_labels["age"]["56"] == "56+"
    assert MovieLens100K().value_labels == {}


@pytest.mark.parametrize("is_relative", [False, True])
def test_side_columns_are_in_the_order_of_the_movies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_relative: bool
) -> None:
    (tmp_path / "ml-1m-side").mkdir()
    text = 'item_id,title,cast,overview\n9,Nine,A|B,"One.\nTwo."\n7,Seven,,\n8,Unknown,C,x\n'
    (tmp_path / "ml-1m-side" / "items.csv.gz").write_bytes(gzip.compress(text.encode()))
    items = Vocabulary.of(["7", "9", "11"])
    monkeypatch.chdir(tmp_path.parent)
    data = Path(tmp_path.name) if is_relative else tmp_path
    source, folder = MovieLens1M(side=("cast", "overview")), Folder(data / "ml-1m")
    columns = source.read_columns(folder, data, Attributes(items, pd.DataFrame(index=range(3))))
    assert {name: column.tolist() for name, column in columns.items()} == {
        "overview": [None, "One.\nTwo.", None],
        "cast": [None, "A|B", None],
    }


@pytest.mark.parametrize(
    ("side", "remedy"),
    [
        (("cast",), "item_id, overview, cast, director"),
        (("links",), "movieId, imdbId, tmdbId"),
        (("tags",), "remove tags from side"),
    ],
)
def test_a_missing_side_table_is_refused_with_its_columns(
    tmp_path: Path, side: tuple[Side, ...], remedy: str
) -> None:
    with pytest.raises(MissingFile) as caught:
        MovieLens1M(side=side).list_side_files(tmp_path)
    assert remedy in caught.value.remedy
