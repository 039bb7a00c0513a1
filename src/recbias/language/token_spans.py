"""Tokens of many sentences, and the places of words among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray


@dataclass(frozen=True, eq=False)
class TokenSpans:
    """The tokens of sentences, without special tokens, and the tokens of spans of characters.

    Args:
        ids: The tokens of each sentence.
        offsets: The first and last character of each token of each sentence.
        sentence: The sentence of each span, ``int64[m]``.
        starts: The first token of each span, ``int64[m]``.
        ends: The token after each span, ``int64[m]``.
    """

    ids: list[list[int]]
    offsets: list[list[tuple[int, int]]]
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
        offsets = encoded.offset_mapping if encoded is not None else []
        starts, ends = np.empty((2, len(spans)), dtype=np.int64)
        order = np.argsort(spans[:, 0], kind="stable")
        bounds = np.searchsorted(spans[order, 0], np.arange(len(sentences) + 1))
        for row in range(len(sentences)):
            of_row = order[bounds[row] : bounds[row + 1]]
            if of_row.size:
                places = np.array(offsets[row], dtype=np.int64).reshape(-1, 2)
                starts[of_row] = np.searchsorted(places[:, 1], spans[of_row, 1], side="right")
                ends[of_row] = np.searchsorted(places[:, 0], spans[of_row, 2], side="left")
        return cls(ids, offsets, spans[:, 0], starts, np.maximum(starts, ends))

    @property
    def sizes(self) -> AnyArray:
        """The number of tokens of the sentence of each span, ``int64[m]``."""
        return np.array([len(tokens) for tokens in self.ids], dtype=np.int64)[self.sentence]
