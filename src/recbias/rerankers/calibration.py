"""Calibration: lists whose shares of an attribute are those of the user's history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.rerankers import Candidates
from recbias.core.stage_context import warn
from recbias.rerankers.greedy_selection import select_greedily
from recbias.rerankers.item_values import ItemValues, read_values
from recbias.rerankers.settings import NumberOfCandidates, Strength

SMOOTHING = 0.01
"""The weight of the history in the smoothed shares of a list, as in the paper."""

Divergence: TypeAlias = Callable[[AnyArray, AnyArray], FloatArray]
"""The term of each value in the divergence of the shares in a list from those in a history."""


def kl_terms(history: AnyArray, listed: AnyArray) -> FloatArray:
    """Return the terms of the Kullback-Leibler divergence with smoothing, in nats.

        p log(p / q'),    q' = (1 - a) q + a p,    a = 0.01

    >>> float(kl_terms(np.array([0.5, 0.5]), np.array([0.5, 0.5])).sum())
    0.0
    """
    smoothed = (1 - SMOOTHING) * listed + SMOOTHING * history
    ratio = np.divide(history, smoothed, out=np.ones_like(smoothed), where=history > 0)
    return np.asarray(history * np.log(ratio))


def select_calibrated(
    candidates: Candidates, k: int, values: ItemValues, strength: float, terms: Divergence
) -> Codes:
    """Return the positions that greedy selection takes from the candidates, ``int32[q, k]``.

    A query whose history has no item with a value keeps its list; such queries are counted in a
    warning.
    """
    undefined = ~(values.count(candidates.histories).sum(axis=1) > 0)
    if undefined.any():
        n, n_kept = undefined.size, int(undefined.sum())
        warn(f"{n_kept:,} of {n:,} queries have no history with a value: not re-ranked")
    n, width = candidates.lists.items.shape[1], values.codes.shape[1]

    def create(block: Candidates) -> _CalibratedLists:
        return _CalibratedLists(block, values, strength, terms)

    bytes_per_query = 8 * (4 * n * width + 6 * (values.n_values + 1) + 4 * n)
    return select_greedily(candidates, k, create, bytes_per_query=bytes_per_query)


class _CalibratedLists:
    """The sum of the scores of a list, and its divergence from the history.

    A candidate with m values adds 1/m to the counts of each, so only these terms of the divergence
    differ between the candidates with a value.
    """

    def __init__(
        self, block: Candidates, values: ItemValues, strength: float, terms: Divergence
    ) -> None:
        totals = values.count(block.histories)
        sums = totals.sum(axis=1, keepdims=True)
        self.history = np.divide(totals, sums, out=np.zeros_like(totals), where=sums > 0)
        self.weights = np.where(sums > 0, strength, 0.0)
        self.scores, self.terms = np.nan_to_num(block.scores), terms
        self.codes, self.n_codes = values.codes[block.items], values.counts[block.items]
        self.counts = np.zeros_like(totals)
        self.n_listed = np.zeros(len(totals))

    def compute_gains(self) -> FloatArray:
        divergence = np.where(self.n_codes > 0, self._extend(), self._measure()[:, None])
        return np.asarray((1 - self.weights) * self.scores - self.weights * divergence)

    def _measure(self) -> FloatArray:
        """Return the divergence of the lists so far, which stays with an item without a value."""
        shares = self.counts / np.maximum(self.n_listed, 1)[:, None]
        return np.asarray(self.terms(self.history, shares).sum(axis=1))

    def _extend(self) -> FloatArray:
        """Return the divergence of each list with each candidate."""
        size = (self.n_listed + 1)[:, None]
        shares = self.counts / size
        terms = self.terms(self.history, shares)
        rows = np.arange(len(shares))[:, None, None]
        added = np.where(self.codes < shares.shape[1] - 1, 1.0, 0.0)
        added /= np.maximum(self.n_codes, 1)[:, :, None] * size[:, :, None]
        history, listed = self.history[rows, self.codes], shares[rows, self.codes]
        changes = self.terms(history, listed + added) - terms[rows, self.codes]
        return np.asarray(terms.sum(axis=1, keepdims=True) + changes.sum(axis=2))

    def add(self, rows: AnyArray, columns: AnyArray) -> None:
        codes, n_codes = self.codes[rows, columns], self.n_codes[rows, columns]
        shares = np.where(codes < self.counts.shape[1] - 1, 1.0, 0.0)
        np.add.at(self.counts, (rows[:, None], codes), shares / np.maximum(n_codes, 1)[:, None])
        self.n_listed[rows] += n_codes > 0


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Give each list the shares of an item attribute that the user's history has.

        maximise  (1 - λ) Σ_{i in L} s_i - λ KL(p_u, q'_L)
        KL = Σ_g p_u(g) log(p_u(g) / q'_L(g)),    q' = (1 - a) q + a p,    a = 0.01

    λ is the strength and s_i the score of item i, scaled to 0 to 1 over the candidates of the
    query. p_u(g) is the share of the value g in the training items of the user, q_L(g) that in the
    list; an item with m values counts 1/m for each. Each rank takes the item that gives the
    highest objective, of equal ones the first; with the strength 0 the list is that of the model.

    Items without a value have no part in p and q. With no item with a value in the list so far, q
    is 0. A query without a training item that has a value keeps the list of the model; such
    queries are counted in a warning.

    Args:
        attribute: A column of the items: ``genres``.
        strength: The weight λ of the calibration; a list of weights makes one version each.
        candidates: How many of the model's best items a list is selected from.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in it.

    Source:
        Steck, "Calibrated recommendations", RecSys 2018. The paper leaves the scale of the scores
        open.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = "strength"

    attribute: str
    strength: Strength = 0.5
    candidates: NumberOfCandidates = 100

    def check_data(self, data: TrainingData) -> None:
        """Refuse an attribute that the items do not have."""
        read_values(data, self.attribute)

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        values = read_values(candidates.data, self.attribute)
        return select_calibrated(candidates, k, values, self.strength, kl_terms)
