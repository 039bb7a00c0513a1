"""The fields of the Goodreads files, and how they become columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Ids
from recbias.core.dataset.attributes import SEPARATOR
from recbias.formats.delimited.layout import Layout
from recbias.formats.json_lines import Fields, texts_of

INTERACTIONS_CSV = Layout(columns={"user_id": "int32", "book_id": "int32", "rating": "float32"})
USER_MAP = Layout(columns={"user_id_csv": "int32", "user_id": "id"})
BOOK_MAP = Layout(columns={"book_id_csv": "int32", "book_id": "id"})

BOOK_TEXTS = ("title", "description", "publisher", "language_code")
BOOK_NUMBERS = ("publication_year", "num_pages", "average_rating", "ratings_count")
"""Numbers that are published as text, blank where they are unknown."""
RENAMED = {"publication_year": "year", "language_code": "language"}
N_SHELVES = 10

DATE = r"^[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} [+-]\d{4} \d{4}$"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def book_fields() -> Fields:
    """Return what is read of a book."""
    import pyarrow as pa

    texts = dict.fromkeys(("book_id", *BOOK_TEXTS, *BOOK_NUMBERS), pa.string())
    shelves = pa.list_(pa.struct([("name", pa.string())]))
    authors = pa.list_(pa.struct([("author_id", pa.string())]))
    types = {**texts, "popular_shelves": shelves, "authors": authors}
    return Fields(types=types, needed=("book_id",))


def interaction_fields() -> Fields:
    """Return what is read of an interaction: a row of a reader's shelves."""
    import pyarrow as pa

    texts = dict.fromkeys(("user_id", "book_id", "date_added"), pa.string())
    return Fields(
        types={**texts, "rating": pa.float64()},
        needed=("user_id", "book_id", "rating"),
        times={"date_added": seconds},
    )


def review_fields() -> Fields:
    """Return what is read of a review."""
    import pyarrow as pa

    types = dict.fromkeys(("user_id", "book_id", "review_text"), pa.string())
    return Fields(types=types, needed=("user_id", "book_id"))


def author_fields() -> Fields:
    """Return what is read of an author."""
    import pyarrow as pa

    return Fields(types=dict.fromkeys(("author_id", "name"), pa.string()), needed=("author_id",))


def seconds(dates: Any) -> Any:
    """Return ``Fri Sep 08 10:44:24 -0700 2017`` in seconds since 1970; null for other text.

    >>> import pyarrow as pa
    >>> seconds(pa.chunked_array([["Thu Jan 01 01:00:05 +0100 1970", "x"]])).to_pylist()
    [5, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = pc.match_substring_regex(dates, DATE)
    texts = pc.if_else(fits, dates, pa.scalar(None, pa.string()))

    def part(start: int, stop: int) -> Any:
        return pc.utf8_slice_codeunits(texts, start, stop)

    numbers = pa.array([f"{each:02d}" for each in range(1, 13)])
    month = numbers.take(pc.index_in(part(4, 7), value_set=pa.array(MONTHS)).combine_chunks())
    iso = pc.binary_join_element_wise(part(26, 30), month, part(8, 10), part(11, 19), "-")
    times = pc.strptime(iso, format="%Y-%m-%d-%H:%M:%S", unit="s", error_is_null=True)
    hours, minutes = (part(at, at + 2).cast(pa.int64()) for at in (21, 23))
    offset = pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60))
    ahead = pc.if_else(pc.equal(part(20, 21), "-"), pc.negate(offset), offset)
    return pc.subtract(times.cast(pa.int64()), ahead)


def book_columns(books: Any, authors: Any) -> dict[str, AnyArray]:
    """Return the columns of the books.

    Args:
        books: The table of books.
        authors: The table of authors, or None: then the authors' ids stand for them.
    """
    columns = {name: texts_of(books[name]) for name in BOOK_TEXTS}
    for name in BOOK_NUMBERS:
        texts = pd.Series(texts_of(books[name]), dtype=object)
        columns[name] = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    columns["shelves"] = _joined(books["popular_shelves"], "name")
    if authors is None:
        columns["author_ids"] = _joined(books["authors"], "author_id")
    else:
        columns["authors"] = _joined(books["authors"], "author_id", authors)
    return {RENAMED.get(name, name): column for name, column in columns.items()}


def _joined(lists: Any, name: str, names: Any = None) -> Ids:
    """Return a list of records as ``a|b``: one field of the first of them, named where known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    short = pc.list_slice(pc.fill_null(lists.combine_chunks(), []), 0, N_SHELVES)
    cells = pc.struct_field(short.flatten(), name)
    if names is not None:
        places = pc.index_in(cells, value_set=names["author_id"].combine_chunks())
        cells = pc.coalesce(names["name"].combine_chunks().take(places), cells)
    cells = pc.replace_substring(pc.fill_null(cells, ""), SEPARATOR, "/")
    sizes = pc.list_value_length(short).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), type=pa.int32())
    return texts_of(pc.binary_join(pa.ListArray.from_arrays(offsets, cells), SEPARATOR))
