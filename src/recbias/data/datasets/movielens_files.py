"""The files of every MovieLens release: names, layouts, and what the codes in them mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recbias.formats.delimited.layout import Kind, Layout

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

GENRE_FLAGS = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery"),
    *("Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
"""The genres of ``u.item``, one column of 0 and 1 each, in the order of ``u.genre``."""

NO_GENRE = ("(no genres listed)", "unknown")
"""What stands for a movie without a genre."""

OCCUPATIONS = (
    "other",
    "academic/educator",
    "artist",
    "clerical/admin",
    "college/grad student",
    "customer service",
    "doctor/health care",
    "executive/managerial",
    "farmer",
    "homemaker",
    "K-12 student",
    "lawyer",
    "programmer",
    "retired",
    "sales/marketing",
    "scientist",
    "self-employed",
    "technician/engineer",
    "tradesman/craftsman",
    "unemployed",
    "writer",
)
"""The occupations of ``users.dat`` by their code, from 0 to 20."""


@dataclass(frozen=True)
class TextFile:
    """A file of a release: its name and how it is written."""

    name: str
    layout: Layout


@dataclass(frozen=True, kw_only=True)
class Release:
    """A published MovieLens dataset.

    Args:
        name: Its name, also of its folder.
        inner: The folder inside its archive.
        ratings: The file of ratings.
        movies: The file of movies.
        users: The file of users' demographics, None where there is none.
        tags: The file of users' tags, None where there is none.
    """

    name: str
    inner: str
    ratings: TextFile
    movies: TextFile
    users: TextFile | None = None
    tags: TextFile | None = None


def _dat(columns: Mapping[str, Kind], encoding: str) -> Layout:
    return Layout(columns=columns, delimiter="::", header=False, encoding=encoding)


def _flags() -> Mapping[str, Kind]:
    texts: dict[str, Kind] = dict.fromkeys(("title", "released", "video_released", "url"), "text")
    return {"item": "int32", **texts, **dict.fromkeys(GENRE_FLAGS, "int32")}


def _csv_release(name: str) -> Release:
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
        "u.item", Layout(columns=_flags(), delimiter="|", header=False, encoding="latin-1")
    ),
    users=TextFile("u.user", Layout(columns=USERS_100K, delimiter="|", header=False)),
)
ML_1M = Release(
    name="ml-1m",
    inner="ml-1m",
    ratings=TextFile("ratings.dat", _dat(RATINGS, "latin-1")),
    movies=TextFile("movies.dat", _dat(MOVIES, "latin-1")),
    users=TextFile("users.dat", _dat(USERS_1M, "latin-1")),
)
ML_10M = Release(
    name="ml-10m",
    inner="ml-10M100K",
    ratings=TextFile("ratings.dat", _dat(RATINGS, "utf-8")),
    movies=TextFile("movies.dat", _dat(MOVIES, "utf-8")),
    tags=TextFile("tags.dat", _dat(TAGS, "utf-8")),
)
ML_20M = _csv_release("ml-20m")
ML_25M = _csv_release("ml-25m")
ML_32M = _csv_release("ml-32m")
ML_LATEST_SMALL = _csv_release("ml-latest-small")
