"""The titles of a catalogue, in which the titles of replies are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, Codes
from recbias.core.errors import OutOfRange
from recbias.core.packages import require_packages
from recbias.language.replies.fuzzy_titles import find_nearest_items
from recbias.language.replies.title_entries import (
    MAX_YEAR_DIFFERENCE,
    NO_YEAR,
    TitleEntries,
    build_entries,
    list_search_forms,
    measure_year_difference,
)
from recbias.language.replies.title_forms import list_title_forms, remove_article, split_year

EXACT_SCORE = 100.0
"""The score of a title that equals a form of a title of the catalogue."""


@dataclass(frozen=True, eq=False)
class TitleMatches:
    """The item of each title.

    Args:
        codes: The item, ``int32[n]``; -1 if the catalogue has no such title.
        scores: The similarity, ``float64[n]``: 100 for an exact match, NaN without a match.
        exact: Whether a form of the title equals one of the item.
        ambiguous: Whether another item matched as well, so that popularity decided.
    """

    codes: Codes
    scores: npt.NDArray[np.float64]
    exact: BoolArray
    ambiguous: BoolArray


@dataclass(frozen=True, eq=False)
class CatalogueTitles:
    """The titles of a catalogue and the rule by which other titles match them.

    A title matches an item if, after normalising, one of its forms equals one of the item's, and
    the years differ by at most one or one of the two has no year. Of several items the smaller
    difference of years decides, then the closer form (the whole title before an alternative in
    parentheses), then the popularity, then the order of the catalogue. A title without an exact
    match is compared by ``rapidfuzz.fuzz.ratio``: the most similar item from the threshold on
    matches, if it has the same numbers and the year allows it.

    Args:
        entries: The forms of the titles.
        years: The year of each item, ``int32[n_items]``; 0 if it has none.
        threshold: The smallest similarity, 0 to 100; None for exact matches only.

    Raises:
        OutOfRange: The threshold is not between 0 and 100.
        MissingExtra: There is a threshold, and rapidfuzz is not installed.
    """

    entries: TitleEntries
    years: Codes
    threshold: float | None = 90.0

    def __post_init__(self) -> None:
        """Refuse a threshold that cannot be used."""
        if self.threshold is not None:
            require_packages("matching titles", "rapidfuzz")
            if not 0 < self.threshold <= EXACT_SCORE:
                message = f"{self.threshold} is not above 0 and at most 100"
                remedy = "90 is the default, null is for exact matches only"
                raise OutOfRange(message, where="threshold", remedy=remedy)

    def match(self, titles: Sequence[str], years: Sequence[int | None]) -> TitleMatches:
        """Return the item of each title; repeated titles are looked up once.

        Args:
            titles: The titles, without years.
            years: Their years.
        """
        positions: dict[tuple[str, int], int] = {}
        inverse = [
            positions.setdefault((title, year or NO_YEAR), len(positions))
            for title, year in zip(titles, years, strict=True)
        ]
        matches = self._match_distinct(list(positions))
        return TitleMatches(
            matches.codes[inverse],
            matches.scores[inverse],
            matches.exact[inverse],
            matches.ambiguous[inverse],
        )

    def _match_distinct(self, titles: Sequence[tuple[str, int]]) -> TitleMatches:
        listed = [self._find_exact(title, year) for title, year in titles]
        codes = np.array([code for code, _ in listed], dtype=np.int32)
        ambiguous = np.array([tied for _, tied in listed], dtype=bool)
        exact = codes >= 0
        scores = np.where(exact, EXACT_SCORE, np.nan)
        rest = np.flatnonzero(~exact)
        if self.threshold is not None and rest.size:
            forms = [_shorten(titles[position][0]) for position in rest.tolist()]
            years = np.array([year for _, year in titles], dtype=np.int32)[rest]
            nearest = find_nearest_items(forms, years, self.entries, self.threshold)
            codes[rest], scores[rest] = nearest.codes, nearest.scores
            ambiguous[rest] = nearest.ambiguous
        return TitleMatches(codes, scores, exact, ambiguous)

    def _find_exact(self, title: str, year: int) -> tuple[int, bool]:
        """Return the item of a title, -1 if there is none, and whether popularity decided."""
        forms = list_search_forms(title)
        before_dash = title.partition(" - ")[0]
        for form in [*forms, *(list_search_forms(before_dash) if before_dash != title else [])]:
            rows = self.entries.rows.get(form)
            if rows:
                difference = measure_year_difference(self.entries.years[[*rows]], year)
                allowed = difference <= MAX_YEAR_DIFFERENCE
                if allowed.any():
                    return self._select_first(np.array(rows)[allowed], difference[allowed])
        return -1, False

    def _select_first(self, rows: AnyArray, difference: AnyArray) -> tuple[int, bool]:
        if rows.size == 1:
            return int(self.entries.codes[rows[0]]), False
        levels, codes = self.entries.levels[rows], self.entries.codes[rows]
        order = np.lexsort([self.entries.precedence[rows], levels, difference])
        first = order[0]
        ties = (difference == difference[first]) & (levels == levels[first])
        return int(codes[first]), bool((codes[ties] != codes[first]).any())


def index_titles(
    titles: Sequence[str],
    years: Sequence[int | None] | None = None,
    popularity: AnyArray | None = None,
    *,
    threshold: float | None = 90.0,
) -> CatalogueTitles:
    """Return the index of the titles of a catalogue.

    Args:
        titles: The title of each item in the order of the codes, as MovieLens writes it.
        years: The year of each item; None to read it from the title.
        popularity: The popularity of each item; None if the order of the catalogue decides.
        threshold: See ``CatalogueTitles``.

    >>> films = index_titles(["Matrix, The (1999)", "Seven (a.k.a. Se7en) (1995)"])
    >>> films.match(["the matrix", "Se7en", "Matirx"], [1998, None, 2003]).codes.tolist()
    [0, 1, -1]
    """
    pairs = [split_year(title) for title in titles]
    read_years = [year for _, year in pairs] if years is None else years
    item_years = np.array([year or NO_YEAR for year in read_years], dtype=np.int32)
    counts = np.zeros(len(titles)) if popularity is None else np.asarray(popularity)
    entries = build_entries([name for name, _ in pairs], item_years, counts)
    return CatalogueTitles(entries, item_years, threshold)


def _shorten(title: str) -> str:
    """Return the form that is compared: without parentheses, if it has any, and article."""
    forms = list_title_forms(title)
    return remove_article(forms[min(1, len(forms) - 1)]) if forms else ""
