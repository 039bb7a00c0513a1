"""The words of each item's text, in order, as codes."""

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
"""Stands for the review texts of the training rows where columns are named."""

WORD = r"[^\s!-/:-@\[-`{-~\u00a1\u00ab\u00b7\u00bb\u00bf\u2000-\u206f\u3000-\u303f]+"
"""A word of any script, a number or a sign such as an emoji: what neither parts nor ends words."""


@dataclass(frozen=True, eq=False)
class Documents:
    """The words of each item.

    Args:
        codes: Codes of the words in order, from 1, then 0 to the end, ``int32 (n_items, width)``.
        n_words: How many different words there are.
    """

    codes: Codes
    n_words: int

    @property
    def told(self) -> BoolArray:
        """Which items have a word, ``bool[n_items]``."""
        return self.codes[:, 0] > 0


def item_documents(
    data: TrainingData, text: Sequence[str], *, vocabulary: int, max_length: int, width: int = 1
) -> Documents:
    """Return the words of each item, one column after the other, in lower case.

    Words that only items without a training row have are not known to anybody and are left out.

    Args:
        data: The training data.
        text: Columns of the items; ``reviews`` stands for the reviews of the training rows.
        vocabulary: How many words are known, at most: those that stand in most items; of words in
            equally many items those that come first.
        max_length: Words of a text that are read.
        width: How many columns the codes have at least.

    Raises:
        MissingEvidence: Nothing is known of the items, or there are no reviews.
        UnknownColumn: The items have no such column.
    """
    pieces = _pieces(data, text)
    words = _words(pieces.sort_index(kind="stable"), max_length)
    codes, n_words = _coded(words, data.candidates, vocabulary)
    kept = codes > 0
    rows, codes = words.index.to_numpy()[kept], codes[kept]
    places = _places(rows)
    table = np.zeros((data.train.n_items, max(width, places.max(initial=-1) + 1)), dtype=np.int32)
    table[rows, places] = codes
    return Documents(table, n_words)


def warn_of_silence(who: str, documents: Documents, data: TrainingData, *, outcome: str) -> None:
    """Note how many candidates have no text.

    Args:
        who: The model.
        documents: The words of the items.
        data: The training data.
        outcome: What becomes of those items.
    """
    silent = np.count_nonzero(data.candidates & ~documents.told)
    if silent:
        warn(f"{who}: {silent:,} of {np.count_nonzero(data.candidates):,} items {outcome}")


def _pieces(data: TrainingData, text: Sequence[str]) -> pd.Series[Any]:
    """Return pieces of text in the order that they are read, each at the code of its item."""
    found = [_reviews(data) if each == REVIEWS else _column(data, each) for each in text]
    pieces = pd.concat(found)
    lowered: pd.Series[Any] = pieces[pieces.notna()].astype(str).str.lower()
    return lowered


def refuse_unknown_text(data: TrainingData, text: Sequence[str]) -> None:
    """Raise UnknownColumn for a column that the items do not have; MissingEvidence without any."""
    for name in text:
        if name != REVIEWS:
            _column(data, name)


def _column(data: TrainingData, name: str) -> pd.Series[Any]:
    if data.items is None:
        found = "nothing is known of the items, so they have no text"
        remedy = "give the dataset an items table, or choose a model that needs none, such as PMF"
        raise MissingEvidence(found, where="text", remedy=remedy)
    try:
        return data.items.column(name).reset_index(drop=True).astype(object)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where="text", remedy=error.remedy) from error


def _reviews(data: TrainingData) -> pd.Series[Any]:
    if data.reviews is None:
        remedy = "choose a dataset that has reviews, or name columns of the items"
        raise MissingEvidence("there are no reviews to read", where="text", remedy=remedy)
    return pd.Series(data.reviews.texts, index=data.reviews.items, dtype=object)


def _words(pieces: pd.Series[Any], max_length: int) -> pd.Series[Any]:
    """Return the first words of each item, one a row, each at the code of its item."""
    counts = pieces.str.count(WORD)
    before = counts.groupby(level=0).cumsum() - counts
    read = pieces[(before < max_length).to_numpy() & (counts > 0).to_numpy()]
    words = read.str.findall(WORD).explode()
    return words[_places(words.index.to_numpy()) < max_length]


def _coded(words: pd.Series[Any], candidates: BoolArray, vocabulary: int) -> tuple[AnyArray, int]:
    """Return the code of each word, from 1, or 0 for one not known; and how many are known."""
    codes, every = pd.factorize(words)
    pairs = np.unique(words.index.to_numpy(dtype=np.int64) * max(len(every), 1) + codes)
    told = pairs[candidates[pairs // max(len(every), 1)]]
    spread = np.bincount(told % max(len(every), 1), minlength=len(every))
    known = np.argsort(-spread, kind="stable")[: min(vocabulary, np.count_nonzero(spread))]
    place = np.zeros(len(every), dtype=np.int32)
    place[known] = np.arange(1, known.size + 1)
    return place[codes], known.size


def _places(rows: AnyArray) -> AnyArray:
    """Return the place of each entry among those of its row, from 0; rows ascend."""
    return np.arange(rows.size) - np.searchsorted(rows, rows)
