"""What language models give: how likely sentences are to them, and what they write."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray, Ids

MASK = "[MASK]"
"""What stands in a text for a word that is not to be seen; a language model reads its own mask."""


@dataclass(frozen=True, eq=False)
class SentenceScores:
    """How likely each sentence is to a model.

    Args:
        ids: An identifier for each sentence.
        pairs: The pair of each sentence: the copies of one sentence share it; None where a
            sentence has no partner by design.
        groups: The group that each sentence is about, as text: ``T1``, ``female``.
        perplexity: exp(-(1/n) Σ ln p(token | tokens before)), ``float64[s]``; NaN where missing.
        labels: Any other columns of the sentences (the bias category, say), one row each.
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
    """What a model wrote.

    Args:
        ids: An identifier for each response: the query it answers.
        texts: The response, ``str``; an empty one is ``""``.
        references: What it is held against, None where there is nothing.
        labels: Any other columns, one row each.
    """

    ids: Ids
    texts: Ids
    references: Ids
    labels: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __len__(self) -> int:
        """Return the number of responses."""
        return int(np.size(self.texts))
