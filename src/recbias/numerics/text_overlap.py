"""Texts as tokens and n-grams, and how much two texts share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray, Matrix

Tokens: TypeAlias = Literal["words", "characters"]
"""What a token is: a run of characters between white space, or a character that is none."""


def tokens_of(text: str, tokens: Tokens) -> list[str]:
    """Return the tokens of a text, as written.

    >>> tokens_of("A cat,  a hat", "words"), tokens_of("a b", "characters")
    (['A', 'cat,', 'a', 'hat'], ['a', 'b'])
    """
    words = text.split()
    return words if tokens == "words" else list("".join(words))


def ngram_counts(texts: Sequence[Sequence[str]], n: int) -> Matrix:
    """Return how often each n-gram stands in each text, CSR ``int32 (texts, n-grams)``.

    Args:
        texts: The tokens of each text; a text of fewer than ``n`` has no n-gram.
        n: How many tokens in a row an n-gram is.

    >>> ngram_counts([["a", "b", "a", "b"], ["b", "a"]], 2).toarray().tolist()
    [[2, 1], [0, 1]]
    """
    from scipy.sparse import csr_array

    lengths = np.array([len(each) for each in texts], dtype=np.int64)
    words = np.fromiter(chain.from_iterable(texts), dtype=object, count=int(lengths.sum()))
    codes, _ = pd.factorize(words)
    rows = np.repeat(np.arange(lengths.size), lengths)
    grams, rows = _windows(codes.astype(np.int64), rows, n)
    shape = (lengths.size, int(grams.max(initial=-1)) + 1)
    ones = np.ones(grams.size, dtype=np.int32)
    counts = csr_array((ones, (rows, grams)), shape=shape)
    counts.sum_duplicates()
    return counts


def _windows(codes: AnyArray, rows: AnyArray, n: int) -> tuple[AnyArray, AnyArray]:
    """Return the code of the n-gram that starts at each token, and its text."""
    grams = codes
    for behind in range(1, n):
        grams, follower = grams[:-1], codes[behind:]
        inside = rows[: grams.size] == rows[behind:]
        keys = np.where(inside, grams * (int(codes.max(initial=0)) + 1) + follower, -1)
        grams, _ = pd.factorize(keys)
    rows, ends = rows[: grams.size], rows[n - 1 :]
    dense, _ = pd.factorize(grams[rows == ends])
    return dense, rows[rows == ends]


def unigram_f1(texts: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> FloatArray:
    """Return how much each text shares with its reference, as F1 of their tokens.

        F1 = 2 |r ∩ s| / (|r| + |s|)

    as multisets: a token that stands twice in both counts twice.

    Args:
        texts: The tokens of each text.
        references: Those of what it is held against.

    Returns:
        ``float64[n]``, 0 to 1; NaN where the reference has no token.

    >>> unigram_f1([["a", "b", "b"], []], [["b", "c", "b"], ["a"]]).round(4).tolist()
    [0.6667, 0.0]

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """
    n = len(texts)
    counts = ngram_counts([*texts, *references], 1)
    shared = counts[:n].minimum(counts[n:]).sum(axis=1)
    sizes = counts.sum(axis=1)
    lengths, targets = sizes[:n], sizes[n:]
    return np.where(targets > 0, 2.0 * shared / np.maximum(lengths + targets, 1), np.nan)
