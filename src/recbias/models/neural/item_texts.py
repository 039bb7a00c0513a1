"""Item texts as sequences of word codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Codes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.core.stage_context import warn

REVIEWS = "reviews"
"""The name that selects the review texts of the training interactions among the columns."""

WORD = r"[^\s!-/:-@\[-`{-~\u00a1\u00ab\u00b7\u00bb\u00bf\u2000-\u206f\u3000-\u303f]+"
"""A word of any script, a number or a symbol such as an emoji; not spaces and punctuation."""


@dataclass(frozen=True, eq=False)
class Documents:
    """The words of the items.

    Args:
        codes: Word codes in order, from 1, padded with 0, ``int32 (n_items, width)``.
        n_words: Number of distinct words.
    """

    codes: Codes
    n_words: int

    @property
    def has_text(self) -> BoolArray:
        """Which items have at least one word, ``bool[n_items]``."""
        return self.codes[:, 0] > 0


def encode_documents(
    data: TrainingData, text: Sequence[str], *, vocabulary: int, max_length: int, width: int = 1
) -> Documents:
    """Return the first words of each item in lower case; texts of columns are concatenated.

    The vocabulary contains words of candidates only, those of most candidates, the earlier ones
    if tied; all other words are excluded. ``width`` is the minimum number of columns of the codes.

    Raises:
        MissingEvidence: The dataset has no items table or no reviews.
        UnknownColumn: The items have no such column.
    """
    texts = pd.concat(
        [_read_reviews(data) if name == REVIEWS else _read_column(data, name) for name in text]
    )
    pieces = texts[texts.notna()].astype(str).str.lower().sort_index(kind="stable")
    words = _split_words(pieces, max_length)
    codes, n_words = _encode_words(words, data.candidates, vocabulary)
    is_word = codes > 0
    items, codes = words.index.to_numpy()[is_word], codes[is_word]
    positions = _count_positions(items)
    n_columns = max(width, positions.max(initial=-1) + 1)
    table = np.zeros((data.train.n_items, n_columns), dtype=np.int32)
    table[items, positions] = codes
    return Documents(table, n_words)


def warn_about_missing_texts(model: str, documents: Documents, data: TrainingData) -> None:
    """Report the number of candidates without text in a warning, with the name of the model."""
    n_silent = np.count_nonzero(data.candidates & ~documents.has_text)
    if n_silent:
        n_items = np.count_nonzero(data.candidates)
        warn(f"{model}: {n_silent:,} of {n_items:,} items have no text")


def validate_text_columns(data: TrainingData, text: Sequence[str]) -> None:
    """Raise UnknownColumn if the items lack a column, MissingEvidence if there are no items."""
    for name in text:
        if name != REVIEWS:
            _read_column(data, name)


def _read_column(data: TrainingData, name: str) -> pd.Series[Any]:
    if data.items is None:
        message = "the dataset has no items table, so the items have no text"
        remedy = "add an items table to the dataset, or choose a model without text, such as PMF"
        raise MissingEvidence(message, where="text", remedy=remedy)
    try:
        return data.items.column(name).reset_index(drop=True).astype(object)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where="text", remedy=error.remedy) from error


def _read_reviews(data: TrainingData) -> pd.Series[Any]:
    if data.reviews is None:
        remedy = "choose a dataset with reviews, or name item columns"
        raise MissingEvidence("the dataset has no reviews", where="text", remedy=remedy)
    return pd.Series(data.reviews.texts, index=data.reviews.items, dtype=object)


def _split_words(pieces: pd.Series[Any], max_length: int) -> pd.Series[Any]:
    counts = pieces.str.count(WORD)
    n_preceding = counts.groupby(level=0).cumsum() - counts
    relevant = pieces[(n_preceding < max_length).to_numpy() & (counts > 0).to_numpy()]
    words = relevant.str.findall(WORD).explode()
    return words[_count_positions(words.index.to_numpy()) < max_length]


def _encode_words(
    words: pd.Series[Any], candidates: BoolArray, vocabulary: int
) -> tuple[AnyArray, int]:
    """Return the code of each word, 0 for words outside the vocabulary, and its size."""
    word_codes, distinct = pd.factorize(words)
    n_distinct = max(len(distinct), 1)
    pairs = np.unique(words.index.to_numpy(dtype=np.int64) * n_distinct + word_codes)
    pairs = pairs[candidates[pairs // n_distinct]]
    n_items = np.bincount(pairs % n_distinct, minlength=len(distinct))
    selected = np.argsort(-n_items, kind="stable")[: min(vocabulary, np.count_nonzero(n_items))]
    new_codes = np.zeros(len(distinct), dtype=np.int32)
    new_codes[selected] = np.arange(1, selected.size + 1)
    return new_codes[word_codes], selected.size


def _count_positions(rows: AnyArray) -> AnyArray:
    """Return the position of each entry in its row, from 0, for ascending rows."""
    return np.arange(rows.size) - np.searchsorted(rows, rows)
