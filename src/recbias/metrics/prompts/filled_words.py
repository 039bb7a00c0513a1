"""The words that fill the slots of templates, and the columns that hold them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.queries.groups import Groups, split_crossing

TEMPLATE, KIND = "template", "kind"
"""The columns of queries from templates that hold neither words nor labels of words."""

NEUTRAL = "neutral"
"""Another such column: 1 for a template without a word, 0 for all other queries."""


def find_word_columns(labels: Attributes, groups: Groups, labelled: BoolArray) -> list[str]:
    """Return the columns of the words that carry a label.

    This is the column with the most distinct words among those in which every word has only one
    label value, if it has more words than the label has values and fewer than there are queries:
    ``name`` for race, ``first`` for the gender of the first of two persons. Without such a column,
    all word columns carry the label together: both persons, if the label is whether their genders
    are equal.

    Args:
        labels: The queries with their labels and words.
        groups: The label value of each query.
        labelled: Which queries are considered, ``bool[q]``.
    """
    n_groups = len(groups.names)
    best, most_words = "", n_groups
    excluded = list_other_columns(groups.by)
    columns = [name for name in labels.names if name not in excluded]
    for name in columns:
        codes = encode_column(labels, name)[labelled]
        n_words = np.unique(codes).size
        n_pairs = np.unique(codes * n_groups + groups.codes[labelled]).size
        if codes.min(initial=0) >= 0 and n_words == n_pairs and most_words < n_words < codes.size:
            best, most_words = name, n_words
    return [best] if best else columns


def list_other_columns(by: str) -> set[str]:
    """Return the columns without words: those of the label, and the attributes of a template."""
    return {TEMPLATE, KIND, NEUTRAL, *split_crossing(by)}


def encode_column(labels: Attributes, name: str) -> AnyArray:
    """Return the code of each cell, in the order of the values, ``int[q]``; -1 if missing."""
    return np.asarray(pd.factorize(labels.column(name), sort=True)[0], dtype=np.int64)


def encode_words(
    labels: Attributes, columns: Sequence[str], groups: Groups, labelled: BoolArray
) -> AnyArray:
    """Return one code for the words of each query and its label value, ``int[q]``, or -1.

    The codes are in the order of the words; words that occur with several label values have a code
    for each.
    """
    codes = np.zeros(len(labels.frame), dtype=np.int64)
    for name in columns:
        cells = encode_column(labels, name) + 1
        codes = codes * (cells.max(initial=0) + 1) + cells
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return np.where(labelled, codes * len(groups.names) + groups.codes, -1)


def join_words(labels: Attributes, columns: Sequence[str], rows: AnyArray) -> Ids:
    """Return the words in some rows, those of several columns joined by ``|``."""
    cells = labels.frame[list(columns)].iloc[rows].to_numpy(dtype=object)
    texts = ["|".join(str(word) for word in row if pd.notna(word)) for row in cells]
    return np.array(texts, dtype=object)
