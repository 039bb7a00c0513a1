"""The nearest title of a catalogue for a title that no entry equals, by rapidfuzz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes
from recbias.language.replies.title_entries import (
    MAX_YEAR_DIFFERENCE,
    TitleEntries,
    iterate_year_groups,
    list_numbers,
    measure_year_difference,
)
from recbias.language.replies.title_forms import remove_article

_BLOCK = 256
"""How many titles are compared with the candidates of their year and length at once."""


@dataclass(frozen=True, eq=False)
class NearestItems:
    """The nearest item of each title.

    Args:
        codes: The item, ``int32[n]``; -1 if none is similar enough.
        scores: The similarity, ``float64[n]``, 0 to 100; NaN if none is similar enough.
        ambiguous: Whether another item is as similar and as close in the year.
    """

    codes: Codes
    scores: AnyArray
    ambiguous: BoolArray


def find_nearest_items(
    forms: Sequence[str], years: Codes, entries: TitleEntries, threshold: float
) -> NearestItems:
    """Return the nearest item of each title that is at least as similar as the threshold.

    The similarity is ``rapidfuzz.fuzz.ratio`` of the forms without leading articles. Both must
    have the same numbers, so that the parts of a series are not confused, and years that differ
    by at most one. The nearest has the highest similarity; of several the year decides, then the
    precedence of the item.

    Args:
        forms: The normalised titles without leading articles.
        years: Their years, ``int32[n]``; 0 if they have none.
        entries: The entries of the catalogue.
        threshold: The smallest similarity, above 0 to 100.
    """
    pairs = [np.empty((0, 3))]
    lengths = np.array([len(form) for form in forms])
    candidates = _Candidates.select(entries)
    for year, positions in iterate_year_groups(years):
        allowed = candidates.with_year(year)
        blocks = _split_by_length(positions, lengths)
        pairs += [_compare(block, forms, allowed, threshold) for block in blocks]
    return _select_nearest(np.concatenate(pairs), forms, years, entries)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Entries without a leading article, sorted by length."""

    entries: TitleEntries
    rows: AnyArray
    lengths: AnyArray

    @classmethod
    def select(cls, entries: TitleEntries) -> _Candidates:
        forms = enumerate(entries.forms)
        rows = np.array([row for row, form in forms if remove_article(form) == form], dtype=int)
        lengths = np.array([len(entries.forms[row]) for row in rows])
        order = np.argsort(lengths, kind="stable")
        return cls(entries, rows[order], lengths[order])

    def with_year(self, year: int) -> _Candidates:
        difference = measure_year_difference(self.entries.years[self.rows], year)
        allowed = difference <= MAX_YEAR_DIFFERENCE
        return _Candidates(self.entries, self.rows[allowed], self.lengths[allowed])

    def with_length(self, length: int, threshold: float) -> AnyArray:
        """Return the rows whose length lets the similarity with one of ``length`` suffice.

        The ratio is 2 LCS / (length + length), and LCS is at most the shorter length.
        """
        share = threshold / (200 - threshold)
        start = np.searchsorted(self.lengths, length * share - 1e-9)
        end = np.searchsorted(self.lengths, length / share + 1e-9, side="right")
        return self.rows[start:end]


def _split_by_length(positions: AnyArray, lengths: AnyArray) -> Iterator[AnyArray]:
    """Yield blocks of positions with the same length."""
    ordered = positions[np.argsort(lengths[positions], kind="stable")]
    for group in np.split(ordered, np.flatnonzero(np.diff(lengths[ordered])) + 1):
        for start in range(0, group.size, _BLOCK):
            yield group[start : start + _BLOCK]


def _compare(
    block: AnyArray, forms: Sequence[str], candidates: _Candidates, threshold: float
) -> AnyArray:
    """Return (position, row, similarity) of every pair that reaches the threshold."""
    from rapidfuzz import fuzz, process

    length = len(forms[block[0]])
    rows = candidates.with_length(length, threshold)
    if not length or not rows.size:
        return np.empty((0, 3))
    queries = [forms[position] for position in block]
    choices = [candidates.entries.forms[row] for row in rows]
    scores = process.cdist(
        queries, choices, scorer=fuzz.ratio, score_cutoff=threshold, dtype=np.float32, workers=1
    )
    query, choice = np.nonzero(scores)
    return np.stack([block[query], rows[choice], scores[query, choice]], axis=1)


def _select_nearest(
    pairs: AnyArray, forms: Sequence[str], years: Codes, entries: TitleEntries
) -> NearestItems:
    nearest = np.full(len(forms), -1, dtype=np.int32)
    scores = np.full(len(forms), np.nan)
    ambiguous = np.zeros(len(forms), dtype=bool)
    equal = [
        list_numbers(forms[position]) == list_numbers(entries.forms[row])
        for position, row in pairs[:, :2].astype(int)
    ]
    pairs = pairs[np.array(equal, dtype=bool)]
    position, row = pairs[:, :2].astype(int).T
    difference = measure_year_difference(entries.years[row], years[position])
    order = np.lexsort([entries.precedence[row], difference, -pairs[:, 2], position])
    position, row, score = position[order], row[order], pairs[order, 2]
    difference, codes = difference[order], entries.codes[row]
    first = np.append(True, position[1:] != position[:-1])[: position.size]
    start = np.flatnonzero(first)[np.cumsum(first) - 1]
    ties = (score == score[start]) & (difference == difference[start]) & (codes != codes[start])
    nearest[position[first]], scores[position[first]] = codes[first], score[first]
    ambiguous[position[ties]] = True
    return NearestItems(nearest, scores, ambiguous)
