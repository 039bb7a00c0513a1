"""The forms of the titles of a catalogue, as rows of a table with an exact index."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.language.replies.title_forms import list_title_forms, remove_article

NO_YEAR = 0
"""The year of a title without one."""

MAX_YEAR_DIFFERENCE = 1
"""The largest difference between the year of a reply and that of the catalogue."""

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, eq=False)
class TitleEntries:
    """One row for each form of each title of a catalogue.

    Args:
        forms: The normalised form.
        codes: The item, ``int32[e]``.
        levels: How close the form is to the title as written: 0 is the whole title, ``int32[e]``.
            Forms without their leading article follow the forms with it.
        years: The year of the item, ``int32[e]``; 0 if it has none.
        precedence: The place of the item among all items, by decreasing popularity, then by code,
            ``int32[e]``: the smallest wins where nothing else decides.
        rows: The rows of each form.
    """

    forms: tuple[str, ...]
    codes: Codes
    levels: Codes
    years: Codes
    precedence: Codes
    rows: Mapping[str, tuple[int, ...]]


def build_entries(titles: Iterable[str], years: Codes, popularity: AnyArray) -> TitleEntries:
    """Return the entries of titles without years."""
    listed = [
        (form, code, level)
        for code, title in enumerate(titles)
        for level, form in enumerate(list_search_forms(title))
    ]
    rows: dict[str, list[int]] = defaultdict(list)
    for row, (form, _, _) in enumerate(listed):
        rows[form].append(row)
    codes = np.array([code for _, code, _ in listed], dtype=np.int32)
    precedence = np.empty(years.size, dtype=np.int32)
    precedence[np.argsort(-popularity, kind="stable")] = np.arange(years.size)
    return TitleEntries(
        tuple(form for form, _, _ in listed),
        codes,
        np.array([level for _, _, level in listed], dtype=np.int32),
        years[codes],
        precedence[codes],
        {form: tuple(form_rows) for form, form_rows in rows.items()},
    )


def list_search_forms(title: str) -> tuple[str, ...]:
    """Return the forms of a title, then the same forms without their leading article.

    >>> list_search_forms("Matrix, The")
    ('the matrix', 'matrix')
    """
    forms = list_title_forms(title)
    return tuple(dict.fromkeys([*forms, *map(remove_article, forms)]))


def list_numbers(form: str) -> tuple[str, ...]:
    """Return the numbers of a form, which tell the parts of a series apart.

    >>> list_numbers("ocean 11 part 2")
    ('11', '2')
    """
    return tuple(_NUMBER.findall(form))


def measure_year_difference(years: AnyArray, year: AnyArray | int) -> AnyArray:
    """Return the absolute difference of years; the largest allowed if either is absent."""
    unknown = (years == NO_YEAR) | (np.asarray(year) == NO_YEAR)
    return np.where(unknown, MAX_YEAR_DIFFERENCE, np.abs(years - year))


def iterate_year_groups(years: Codes) -> Iterator[tuple[int, AnyArray]]:
    """Yield each distinct year with the positions that have it."""
    for year in np.unique(years):
        yield int(year), np.flatnonzero(years == year)
