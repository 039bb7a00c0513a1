"""Calibrated popularity: lists as popular as the user's history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.rerankers import Candidates
from recbias.numerics.inequality import head
from recbias.rerankers.calibration import select_calibrated
from recbias.rerankers.item_values import ItemValues
from recbias.rerankers.settings import NumberOfCandidates, Strength


def js_terms(history: AnyArray, listed: AnyArray) -> FloatArray:
    """Return the terms of the Jensen-Shannon divergence, in bits: the sum is between 0 and 1.

        p log2(p / m) / 2 + q log2(q / m) / 2,    m = (p + q) / 2

    >>> float(js_terms(np.array([1.0, 0.0]), np.array([0.0, 1.0])).sum())
    1.0
    """
    middle = (history + listed) / 2
    terms = np.zeros(np.broadcast_shapes(np.shape(history), np.shape(listed)))
    for shares in (history, listed):
        ratio = np.divide(shares, middle, out=np.ones_like(terms), where=shares > 0)
        terms += shares * np.log2(ratio) / 2
    return terms


@dataclass(frozen=True, kw_only=True)
class CalibratedPopularity:
    """Give each list the shares of popular, middle and tail items that the history has.

        maximise  (1 - λ) Σ_{i in L} s_i - λ JS(p_u, q_L)

    λ is the strength and s_i the score of item i, scaled to 0 to 1 over the candidates of the
    query. p_u and q_L are the shares of three groups of items in the training items of the user
    and in the list, and JS is their Jensen-Shannon divergence with the logarithm to base 2. The
    popular items are the fewest that hold the share ``head`` of the training interactions, the
    tail the least popular ones that hold the share ``tail`` at most; the others are in the middle.
    Each rank takes the item that gives the highest objective, of equal ones the first; with the
    strength 0 the list is that of the model.

    A query without training items keeps the list of the model; such queries are counted in a
    warning.

    Args:
        strength: The weight λ of the calibration; a list of weights makes one version each.
        head: The share of the interactions that the popular items hold.
        tail: The share of the interactions that the tail holds.
        candidates: How many of the model's best items a list is selected from.

    Source:
        Abdollahpouri, Mansoury, Burke, Mobasher and Malthouse, "User-centered evaluation of
        popularity bias in recommender systems", UMAP 2021. The paper leaves the scale of the
        scores open.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = "strength"

    strength: Strength = 0.5
    head: Annotated[float, Gt(0), Lt(1)] = 0.2
    tail: Annotated[float, Gt(0), Lt(1)] = 0.2
    candidates: NumberOfCandidates = 100

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        values = group_by_popularity(candidates.data, self.head, self.tail)
        return select_calibrated(candidates, k, values, self.strength, js_terms)


def group_by_popularity(data: TrainingData, head_share: float, tail_share: float) -> ItemValues:
    """Return the groups of the items: ``head``, ``middle`` or ``tail``."""
    from scipy.sparse import csr_array

    counts = data.train.item_counts()
    is_head = head(counts, head_share)
    groups = np.where(is_head, 0, np.where(head(counts, 1 - tail_share), 1, 2))
    ones, bounds = np.ones(groups.size, dtype=bool), np.arange(groups.size + 1)
    matrix = csr_array((ones, groups, bounds), shape=(groups.size, 3))
    return ItemValues.from_matrix(("head", "middle", "tail"), matrix)
