"""How popular the recommended items are, in absolute terms and compared with the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.desiderata import Desideratum, evaluate_desiderata
from recbias.metrics.popularity.item_popularity import (
    Cutoff,
    aggregate_lists,
    aggregate_lists_and_histories,
    aggregate_sets,
    average_rows,
    mark_history_items,
    mark_listed_items,
    read_popularity,
    reject_zero_popularity,
    summarize_queries,
)
from recbias.metrics.popularity.popularity_metric import (
    NEEDS,
    HistoryComparison,
    PopularityMetric,
)


@dataclass(frozen=True, kw_only=True)
class ARP(PopularityMetric):
    """Average recommendation popularity: the mean popularity of the items of a list.

        ARP@k = (1 / |L_u|) Σ_{i in L_u} φ(i)

    L_u is the list of user u cut at k, φ the popularity of an item. Undefined for an empty list.

    Args:
        popularity: A column of the items that holds φ; by default φ is the number of training
            interactions.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.

    Range:
        0 or more, in interactions; undefined for an empty list.

    Source:
        Yin, Cui, Li, Yao and Chen, "Challenging the long tail recommendation", VLDB 2012.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    popularity: str | None = None
    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = read_popularity(evidence, self.popularity)
        means = aggregate_lists(evidence, popularity, average_rows, self.k)
        return summarize_queries(evidence, means)


@dataclass(frozen=True, kw_only=True)
class LogPopularityDifference(HistoryComparison):
    """Mean log popularity of a user's list minus that of the user's history.

        Δ(u) = (1/|p_r|) Σ_{i in p_r} ln φ(i)  -  (1/|p_u|) Σ_{i in p_u} ln φ(i)

    p_r is the user's list cut at k, p_u the user's training items, φ the popularity of an item;
    the logarithm is natural. 0 is neutral; a positive value is a list that is more popular than
    the history: ln 2 if its items are twice as popular. An item of popularity 0 in a list or
    history has no logarithm and raises an error, unless ``smoothing`` is added to every φ. Items
    of unknown popularity are excluded and counted. Undefined if none remains in the list or in the
    history.

    Args:
        popularity: A column of the items that holds φ; by default φ is the number of training
            interactions.
        smoothing: Added to the popularity of every item before the logarithm; null adds nothing.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: An item of a list or history has popularity 0, and there is no smoothing.

    Range:
        Any number; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study
        of popularity bias", Gen-IR at SIGIR 2024, equation 2.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"

    popularity: str | None = None
    smoothing: Annotated[float, Gt(0)] | None = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn for the column, OutOfRange for a history with popularity 0."""
        popularity = self._smooth(read_popularity(evidence, self.popularity))
        reject_zero_popularity(evidence, popularity, mark_history_items(evidence))

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = self._smooth(read_popularity(evidence, self.popularity))
        used = mark_listed_items(evidence, self.k) | mark_history_items(evidence)
        reject_zero_popularity(evidence, popularity, used)
        with np.errstate(divide="ignore"):  # items in no list or history may have popularity 0
            logs = np.log(popularity)
        lists, histories = aggregate_lists_and_histories(evidence, logs, average_rows, self.k)
        return summarize_queries(evidence, lists - histories)

    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the difference between sets of popularities, ``float64[..., n]``.

        >>> sets = np.array([4.0, 2.0]), np.array([4.0, 2.0, 1.0])
        >>> float(LogPopularityDifference().compare_sets(*sets).round(6))  # 1.5 ln 2 - ln 2
        0.346574
        """
        mean_logs = [
            aggregate_sets(np.log(self._smooth(np.asarray(popularity))), average_rows)
            for popularity in (recommended, consumed)
        ]
        return mean_logs[0] - mean_logs[1]

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five desiderata the metric satisfies on random sets."""
        return evaluate_desiderata(self)

    def _smooth(self, popularity: FloatArray) -> FloatArray:
        return popularity + (self.smoothing or 0.0)


@dataclass(frozen=True, kw_only=True)
class PopularityLift(HistoryComparison):
    """Relative difference in mean popularity between a user's list and the user's history.

        lift(u) = ( AP(L_u) - AP(H_u) ) / AP(H_u),    AP(X) = (1/|X|) Σ_{i in X} φ(i)

    L_u is the list of user u cut at k, H_u the user's training items, φ the popularity of an item.
    0 is neutral, 1 is a list that is twice as popular as the history, -1 the minimum. Undefined
    for an empty list, or a history that is empty or has popularity 0.

    Args:
        popularity: A column of the items that holds φ; by default φ is the number of training
            interactions.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.

    Range:
        -1 or more; undefined for an empty list or history.

    Source:
        Abdollahpouri, Mansoury, Burke and Mobasher, "The connection between popularity bias,
        calibration, and fairness in recommendation", RecSys 2020; here for one user at a time.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"

    popularity: str | None = None
    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = read_popularity(evidence, self.popularity)
        means = aggregate_lists_and_histories(evidence, popularity, average_rows, self.k)
        return summarize_queries(evidence, _compute_lift(*means))

    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the lift between sets of popularities, ``float64[..., n]``."""
        means = [aggregate_sets(sets, average_rows) for sets in (recommended, consumed)]
        return _compute_lift(*means)

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five desiderata the metric satisfies on random sets."""
        return evaluate_desiderata(self)


def _compute_lift(lists: FloatArray, histories: FloatArray) -> FloatArray:
    undefined = np.full(lists.shape, np.nan)
    lift: FloatArray = np.divide(lists - histories, histories, out=undefined, where=histories > 0)
    return lift
