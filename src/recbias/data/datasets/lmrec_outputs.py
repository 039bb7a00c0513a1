"""The output tables of the LMRec authors: one row for each sentence, label and rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import BoolArray, Codes
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, NothingLeft
from recbias.core.stage_context import warn
from recbias.formats.delimited import require_every_line
from recbias.formats.tables import TableColumns, TableFile, read_file

COLUMNS = TableColumns(
    needed={
        **dict.fromkeys(("example_label", "input_sentence", "label", "recommended_item"), "id"),
        "rank": "float64",
    },
    optional={
        **dict.fromkeys(("categories", "price"), "text"),
        **dict.fromkeys(("secondary_example_label", "secondary_label"), "text"),
        "avg_stars": "float64",
    },
)

COMMA_CATEGORIES = (
    "Beer, Wine & Spirits",
    "Books, Mags, Music & Video",
    "Used, Vintage & Consignment",
    "Wills, Trusts, & Probates",
)
"""Yelp's categories with a comma in their name."""

BUSINESS = ["recommended_item", "avg_stars", "price_level", "categories"]
"""The columns that identify a business; branches share a name."""

_SIGNS = np.array([None, "$", "$$", "$$$", "$$$$"], dtype=object)


@dataclass(frozen=True, eq=False)
class Outputs:
    """The content of one or more output tables.

    Args:
        rows: A row for each sentence, label and rank, with ``kind``, the columns of the file and
            ``price_level``.
        items: The businesses: ``name``, ``price``, ``price_level``, ``categories``, ``stars``.
        lists: A row for each sentence and rank, by sentence and from the best rank down:
            ``input_sentence`` and ``item`` (a code).
    """

    rows: pd.DataFrame
    items: Attributes
    lists: pd.DataFrame


def read_outputs(paths: Sequence[Path]) -> Outputs:
    """Read the rows, businesses and lists of files named ``yelp_qa_<kind>.csv``.

    Raises:
        MissingFile: A file does not exist.
        UnknownColumn: A file lacks a column.
        MalformedLine: A price is not a level from 1 to 4, a rank is missing, or a sentence has two
            items at one rank.
        NothingLeft: The files have no rows.
    """
    tables, frames = zip(*(_read(path) for path in paths), strict=True)
    rows = pd.concat(frames, ignore_index=True)
    if rows.empty:
        remedy = "download it again, or name another file"
        raise NothingLeft("has no rows", where=str(paths[0]), remedy=remedy)
    rows["business"] = rows.groupby(BUSINESS, sort=False, dropna=False).ngroup()
    _refuse_two_items(rows, tables, np.cumsum([len(frame) for frame in frames]))
    lists = rows.drop_duplicates(["input_sentence", "rank"]).sort_values(
        ["input_sentence", "rank"], kind="stable"
    )
    items, codes = _encode_items(lists)
    lists = pd.DataFrame({"input_sentence": lists["input_sentence"].to_numpy(), "item": codes})
    return Outputs(rows, items, lists)


def parse_kind(path: Path) -> str:
    """Return the kind of sentences of a file, from its name.

    >>> parse_kind(Path("yelp_qa_names.csv"))
    'names'
    """
    return path.name.partition(".")[0].removeprefix("yelp_qa_")


def _read(path: Path) -> tuple[TableFile, pd.DataFrame]:
    with require_every_line():
        table = read_file(path, COLUMNS)
    frame = table.rows.table.to_pandas()
    for name in [name for name in COLUMNS.optional if name not in frame.columns]:
        frame[name] = np.nan if name == "avg_stars" else None
    frame = frame.replace({"": None})
    frame.insert(0, "kind", parse_kind(path))
    frame["price_level"] = _parse_levels(frame["price"], table)
    _refuse_rows(~np.isfinite(frame["rank"].to_numpy()), "there is no rank", table)
    columns = ["input_sentence", "label", "secondary_label", "rank", *BUSINESS]
    is_repeated = frame.duplicated(columns).to_numpy()
    if n_repeated := int(is_repeated.sum()):
        warn(f"{path.name}: excluded {n_repeated:,} rows of repeated lists")
    return table, frame[~is_repeated].assign(row=np.flatnonzero(~is_repeated))


