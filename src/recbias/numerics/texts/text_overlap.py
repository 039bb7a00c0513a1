"""Tokens and n-grams of texts, and their overlap."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray, Matrix

Tokens: TypeAlias = Literal["words", "characters"]
"""Unit of a token: words separated by white space, or characters other than white space."""


def tokenize(text: str, tokens: Tokens) -> list[str]:
    """Split a text into tokens, case and punctuation unchanged.

    >>> tokenize("A cat,  a hat", "words"), tokenize("a b", "characters")
    (['A', 'cat,', 'a', 'hat'], ['a', 'b'])
    """
    words = text.split()
    return words if tokens == "words" else list("".join(words))


def count_ngrams(texts: Sequence[Sequence[str]], n: int) -> Matrix:
    """Count the n-grams of each text, CSR ``int32 (texts, n-grams)``.

    Texts are lists of tokens; one of fewer than ``n`` tokens has no n-gram.

    >>> count_ngrams([["a", "b", "a", "b"], ["b", "a"]], 2).toarray().tolist()
    [[2, 1], [0, 1]]
    """
    from scipy.sparse import csr_array

    lengths = np.array([len(tokens) for tokens in texts], dtype=np.int64)
    words = np.fromiter(chain.from_iterable(texts), dtype=object, count=int(lengths.sum()))
    codes, _ = pd.factorize(words)
    rows = np.repeat(np.arange(lengths.size), lengths)
    grams, rows = _encode_ngrams(codes.astype(np.int64), rows, n)
    shape = (lengths.size, int(grams.max(initial=-1)) + 1)
    ones = np.ones(grams.size, dtype=np.int32)
    counts = csr_array((ones, (rows, grams)), shape=shape)
    counts.sum_duplicates()
    return counts


def _encode_ngrams(codes: AnyArray, rows: AnyArray, n: int) -> tuple[AnyArray, AnyArray]:
    """Return the code and the text of the n-gram that starts at each token."""
    grams = codes
    for offset in range(1, n):
        grams, follower = grams[:-1], codes[offset:]
        same_text = rows[: grams.size] == rows[offset:]
        keys = np.where(same_text, grams * (int(codes.max(initial=0)) + 1) + follower, -1)
        grams, _ = pd.factorize(keys)
    rows, ends = rows[: grams.size], rows[n - 1 :]
    dense, _ = pd.factorize(grams[rows == ends])
    return dense, rows[rows == ends]


def unigram_f1(texts: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> FloatArray:
    """Return the F1 overlap between the tokens of each text and its reference.

        F1 = 2 |r ∩ s| / (|r| + |s|)

    where r and s are the multisets of tokens of the text and of its reference. NaN if the
    reference has no token.

    >>> unigram_f1([["a", "b", "b"], []], [["b", "c", "b"], ["a"]]).round(4).tolist()
    [0.6667, 0.0]

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """
    n = len(texts)
    counts = count_ngrams([*texts, *references], 1)
    shared = counts[:n].minimum(counts[n:]).sum(axis=1)
    sizes = counts.sum(axis=1)
    lengths, targets = sizes[:n], sizes[n:]
    return np.where(targets > 0, 2.0 * shared / np.maximum(lengths + targets, 1), np.nan)
