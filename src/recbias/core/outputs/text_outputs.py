"""Outputs of models of text: scores of sentences, generated texts, and predicted items."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, FloatArray, Ids

MASK = "[MASK]"
"""Replaces a masked word in a text; a language model reads its own mask token instead."""


@dataclass(frozen=True, eq=False)
class SentenceScores:
    """How likely each sentence is to a model.

    Args:
        pairs: The pair of each sentence, shared by the variants of one sentence; None if a
            sentence has no variant by design.
        groups: The group that each sentence is about, as text: ``T1``, ``female``.
        perplexity: exp(-(1/n) Σ ln p(token | tokens before)), ``float64[s]``; NaN if missing.
        labels: Other columns of the sentences, such as the bias category, one row each.
    """

    ids: Ids
    pairs: Ids
    groups: Ids
    perplexity: FloatArray
    labels: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return int(self.perplexity.size)


@dataclass(frozen=True, eq=False)
class Responses:
    """The texts that a model generated; an empty one is ``""``.

    ``ids`` are the queries, ``references`` the texts to compare with, or None.
    """

    ids: Ids
    texts: Ids
    references: Ids
    labels: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __len__(self) -> int:
        """Return the number of responses."""
        return int(np.size(self.texts))

    def take(self, rows: AnyArray) -> Responses:
        """Return some of the responses, by position."""
        labels = self.labels.iloc[rows].reset_index(drop=True) if len(self.labels) else self.labels
        return Responses(self.ids[rows], self.texts[rows], self.references[rows], labels)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The items that a model predicts for held-out texts, and the items of the texts.

    Args:
        ids: An identifier for each text, the same for every model.
        ranked: All items that the model knows, by code, the most likely first, ``int32[n, c]``;
            each row is a permutation of the same codes.
    """

    ids: Ids
    items: Codes
    ranked: Codes

    def __len__(self) -> int:
        """Return the number of texts."""
        return int(self.items.size)
