"""The labels of queries, the templates, and the words that fill their slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import NothingLeft, UserError
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import Groups, group_by, split_crossing
from recbias.core.queries.queries import SAMPLE
from recbias.core.stage_context import warn

TEMPLATE, KIND = "template", "kind"
"""The columns of queries from templates that hold neither words nor labels of words."""

NEUTRAL = "neutral"
"""Another such column: 1 for a template without a word, 0 for all other queries."""

MAX_SLOTS = 3
"""The largest number of slots whose words are tested for determining a label together."""


@contextmanager
def locate_errors(setting: str) -> Iterator[None]:
    """Set the location of errors of the user's input to a setting of the metric."""
    try:
        yield
    except UserError as error:
        error.where = setting
        raise


def group_queries(evidence: Evidence, label: str) -> Groups:
    """Return the groups of the queries by a label of at least two values.

    Raises:
        UnknownColumn: No query carries the label; ``where`` is ``label``.
        NothingLeft: Every cell is missing, or the label has one value only.
    """
    with locate_errors("label"):
        groups = group_by(evidence.queries.labels, label)
        if len(groups.names) < 2:
            message = f"the label {label!r} has one value only, {groups.names[0]}"
            raise NothingLeft(message, remedy="choose a label with at least two values")
    return groups


def lacks_label(evidence: Evidence, label: str) -> bool:
    """Return whether there are queries, and each lacks a label that is a column of them."""
    frame, parts = evidence.queries.labels.frame, list(split_crossing(label))
    if not len(frame) or not set(parts) <= set(frame.columns):
        return False
    return not frame[parts].notna().all(axis="columns").any()


def warn_unlabelled(evidence: Evidence, label: str, n: int) -> None:
    """Warn that ``n`` queries are excluded, since they do not carry the label."""
    if n:
        warn(f"{evidence.metric}: {n:,} queries carry no {label} and are excluded")


def encode_templates(evidence: Evidence) -> AnyArray:
    """Return the template of each query, ``int[q]`` from 0; -1 if it is missing."""
    return encode_column(evidence.queries.labels, TEMPLATE)


def mark_neutral(evidence: Evidence) -> BoolArray:
    """Return which queries are of a template without a word, ``bool[q]``."""
    labels = evidence.queries.labels
    if NEUTRAL not in labels.names:
        return np.zeros(len(labels.frame), dtype=bool)
    return np.asarray(labels.column(NEUTRAL) == 1)


def find_word_columns(labels: Attributes, groups: Groups, labelled: BoolArray) -> list[str]:
    """Return the columns of the words that carry a label, of those queries that have it.

    This is the column with the most distinct words among those in which every word has only one
    label value, if it has more words than the label has values and fewer than there are queries:
    ``name`` for race, ``first`` for the gender of the first of two persons. Without such a column,
    all word columns carry the label together: both persons, if the label is whether their genders
    are equal.
    """
    n_groups = len(groups.names)
    best, most_words = "", n_groups
    columns = _encode_columns(labels, groups, labelled)
    for name, codes in columns.items():
        n_words = np.unique(codes).size
        n_pairs = np.unique(codes * n_groups + groups.codes[labelled]).size
        if codes.min(initial=0) >= 0 and n_words == n_pairs and most_words < n_words < codes.size:
            best, most_words = name, n_words
    return [best] if best else list(columns)


def _encode_columns(
    labels: Attributes, groups: Groups, labelled: BoolArray
) -> dict[str, AnyArray]:
    """Return the cells of all columns but those of the label and the attributes of a template."""
    excluded = {TEMPLATE, KIND, NEUTRAL, SAMPLE, *split_crossing(groups.by)}
    columns = [name for name in labels.names if name not in excluded]
    return {name: encode_column(labels, name)[labelled] for name in columns}


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


def find_slot_columns(labels: Attributes, groups: Groups, labelled: BoolArray) -> list[str]:
    """Return the fewest columns of words, at least two, that together determine the label.

    Columns that are determined by another one (the gender of a word) hold no words, and neither do
    texts that occur in only one query. If no few columns determine the label, all word columns are
    returned.
    """
    columns = _encode_columns(labels, groups, labelled)
    words = {
        name: codes
        for name, codes in columns.items()
        if codes.min(initial=0) >= 0 and 1 < np.unique(codes).size < codes.size
    }
    for name in reversed(tuple(words)):  # of two equivalent columns the earlier remains
        codes = words.pop(name)
        if not any(_determines(other_codes, codes) for other_codes in words.values()):
            words[name] = codes
    words = {name: words[name] for name in columns if name in words}
    for size in range(2, min(len(words), MAX_SLOTS) + 1):
        for names in combinations(words, size):
            if _determines(_cross([words[name] for name in names]), groups.codes[labelled]):
                return list(names)
    return list(words)


def encode_unit_words(labels: Attributes, columns: Sequence[str], rows: AnyArray) -> AnyArray:
    """Return the word of each unit, one query of which is in ``rows``, in each slot.

    ``int[f, u]``, from 0 in each slot.
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
