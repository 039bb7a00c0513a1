"""Item texts as word codes, and attributes as the fields of factorization machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from annotated_types import MinLen

from recbias.core.arrays import AnyArray, BoolArray, Codes, Matrix
from recbias.core.dataset.attributes import Attributes
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


Columns: TypeAlias = Literal["auto", "none"] | Annotated[tuple[str, ...], MinLen(1)]
"""Columns by name, none, or automatic (see ``select_columns``)."""

MIN_ROWS_PER_VALUE = 10
"""``auto`` selects columns whose values have at least so many rows on average."""


@dataclass(frozen=True, eq=False)
class Fields:
    """The values of each row, as indices into one table of the values of all fields.

    The first field is the row itself, with values 0 to n - 1. A field has as many slots as the
    largest number of values that a row has in it.

    Args:
        values: Index of the value of each slot, ``int32 (n, n_slots)``; 0 for an empty slot.
        shares: Weight of the value of each slot, ``float32 (n, n_slots)``: 1 / number of values of
            the row in the field; 0 for an empty slot.
        widths: Number of slots of each field.
        n_values: Number of values of all fields, including the rows.
    """

    values: npt.NDArray[np.int32]
    shares: npt.NDArray[np.float32]
    widths: tuple[int, ...]
    n_values: int

    @classmethod
    def from_attributes(
        cls, n: int, attributes: Attributes | None, columns: Sequence[str]
    ) -> Fields:
        """Return the fields of ``n`` rows: the row itself and the columns."""
        values = [np.arange(n, dtype=np.int32)[:, None]]
        shares, n_values = [np.ones((n, 1), dtype=np.float32)], n
        for name in columns if attributes is not None else ():
            matrix = attributes.membership(name).matrix  # type: ignore[union-attr]
            indices, weights = _fill_slots(matrix)
            values.append(np.where(weights > 0, indices + np.int32(n_values), np.int32(0)))
            shares.append(weights)
            n_values += matrix.shape[1]
        widths = tuple(array.shape[1] for array in values)
        return cls(np.hstack(values), np.hstack(shares), widths, n_values)

    def __len__(self) -> int:
        return len(self.values)


def _fill_slots(matrix: Matrix) -> tuple[AnyArray, AnyArray]:
    """Return the column indices of each row, padded with 0, and 1 / their number."""
    counts = np.diff(matrix.indptr)
    shape = (len(counts), max(int(counts.max(initial=0)), 1))
    rows = np.repeat(np.arange(len(counts)), counts)
    slots = np.arange(rows.size) - matrix.indptr[rows]
    indices, shares = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.float32)
    indices[rows, slots] = matrix.indices
    shares[rows, slots] = 1 / counts[rows]
    return indices, shares


def select_columns(
    attributes: Attributes | None, columns: Columns, setting: str
) -> tuple[str, ...]:
    """Return the names of the selected columns.

    ``auto`` selects the columns whose values have at least ten rows on average, which excludes
    titles, zip codes and prices. ``setting`` is the name of the setting, for messages.

    Raises:
        MissingEvidence: Columns are named, but there is no table.
        UnknownColumn: There is no such column.
    """
    if columns == "none" or (columns == "auto" and attributes is None):
        return ()
    if attributes is None:
        message = f"the dataset has no {setting.removesuffix('_features')}s table"
        remedy = f"set {setting}: auto, or add the table to the dataset"
        raise MissingEvidence(message, where=setting, remedy=remedy)
    if columns == "auto":
        matrices = {name: attributes.membership(name).matrix for name in attributes.names}
        return tuple(
            name
            for name, matrix in matrices.items()
            if 0 < MIN_ROWS_PER_VALUE * matrix.shape[1] <= matrix.nnz
        )
    for name in columns:
        try:
            attributes.column(name)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where=setting, remedy=error.remedy) from error
    return tuple(columns)
