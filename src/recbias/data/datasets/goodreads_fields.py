"""The fields of the Goodreads files and the columns built from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.arrays import AnyArray, Ids
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.stage_context import warn
from recbias.formats.delimited import Layout
from recbias.formats.json_files import Fields, to_texts

INTERACTIONS_CSV = Layout(columns={"user_id": "int32", "book_id": "int32", "rating": "float32"})
USER_MAP = Layout(columns={"user_id_csv": "int32", "user_id": "id"})
BOOK_MAP = Layout(columns={"book_id_csv": "int32", "book_id": "id"})

BOOK_TEXTS = ("title", "description", "publisher", "language_code")
BOOK_NUMBERS = ("publication_year", "num_pages", "average_rating", "ratings_count")
"""Numbers that are published as text, empty if unknown."""
RENAMED = {"publication_year": "year", "language_code": "language"}
N_SHELVES = 10

DATE = r"^[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} [+-]\d{4} \d{4}$"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse_dates(dates: Any) -> Any:
    """Parse ``Fri Sep 08 10:44:24 -0700 2017`` to seconds since 1970; other text becomes null.

    >>> import pyarrow as pa
    >>> parse_dates(pa.chunked_array([["Thu Jan 01 01:00:05 +0100 1970", "x"]])).to_pylist()
    [5, None]
    """
    is_date = pc.match_substring_regex(dates, DATE)
    texts = pc.if_else(is_date, dates, pa.scalar(None, pa.string()))

    def cut(start: int, stop: int) -> Any:
        return pc.utf8_slice_codeunits(texts, start, stop)

    numbers = pa.array([f"{month:02d}" for month in range(1, 13)])
    month = numbers.take(pc.index_in(cut(4, 7), value_set=pa.array(MONTHS)).combine_chunks())
    iso = pc.binary_join_element_wise(cut(26, 30), month, cut(8, 10), cut(11, 19), "-")
    times = pc.strptime(iso, format="%Y-%m-%d-%H:%M:%S", unit="s", error_is_null=True)
    hours, minutes = (cut(start, start + 2).cast(pa.int64()) for start in (21, 23))
    offset = pc.add(pc.multiply(hours, 3600), pc.multiply(minutes, 60))
    signed_offset = pc.if_else(pc.equal(cut(20, 21), "-"), pc.negate(offset), offset)
    return pc.subtract(times.cast(pa.int64()), signed_offset)


BOOK = Fields(
    types={
        **dict.fromkeys(("book_id", *BOOK_TEXTS, *BOOK_NUMBERS), pa.string()),
        "popular_shelves": pa.list_(pa.struct([("name", pa.string())])),
        "authors": pa.list_(pa.struct([("author_id", pa.string())])),
    },
    needed=("book_id",),
)
INTERACTION = Fields(
    types={
        **dict.fromkeys(("user_id", "book_id", "date_added"), pa.string()),
        "rating": pa.float64(),
    },
    needed=("user_id", "book_id", "rating"),
    times={"date_added": parse_dates},
)
REVIEW = Fields(
    types=dict.fromkeys(("user_id", "book_id", "review_text"), pa.string()),
    needed=("user_id", "book_id"),
)
AUTHOR = Fields(types=dict.fromkeys(("author_id", "name"), pa.string()), needed=("author_id",))


def build_book_columns(books: Any, authors: Any) -> dict[str, AnyArray]:
    """Return the columns of the table of items, without ``authors`` with their identifiers.

    Authors that the table of authors lacks are counted in a warning.
    """
    columns = {name: to_texts(books[name]) for name in BOOK_TEXTS}
    for name in BOOK_NUMBERS:
        texts = pd.Series(to_texts(books[name]), dtype=object)
        columns[name] = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    columns["shelves"] = _join_field(books["popular_shelves"], "name")
    if authors is None:
        columns["author_ids"] = _join_field(books["authors"], "author_id")
    else:
        columns["authors"] = _join_field(books["authors"], "author_id", authors)
    return {RENAMED.get(name, name): column for name, column in columns.items()}


def _join_field(lists: Any, name: str, names: Any = None) -> Ids:
    """Join a field of the first ten records of each list as ``a|b``.

    With a table ``names``, author identifiers are replaced by names where these are known.
    """
    records = pc.list_slice(pc.fill_null(lists.combine_chunks(), []), 0, N_SHELVES)
    cells = pc.struct_field(records.flatten(), name)
    if names is not None:
        positions = pc.index_in(cells, value_set=names["author_id"].combine_chunks())
        _warn_about_unnamed(cells.filter(positions.is_null()).drop_null())
        cells = pc.coalesce(names["name"].combine_chunks().take(positions), cells)
    cells = pc.replace_substring(pc.fill_null(cells, ""), SEPARATOR, "/")
    sizes = pc.list_value_length(records).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), type=pa.int32())
    return to_texts(pc.binary_join(pa.ListArray.from_arrays(offsets, cells), SEPARATOR))


def _warn_about_unnamed(author_ids: Any) -> None:
    if n_unnamed := len(author_ids.unique()):
        example = author_ids[0].as_py()
        message = f"the file of authors lacks {n_unnamed:,} of the authors ({example} for example)"
        warn(f"{message}: their identifiers stand for their names, which descriptions may hold")