def _parse_levels(prices: pd.Series[Any], table: TableFile) -> pd.Series[Any]:
    """Return ``2``, ``2.0`` and ``$$`` as 2; a missing price as NaN."""
    texts = prices.astype(object).str.strip()
    signs = texts.str.fullmatch(r"\$+").eq(True)  # noqa: FBT003  a value, no flag
    numbers = pd.to_numeric(texts.mask(signs), errors="coerce")
    levels = numbers.where(~signs, texts.str.len()).astype(np.float64)
    is_missing = texts.isna() | texts.str.casefold().isin(["nan", "none"])
    is_wrong = ~is_missing & ~levels.isin([1, 2, 3, 4])
    message = "the price is not a level from 1 to 4 or $ to $$$$"
    _refuse_rows(is_wrong.to_numpy(dtype=bool), message, table)
    return levels


def _refuse_rows(is_wrong: BoolArray, message: str, table: TableFile) -> None:
    if is_wrong.any():
        row = int(np.flatnonzero(is_wrong)[0])
        raise MalformedLine(message, where=table.where(row), remedy="correct the line")


def _refuse_two_items(rows: pd.DataFrame, tables: Sequence[TableFile], ends: Any) -> None:
    """Refuse a sentence that has different lists under different labels."""
    first = rows.groupby(["input_sentence", "rank"], sort=False)["business"].transform("first")
    conflicts = np.flatnonzero((first != rows["business"]).to_numpy())
    if conflicts.size:
        row = rows.iloc[int(conflicts[0])]
        table = tables[int(np.searchsorted(ends, conflicts[0], side="right"))]
        message = f"{row['input_sentence']!r} has two items at rank {row['rank']:g}"
        remedy = "keep the rows of one list of that sentence"
        raise MalformedLine(message, where=table.where(int(row["row"])), remedy=remedy)


def _encode_items(lists: pd.DataFrame) -> tuple[Attributes, Codes]:
    """Return the businesses, and the code of each row of the lists.

    Branches with identical attributes are distinct items only if one list has both of them.
    """
    branch = lists.groupby(["input_sentence", "business"], sort=False).cumcount()
    lists = lists.assign(branch=branch)
    businesses = lists.drop_duplicates(["business", "branch"]).sort_values([*BUSINESS, "branch"])
    names = businesses["recommended_item"]
    number = (businesses.groupby("recommended_item").cumcount() + 1).astype(str)
    is_shared = names.duplicated(keep=False)
    ids = names.where(~is_shared, names + " (" + number + ")").to_numpy(dtype=object)
    is_repeated = pd.Series(ids).duplicated().to_numpy()
    if is_repeated.any():
        message = f"two businesses would both be named {ids[is_repeated][0]!r}"
        raise MalformedLine(message, remedy="rename one of them")
    vocabulary, codes = Vocabulary.encode(ids)
    keys = pd.MultiIndex.from_frame(businesses[["business", "branch"]])
    list_keys = pd.MultiIndex.from_frame(lists[["business", "branch"]])
    businesses = businesses.iloc[np.argsort(codes)]
    levels = businesses["price_level"].to_numpy()
    columns = {
        "name": businesses["recommended_item"].to_numpy(dtype=object),
        "price": _SIGNS[np.nan_to_num(levels).astype(int)],
        "price_level": levels,
        "categories": _split_categories(businesses["categories"]).to_numpy(dtype=object),
        "stars": businesses["avg_stars"].to_numpy(dtype=np.float64),
    }
    item_codes = codes[keys.get_indexer(list_keys)]
    return Attributes(vocabulary, pd.DataFrame(columns)), item_codes


def _split_categories(categories: pd.Series[Any]) -> pd.Series[Any]:
    """Return ``a, b`` as ``a|b``, without splitting names that contain a comma."""
    texts = categories.astype(object)
    for name in COMMA_CATEGORIES:
        texts = texts.str.replace(name, name.replace(",", "\0"), regex=False)
    texts = texts.str.replace(r",\s*", SEPARATOR, regex=True).str.replace("\0", ",", regex=False)
    return texts.astype(object).where(texts.notna(), None)
