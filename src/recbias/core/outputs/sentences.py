"""Outputs of language models: scores of sentences, and generated texts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray, Ids

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

    Args:
        ids: The identifier of the query that each response answers.
        references: The reference text that it is compared with, or None.
    """

    ids: Ids
    texts: Ids
    references: Ids
    labels: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __len__(self) -> int:
        """Return the number of responses."""
        return int(np.size(self.texts))
