"""The files of every MovieLens release: names, layouts and codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recbias.formats.delimited import Kind, Layout

GENRE_FLAGS = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery"),
    *("Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
"""The genres of ``u.item``, one 0/1 column each, in the order of ``u.genre``."""

RATINGS: Mapping[str, Kind] = {
    "user": "int32",
    "item": "int32",
    "rating": "float32",
    "timestamp": "int64",
}
RATINGS_CSV: Mapping[str, Kind] = {
    "userId": "int32",
    "movieId": "int32",
    "rating": "float32",
    "timestamp": "int64",
}
MOVIES_100K: Mapping[str, Kind] = {
    "item": "int32",
    **dict.fromkeys(("title", "released", "video_released", "url"), "text"),
    **dict.fromkeys(GENRE_FLAGS, "int32"),
}
MOVIES: Mapping[str, Kind] = {"item": "int32", "title": "text", "genres": "text"}
USERS_1M: Mapping[str, Kind] = {
    "user": "int32",
    "gender": "text",
    "age": "int32",
    "occupation": "int32",
    "zip": "text",
}
USERS_100K: Mapping[str, Kind] = {
    "user": "int32",
    "age": "int32",
    "gender": "text",
    "occupation": "text",
    "zip": "text",
}
TAGS: Mapping[str, Kind] = {"user": "int32", "item": "int32", "tag": "text", "timestamp": "int64"}

NO_GENRE = ("(no genres listed)", "unknown")
"""Values of the genre of a movie without genres."""

OCCUPATIONS = (
    *("other", "academic/educator", "artist", "clerical/admin", "college/grad student"),
    *("customer service", "doctor/health care", "executive/managerial", "farmer", "homemaker"),
    *("K-12 student", "lawyer", "programmer", "retired", "sales/marketing", "scientist"),
    *("self-employed", "technician/engineer", "tradesman/craftsman", "unemployed", "writer"),
)
"""The occupations of ``users.dat`` by their code, from 0 to 20."""


@dataclass(frozen=True)
class TextFile:
    """The name and layout of a file of a release."""

    name: str
    layout: Layout


@dataclass(frozen=True, kw_only=True)
class Release:
    """A published MovieLens dataset: its folder, the folder in its archive, and its files."""

    name: str
    inner: str
    ratings: TextFile
    movies: TextFile
    users: TextFile | None = None
    tags: TextFile | None = None


def _make_dat_layout(columns: Mapping[str, Kind], encoding: str) -> Layout:
    return Layout(columns=columns, delimiter="::", header=False, encoding=encoding)


def _make_csv_release(name: str) -> Release:
    movies: Mapping[str, Kind] = {"movieId": "int32", "title": "text", "genres": "text"}
    tags: Mapping[str, Kind] = {"movieId": "int32", "tag": "text"}
    return Release(
        name=name,
        inner=name,
        ratings=TextFile("ratings.csv", Layout(columns=RATINGS_CSV)),
        movies=TextFile("movies.csv", Layout(columns=movies, quoted=True)),
        tags=TextFile("tags.csv", Layout(columns=tags, quoted=True)),
    )


ML_100K = Release(
    name="ml-100k",
    inner="ml-100k",
    ratings=TextFile("u.data", Layout(columns=RATINGS, delimiter="\t", header=False)),
    movies=TextFile(
        "u.item", Layout(columns=MOVIES_100K, delimiter="|", header=False, encoding="latin-1")
    ),
    users=TextFile("u.user", Layout(columns=USERS_100K, delimiter="|", header=False)),
)
ML_1M = Release(
    name="ml-1m",
    inner="ml-1m",
    ratings=TextFile("ratings.dat", _make_dat_layout(RATINGS, "latin-1")),
    movies=TextFile("movies.dat", _make_dat_layout(MOVIES, "latin-1")),
    users=TextFile("users.dat", _make_dat_layout(USERS_1M, "latin-1")),
)
ML_10M = Release(
    name="ml-10m",
    inner="ml-10M100K",
    ratings=TextFile("ratings.dat", _make_dat_layout(RATINGS, "utf-8")),
    movies=TextFile("movies.dat", _make_dat_layout(MOVIES, "utf-8")),
    tags=TextFile("tags.dat", _make_dat_layout(TAGS, "utf-8")),
)
ML_20M = _make_csv_release("ml-20m")
ML_25M = _make_csv_release("ml-25m")
ML_32M = _make_csv_release("ml-32m")
ML_LATEST_SMALL = _make_csv_release("ml-latest-small")
