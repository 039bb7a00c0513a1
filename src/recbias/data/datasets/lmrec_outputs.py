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
from recbias.formats.strict_tables import every_line
from recbias.formats.tables import TableFile, Wanted, read_file

WANTED = Wanted(
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

COMMAS = (
    "Beer, Wine & Spirits",
    "Books, Mags, Music & Video",
    "Used, Vintage & Consignment",
    "Wills, Trusts, & Probates",
)
"""Yelp's categories with a comma in their name."""

BUSINESS = ["recommended_item", "avg_stars", "price_level", "categories"]
"""What one business is told from another by; names alone are shared by branches."""

_SIGNS = np.array([None, *("$" * each for each in range(1, 5))], dtype=object)


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a file or several hold.

    Args:
        rows: A row for each sentence, label and rank, with ``kind``, the columns of the file and
            ``price_level``.
        items: The businesses: ``name``, ``price``, ``price_level``, ``categories``, ``stars``.
        places: A row for each sentence and rank, by sentence and from the best down:
            ``input_sentence`` and ``item`` (a code).
    """

    rows: pd.DataFrame
    items: Attributes
    places: pd.DataFrame


def read_outputs(paths: Sequence[Path]) -> Outputs:
    """Return the rows, businesses and lists of files, each named ``yelp_qa_<kind>.csv``.

    Raises:
        MissingFile: A file is not there.
        UnknownColumn: It lacks a column.
        MalformedLine: A price is no level from 1 to 4, a rank is missing, or a sentence has two
            items at one rank.
        NothingLeft: The files have no rows.
    """
    tables = [_read(path) for path in paths]
    rows = pd.concat([frame for _, frame in tables], ignore_index=True)
    if rows.empty:
        raise NothingLeft("has no rows", where=str(paths[0]))
    ends = np.cumsum([len(frame) for _, frame in tables])
    rows["business"] = rows.groupby(BUSINESS, sort=False, dropna=False).ngroup()
    _refuse_two_items(rows, [table for table, _ in tables], ends)
    lists = rows.drop_duplicates(["input_sentence", "rank"]).sort_values(
        ["input_sentence", "rank"], kind="stable"
    )
    items, codes = _items(lists)
    places = pd.DataFrame({"input_sentence": lists["input_sentence"].to_numpy(), "item": codes})
    return Outputs(rows, items, places)


def kind_of(path: Path) -> str:
    """Return the kind of sentences of a file, from its name.

    >>> kind_of(Path("yelp_qa_names.csv"))
    'names'
    """
    return path.name.partition(".")[0].removeprefix("yelp_qa_")


def _read(path: Path) -> tuple[TableFile, pd.DataFrame]:
    with every_line():
        table = read_file(path, WANTED)
    frame = table.rows.table.to_pandas()
    for name in [each for each in WANTED.optional if each not in frame.columns]:
        frame[name] = np.nan if name == "avg_stars" else None
    frame = frame.replace({"": None})
    frame.insert(0, "kind", kind_of(path))
    frame["price_level"] = _levels(frame["price"], table)
    _refuse(~np.isfinite(frame["rank"].to_numpy()), "there is no rank", table)
    again = frame.duplicated(["input_sentence", "label", "secondary_label", "rank", *BUSINESS])
    if again.any():
        warn(f"{path.name}: {int(again.sum()):,} rows of a list that stands twice count once")
    return table, frame[~again.to_numpy()].assign(row=np.flatnonzero(~again.to_numpy()))


def _levels(prices: pd.Series[Any], table: TableFile) -> pd.Series[Any]:
    """Return ``2``, ``2.0`` and ``$$`` as 2; a missing price as NaN."""
    texts = prices.astype(object).str.strip()
    signs = texts.str.fullmatch(r"\$+").eq(True)  # noqa: FBT003  a value, no flag
    numbers = pd.to_numeric(texts.mask(signs), errors="coerce")
    levels = numbers.where(~signs, texts.str.len()).astype(np.float64)
    wrong = (
        texts.notna() & ~texts.str.casefold().isin(["nan", "none"]) & ~levels.isin([1, 2, 3, 4])
    )
    _refuse(wrong.to_numpy(dtype=bool), "the price is no level from 1 to 4, nor $ to $$$$", table)
    return levels


def _refuse(wrong: BoolArray, found: str, table: TableFile) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise MalformedLine(found, where=table.where(row), remedy="mend the line")


def _refuse_two_items(rows: pd.DataFrame, tables: list[TableFile], ends: Any) -> None:
    """Refuse a sentence whose labels have different lists: it has only one."""
    first = rows.groupby(["input_sentence", "rank"], sort=False)["business"].transform("first")
    wrong = np.flatnonzero((first != rows["business"]).to_numpy())
    if wrong.size:
        at = rows.iloc[int(wrong[0])]
        table = tables[int(np.searchsorted(ends, wrong[0], side="right"))]
        found = f"{at['input_sentence']!r} has two items at rank {at['rank']:g}"
        remedy = "keep the rows of one list of that sentence"
        raise MalformedLine(found, where=table.where(int(at["row"])), remedy=remedy)


def _items(lists: pd.DataFrame) -> tuple[Attributes, Codes]:
    """Return the businesses, and the code of each place of the lists.

    Branches that agree in everything are told apart where one list holds them both.
    """
    again = lists.groupby(["input_sentence", "business"], sort=False).cumcount()
    keyed = lists.assign(again=again)
    known = keyed.drop_duplicates(["business", "again"]).sort_values([*BUSINESS, "again"])
    names = known["recommended_item"]
    number = (known.groupby("recommended_item").cumcount() + 1).astype(str)
    shared = names.duplicated(keep=False)
    ids = names.where(~shared, names + " (" + number + ")").to_numpy(dtype=object)
    if pd.Series(ids).duplicated().any():
        twice = ids[pd.Series(ids).duplicated().to_numpy()][0]
        raise MalformedLine(f"two businesses would be called {twice!r}", remedy="rename one")
    vocabulary, codes = Vocabulary.encode(ids)
    keys = pd.MultiIndex.from_frame(known[["business", "again"]])
    wanted = pd.MultiIndex.from_frame(keyed[["business", "again"]])
    frame = _columns(known.iloc[np.argsort(codes)])
    return Attributes(vocabulary, frame), codes[keys.get_indexer(wanted)]


def _columns(known: pd.DataFrame) -> pd.DataFrame:
    levels = known["price_level"].to_numpy()
    return pd.DataFrame(
        {
            "name": known["recommended_item"].to_numpy(dtype=object),
            "price": _SIGNS[np.nan_to_num(levels).astype(int)],
            "price_level": levels,
            "categories": _joined(known["categories"]).to_numpy(dtype=object),
            "stars": known["avg_stars"].to_numpy(dtype=np.float64),
        }
    )


def _joined(categories: pd.Series[Any]) -> pd.Series[Any]:
    """Return ``a, b`` as ``a|b``; names with a comma of their own stay whole."""
    texts = categories.astype(object)
    for name in COMMAS:
        texts = texts.str.replace(name, name.replace(",", "\0"), regex=False)
    texts = texts.str.replace(r",\s*", SEPARATOR, regex=True).str.replace("\0", ",", regex=False)
    return texts.astype(object).where(texts.notna(), None)
