"""The words that were filled into templates: which columns hold those that carry a label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.queries.groups import Groups, split_crossing

TEMPLATE, KIND = "template", "kind"
"""The columns of queries made from templates that are neither words nor labels of words."""

NEUTRAL = "neutral"
"""Such a column too: 1 for a template that was asked without any word, 0 for all others."""


def word_columns(labels: Attributes, groups: Groups, inside: BoolArray) -> list[str]:
    """Return the columns of the words that carry a label.

    That is the column with most words of which each stands with one label value only, if it has
    more words than there are values, and fewer than queries: ``name`` for race, ``first`` for the
    gender of the first of two persons. Where there is none, all columns carry it together: both
    persons, where the label says whether their genders are the same.

    Args:
        labels: The queries with their labels and words.
        groups: The label values of the queries.
        inside: Which queries are looked at, ``bool[q]``.
    """
    most, found = len(groups.names), ""
    own = own_columns(groups.by)
    others = [name for name in labels.names if name not in own]
    for name in others:
        codes = column_codes(labels, name)[inside]
        n_words = np.unique(codes).size
        n_cells = np.unique(codes * len(groups.names) + groups.codes[inside]).size
        if codes.min(initial=0) >= 0 and n_words == n_cells and most < n_words < codes.size:
            most, found = n_words, name
    return [found] if found else others


def own_columns(by: str) -> set[str]:
    """Return the columns that hold no words: the label's own, and what is said of a template."""
    return {TEMPLATE, KIND, NEUTRAL, *split_crossing(by)}


def column_codes(labels: Attributes, name: str) -> AnyArray:
    """Return the code of each cell, in the order of the values, ``int[q]``; -1 where missing."""
    return np.asarray(pd.factorize(labels.column(name), sort=True)[0], dtype=np.int64)


def filled_codes(
    labels: Attributes, columns: Sequence[str], groups: Groups, inside: BoolArray
) -> AnyArray:
    """Return one code for the words in these columns and the label value, ``int[q]``; else -1.

    The codes are in the order of the words; words that stand with several label values have
    another code with each.
    """
    codes = np.zeros(len(labels.frame), dtype=np.int64)
    for name in columns:
        cells = column_codes(labels, name) + 1
        codes = codes * (cells.max(initial=0) + 1) + cells
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return np.where(inside, codes * len(groups.names) + groups.codes, -1)


def filled_texts(labels: Attributes, columns: Sequence[str], rows: AnyArray) -> Ids:
    """Return the words in some rows, those of several columns joined by ``|``."""
    cells = labels.frame[list(columns)].iloc[rows].to_numpy(dtype=object)
    return np.array(
        ["|".join(str(each) for each in row if pd.notna(each)) for row in cells], dtype=object
    )
