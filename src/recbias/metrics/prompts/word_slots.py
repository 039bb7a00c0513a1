"""Labels that the words of several slots carry together: whether two persons are of one gender."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.queries.groups import Groups
from recbias.metrics.prompts.filled_words import column_codes, own_columns

MOST_SLOTS = 3
"""A label is looked for in the words of at most so many slots together."""


def slot_columns(labels: Attributes, groups: Groups, inside: BoolArray) -> list[str]:
    """Return the fewest columns of words, two or more, that give the label together.

    Columns that follow from another one (the gender of a word) are no words, and neither are
    texts that stand in one query only. Where no few columns give the label, all words do.

    Args:
        labels: The queries with their labels and words.
        groups: The label values of the queries.
        inside: Which queries are looked at, ``bool[q]``.
    """
    others = [name for name in labels.names if name not in own_columns(groups.by)]
    codes = {name: column_codes(labels, name)[inside] for name in others}
    words = _finest({name: each for name, each in codes.items() if _are_words(each)})
    for size in range(2, min(len(words), MOST_SLOTS) + 1):
        for names in combinations(words, size):
            if _gives(_joined([words[name] for name in names]), groups.codes[inside]):
                return list(names)
    return list(words)


def words_of_units(labels: Attributes, columns: Sequence[str], rows: AnyArray) -> AnyArray:
    """Return the word of each unit in each slot, ``int[f, u]`` from 0 each.

    Args:
        labels: The queries with their words.
        columns: The columns of the slots.
        rows: A query of each unit.
    """
    cells = [column_codes(labels, name)[rows] for name in columns]
    return np.stack([np.unique(each, return_inverse=True)[1] for each in cells])


def is_crossed(words: AnyArray) -> bool:
    """Return whether units are every combination of words once, in their order.

    >>> is_crossed(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]))
    True
    """
    sizes = tuple((words.max(axis=1) + 1).tolist())
    places = np.ravel_multi_index(tuple(words), sizes)
    return bool(np.array_equal(places, np.arange(np.prod(sizes))))


def share_words(words: AnyArray) -> bool:
    """Return whether a word stands in several units, ``int[f, u]``."""
    return any(np.unique(each).size < each.size for each in words)


def _are_words(codes: AnyArray) -> bool:
    n_words = np.unique(codes).size
    return bool(codes.min(initial=0) >= 0) and 1 < n_words < codes.size


def _finest(codes: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """Leave out what follows from another column; of two that say the same, the later."""
    found = dict(codes)
    for name in reversed(codes):
        others = [each for other, each in found.items() if other != name]
        if any(_gives(each, found[name]) for each in others):
            del found[name]
    return found


def _gives(codes: AnyArray, values: AnyArray) -> bool:
    """Return whether each code stands with one value only."""
    return bool(np.unique(_joined([codes, values])).size == np.unique(codes).size)


def _joined(codes: Sequence[AnyArray]) -> AnyArray:
    """Return one code from 0 for each combination that occurs."""
    found = np.zeros_like(codes[0])
    for each in codes:
        found = np.unique(found * (each.max(initial=0) + 1) + each, return_inverse=True)[1]
    return found
