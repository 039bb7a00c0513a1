"""Forms of the published datasets: each file of each folder that a dataset reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recbias.data.books_yelp import Goodbooks10K, Goodreads, Yelp
from recbias.data.lmrec import LMRecRelease
from recbias.data.movielens import MovieLens1M, MovieLens10M, MovieLens100K, MovieLensLatestSmall
from recbias.data.sentences import FILE, GROUPS, CHBias, CrowSPairs, RedditBias
from recbias.data.side import CREW, NAMES, PRINCIPALS, Imdb
from support.faults.files.contents import pack, to_json_lines, to_lines, to_plain_lines
from support.faults.files.forms import Form, make_form
from support.files.lmrec_files import write_release
from support.files.review_files import BUSINESS, REVIEW_YELP

RATINGS = [(1, 10, 5, 1000), (1, 20, 4, 1001), (2, 10, 3, 1002), (3, 30, 1, 1003)]
DATE = "Fri Jan 02 00:00:00 +0000 1970"
RNG = np.random.default_rng(0)


def list_dataset_forms() -> list[Form]:
    """Return a form for each file of each dataset."""
    forms: list[Form] = []
    for name, source, files in _list_folders():
        for path, kind in files:
            content = {path: files[path, kind]}
            content |= {other: data for (other, _), data in files.items()}
            form = make_form(
                f"datasets/{name}",
                content,
                lambda folder, source=source: source.load(folder, RNG),  # type: ignore[misc]
                kind,
            )
            forms.append(form)
    own = {"yelp_qa_names.csv": next(iter(_make_lmrec().values()))}
    for suffix, data in (
        ("csv", own),
        ("csv.gz", {f"{name}.gz": pack(data) for name, data in own.items()}),
    ):
        name = f"yelp_qa_names.{suffix}"
        forms.append(
            make_form(
                "datasets/lmrec-release.path",
                data,
                lambda folder, name=name: LMRecRelease(path=folder / name).load(folder, RNG),  # type: ignore[misc]
            )
        )
    return forms + _list_imdb_forms()


def _list_folders() -> list[tuple[str, Any, Mapping[tuple[str, str], bytes]]]:
    """Return the name of each dataset, the plug-in, and its files with their kinds."""
    csv = {
        ("ratings.csv", ","): to_lines(_columns("userId,movieId,rating,timestamp", RATINGS)),
        ("movies.csv", ","): to_lines(
            {"movieId": ("10", "20"), "title": ("A (1995)", "B, C (2000)"), "genres": ("x|y", "x")}
        ),
        ("links.csv", ","): to_lines(
            {"movieId": ("10", "20"), "imdbId": ("0114709", "1"), "tmdbId": ("862", "")}
        ),
        ("tags.csv", ","): to_lines(
            _columns("userId,movieId,tag,timestamp", [(1, 10, "dark, very", 5)])
        ),
    }
    small = {(f"ml-latest-small/{path}", kind): data for (path, kind), data in csv.items()}
    facts = _columns("item_id,overview,cast,director", [(10, "A film, of", "a|b", "c")])
    small["ml-latest-small-side/items.csv.gz", ","] = pack(to_lines(facts))
    flags = [0] * 18
    movies = [(10, "A (1995)", "01-Jan-1995", "", "http://a", 1, *flags)]
    old = {
        ("ml-100k/u.data", "\t"): to_plain_lines(RATINGS, "\t"),
        ("ml-100k/u.item", "|"): to_plain_lines(movies, "|"),
        ("ml-100k/u.user", "|"): to_plain_lines([(1, 24, "M", "writer", "85711")], "|"),
    }
    dat = {
        ("ratings.dat", "::"): to_plain_lines(RATINGS, "::"),
        ("movies.dat", "::"): to_plain_lines([(10, "A (1995)", "x|y")], "::"),
    }
    users = to_plain_lines([(1, "F", 1, 10, "48067")], "::")
    tags = to_plain_lines([(1, 10, "dark", 5)], "::")
    ml_1m = {(f"ml-1m/{path}", kind): data for (path, kind), data in dat.items()}
    ml_10m = {(f"ml-10m/{path}", kind): data for (path, kind), data in dat.items()}
    return [
        (
            "ml-latest-small",
            MovieLensLatestSmall(side=("cast", "director", "overview", "links", "tags")),
            small,
        ),
        ("ml-100k", MovieLens100K(), old),
        ("ml-1m", MovieLens1M(), {**ml_1m, ("ml-1m/users.dat", "::"): users}),
        ("ml-10m", MovieLens10M(side=("tags",)), {**ml_10m, ("ml-10m/tags.dat", "::"): tags}),
        ("goodbooks-10k", Goodbooks10K(side=("tags",)), _make_goodbooks()),
        ("goodreads", Goodreads(side=("authors", "reviews")), _make_goodreads()),
        ("goodreads as csv", Goodreads(form="csv"), _make_goodreads_csv()),
        ("yelp", Yelp(), _make_yelp()),
        ("lmrec-release", LMRecRelease(city="Boston", kinds=("names",)), _make_lmrec()),
        ("chbias", CHBias(dimension="age"), _make_chbias("txt")),
        ("chbias as csv", CHBias(dimension="age", form="csv"), _make_chbias("csv")),
        ("redditbias", RedditBias(dimension="religion1"), _make_redditbias()),
        ("crows_pairs", CrowSPairs(), _make_crows_pairs()),
    ]


def _columns(names: str, rows: list[tuple[Any, ...]]) -> dict[str, list[str]]:
    columns = zip(*rows, strict=True)
    pairs = zip(names.split(","), columns, strict=True)
    return {name: [*map(str, cells)] for name, cells in pairs}


def _make_goodbooks() -> dict[tuple[str, str], bytes]:
    names = (
        "book_id,goodreads_book_id,authors,original_publication_year,original_title,title,"
        "language_code,average_rating,ratings_count"
    )
    books = [
        (1, 7, "Ann, Bob", 1995, "A", "A", "eng", 4.5, 10),
        (2, 8, "C", "", "", "B", "", 3, 1),
    ]
    tables = {
        "ratings": _columns("user_id,book_id,rating", [(1, 1, 5), (1, 2, 4), (2, 1, 3)]),
        "books": _columns(names, books),
        "book_tags": _columns("goodreads_book_id,tag_id,count", [(7, 1, 5), (8, 2, 3)]),
        "tags": _columns("tag_id,tag_name", [(1, "dark"), (2, "to-read, soon")]),
    }
    return {(f"goodbooks-10k/{name}.csv", ","): to_lines(table) for name, table in tables.items()}


def _make_goodreads() -> dict[tuple[str, str], bytes]:
    books = [
        {"book_id": "20", "title": "B", "num_pages": "24", "authors": []},
        {"book_id": "3", "title": "A", "authors": [{"author_id": "7", "role": ""}]},
    ]
    shelves = [
        {"user_id": "u1", "book_id": "3", "rating": 5, "date_added": DATE},
        {"user_id": "u2", "book_id": "20", "rating": 3, "date_added": DATE},
    ]
    reviews = [{"user_id": "u2", "book_id": "20", "rating": 3, "review_text": "good"}]
    files: dict[str, list[Any]] = {
        "books_children": books,
        "interactions_children": shelves,
        "reviews_children": reviews,
        "book_authors": [{"author_id": "7", "name": "Ann|e"}],
    }
    return {
        (f"goodreads/goodreads_{name}.json.gz", "jsonl"): pack(to_json_lines(records))
        for name, records in files.items()
    }


def _make_goodreads_csv() -> dict[tuple[str, str], bytes]:
    names = "user_id,book_id,is_read,rating,is_reviewed"
    tables = {
        "goodreads_interactions": _columns(names, [(0, 0, 1, 5, 0), (2, 1, 1, 3, 1)]),
        "book_id_map": _columns("book_id_csv,book_id", [(0, 3), (1, 20)]),
        "user_id_map": _columns("user_id_csv,user_id", [(0, "u1"), (2, "u2")]),
    }
    files = {(f"goodreads/{name}.csv", ","): to_lines(table) for name, table in tables.items()}
    books = "goodreads/goodreads_books_children.json.gz", "jsonl"
    return {**files, books: _make_goodreads()[books]}


def _make_yelp() -> dict[tuple[str, str], bytes]:
    businesses = [
        {
            "business_id": "b1",
            "name": "A",
            "city": "Austin",
            "stars": 4.5,
            "attributes": {"RestaurantsPriceRange2": "2"},
            "categories": "Restaurants, Bars",
        },
        {"business_id": "b2", "city": "austin", "attributes": None, "categories": None},
    ]
    row = {"user_id": "u2", "business_id": "b1", "stars": 5, "date": "1970-01-01 00:01:00"}
    reviews = [{**row, "text": "good"}, {**row, "user_id": "u1", "text": ""}]
    return {
        (f"yelp/{BUSINESS}", "jsonl"): to_json_lines(businesses),
        (f"yelp/{REVIEW_YELP}", "jsonl"): to_json_lines(reviews),
    }


def _make_lmrec() -> dict[tuple[str, str], bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = write_release(Path(folder))
        name = path.relative_to(folder).as_posix()
        return {(name, ","): path.read_bytes().replace(b"\r\n", b"\n")}


def _make_chbias(form: str) -> dict[tuple[str, str], bytes]:
    lines = {"age_train.txt": b"a sentence\nshe reads\n"}
    for number, group in enumerate(GROUPS["age"]):
        texts = [f"sentence {number}", f"she reads {number}"]
        lines[f"age_{group}_valid.txt"] = "\n".join(texts).encode()
        copies = {"": ("0", "1"), "replaced_sentence": texts}
        is_txt = form == "txt"
        content = "\n".join(texts).encode() if is_txt else to_lines(copies)
        lines[f"age_{group}_test.{form}"] = content
    kinds = {"txt": "lines", "csv": ","}
    return {(f"chbias/age/{name}", kinds[name[-3:]]): data for name, data in lines.items()}


def _make_redditbias() -> dict[tuple[str, str], bytes]:
    return {
        (
            f"redditbias/religion1/reddit_comments_religion1_{group}_biased_{part}_reduced.csv",
            ",",
        ): to_lines({"id": ("0", "1"), "comments_processed": (f"{part}, {group}", "two")})
        for group in ("jews", "christians")
        for part in ("valid", "test")
    }


def _make_crows_pairs() -> dict[tuple[str, str], bytes]:
    names = "id,sent_more,sent_less,stereo_antistereo,bias_type"
    rows = [(0, "Old, b", "Young, b", "stereo", "age"), (1, "A", "B", "antistereo", "age")]
    return {(f"crows_pairs/{FILE}", ","): to_lines(_columns(names, rows))}


def _list_imdb_forms() -> list[Form]:
    tables = {
        PRINCIPALS: _columns(
            "tconst,ordering,nconst,category", [("tt0000001", 1, "nm1", "actor")]
        ),
        CREW: _columns("tconst,directors", [("tt0000001", "nm1")]),
        NAMES: _columns("nconst,primaryName", [("nm1", "Ann")]),
    }
    files = {name: pack(to_lines(table, "\t")) for name, table in tables.items()}

    def read(folder: Path) -> object:
        source = Imdb(folder, url="http://127.0.0.1:9/")
        return source.fetch_facts(np.array(["1"], dtype=object), folder)

    return [
        make_form("command/data side imdb", {name: data, **files}, read, "\t")
        for name, data in files.items()
    ]
