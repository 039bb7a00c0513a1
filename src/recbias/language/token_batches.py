"""Tokens of many sentences, the places of words among them, and batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray


@dataclass(frozen=True, eq=False)
class TokenSpans:
    """The tokens of sentences, without special tokens, and the tokens of spans of characters.

    Args:
        ids: The tokens of each sentence.
        sentence: The sentence of each span, ``int64[m]``.
        starts: The first token of each span, ``int64[m]``.
        ends: The token after each span, ``int64[m]``.
    """

    ids: list[list[int]]
    sentence: AnyArray
    starts: AnyArray
    ends: AnyArray

    @classmethod
    def from_sentences(
        cls, tokenizer: Any, sentences: Sequence[str], spans: AnyArray
    ) -> TokenSpans:
        """Return the tokens of sentences.

        Args:
            tokenizer: A fast tokenizer.
            sentences: The sentences.
            spans: The sentence, and the first and last character of each span, ``int64[m, 3]``.
        """
        options = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
        encoded = tokenizer(list(sentences), **options) if sentences else None
        ids: list[list[int]] = encoded.input_ids if encoded is not None else []
        starts, ends = np.empty((2, len(spans)), dtype=np.int64)
        order = np.argsort(spans[:, 0], kind="stable")
        bounds = np.searchsorted(spans[order, 0], np.arange(len(sentences) + 1))
        for row in range(len(sentences)):
            of_row = order[bounds[row] : bounds[row + 1]]
            if of_row.size and encoded is not None:
                offsets = np.array(encoded.offset_mapping[row], dtype=np.int64).reshape(-1, 2)
                starts[of_row] = np.searchsorted(offsets[:, 1], spans[of_row, 1], side="right")
                ends[of_row] = np.searchsorted(offsets[:, 0], spans[of_row, 2], side="left")
        return cls(ids, spans[:, 0], starts, np.maximum(starts, ends))

    @property
    def sizes(self) -> AnyArray:
        """The number of tokens of the sentence of each span, ``int64[m]``."""
        return np.array([len(tokens) for tokens in self.ids], dtype=np.int64)[self.sentence]


def make_batches(
    lengths: AnyArray, tokens_per_batch: int, max_rows: int = 2**31
) -> Iterator[AnyArray]:
    """Yield the rows of batches of similar length; a batch has at least one row.

    Args:
        lengths: The number of tokens of each row, ``int64[m]``.
        tokens_per_batch: The number of tokens of a batch, padding included.
        max_rows: The number of rows of a batch.

    >>> [rows.tolist() for rows in make_batches(np.array([3, 9, 4, 2]), 8)]
    [[3, 0], [2], [1]]
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < order.size:
        candidates = lengths[order[start : start + max_rows]]
        sizes = candidates * np.arange(1, candidates.size + 1)
        n_rows = max(1, int(np.searchsorted(sizes, tokens_per_batch, side="right")))
        yield order[start : start + n_rows]
        start += n_rows


def pad_rows(rows: Sequence[Sequence[int]], padding: int) -> AnyArray:
    """Return rows of tokens as one array with padding at their ends, ``int64[n, longest]``."""
    padded = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for at, row in enumerate(rows):
        padded[at, : len(row)] = row
    return padded
