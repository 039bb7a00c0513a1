"""Labels that the words of several slots carry together: whether two persons have one gender."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.queries.groups import Groups
from recbias.metrics.prompts.filled_words import encode_column, list_other_columns

MAX_SLOTS = 3
"""The largest number of slots whose words are tested for determining a label together."""


def find_slot_columns(labels: Attributes, groups: Groups, labelled: BoolArray) -> list[str]:
    """Return the fewest columns of words, at least two, that together determine the label.

    Columns that are determined by another one (the gender of a word) hold no words, and neither do
    texts that occur in only one query. If no few columns determine the label, all word columns are
    returned.

    Args:
        labels: The queries with their labels and words.
        groups: The label value of each query.
        labelled: Which queries are considered, ``bool[q]``.
    """
    excluded = list_other_columns(groups.by)
    columns = [name for name in labels.names if name not in excluded]
    codes = {name: encode_column(labels, name)[labelled] for name in columns}
    words = {name: column for name, column in codes.items() if _holds_words(column)}
    words = _drop_determined_columns(words)
    for size in range(2, min(len(words), MAX_SLOTS) + 1):
        for names in combinations(words, size):
            if _determines(_cross([words[name] for name in names]), groups.codes[labelled]):
                return list(names)
    return list(words)


def encode_unit_words(labels: Attributes, columns: Sequence[str], rows: AnyArray) -> AnyArray:
    """Return the word of each unit in each slot, ``int[f, u]``, from 0 in each slot.

    Args:
        labels: The queries with their words.
        columns: The columns of the slots.
        rows: One query of each unit.
    """
    words = [encode_column(labels, name)[rows] for name in columns]
    return np.stack([np.unique(codes, return_inverse=True)[1] for codes in words])


def is_crossed(words: AnyArray) -> bool:
    """Return whether the units are all combinations of words, each once and in order.

    >>> is_crossed(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]))
    True
    """
    sizes = tuple((words.max(axis=1) + 1).tolist())
    units = np.ravel_multi_index(tuple(words), sizes)
    return bool(np.array_equal(units, np.arange(np.prod(sizes))))


def has_shared_words(words: AnyArray) -> bool:
    """Return whether a word occurs in several units, ``int[f, u]``."""
    return any(np.unique(codes).size < codes.size for codes in words)


def _holds_words(codes: AnyArray) -> bool:
    n_words = np.unique(codes).size
    return bool(codes.min(initial=0) >= 0) and 1 < n_words < codes.size


def _drop_determined_columns(codes: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """Drop columns that another column determines; of two equivalent columns, the later."""
    remaining = dict(codes)
    for name in reversed(codes):
        column = remaining.pop(name)
        if not any(_determines(other, column) for other in remaining.values()):
            remaining[name] = column
    return {name: codes[name] for name in codes if name in remaining}


def _determines(codes: AnyArray, values: AnyArray) -> bool:
    """Return whether each code occurs with one value only."""
    return bool(np.unique(_cross([codes, values])).size == np.unique(codes).size)


def _cross(columns: Sequence[AnyArray]) -> AnyArray:
    """Return one code from 0 for each combination that occurs."""
    crossed = np.zeros_like(columns[0])
    for codes in columns:
        cells = crossed * (codes.max(initial=0) + 1) + codes
        crossed = np.unique(cells, return_inverse=True)[1]
    return crossed
