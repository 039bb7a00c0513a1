"""How popular the recommended items are, in absolute terms and compared with the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.errors import OutOfRange
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.popularity.counted_popularity import (
    add_counted_interval,
    differentiate_logarithms,
    weigh_averages,
)
from recbias.metrics.popularity.item_popularity import (
    Cutoff,
    aggregate_lists,
    average_finite_rows,
    average_rows,
    build_history_matrix,
    build_list_matrix,
    is_counted,
    mark_items,
    read_popularity,
)
from recbias.metrics.popularity.popularity_metric import HistoryComparison, PopularityMetric

MAX_NAMED_ITEMS = 5
"""The number of items that an error names."""


@dataclass(frozen=True, kw_only=True)
class ARP(PopularityMetric):
    """Average recommendation popularity: the mean popularity of the items of a list.

        ARP@k = (1 / |L_u|) Σ_{i in L_u} φ(i)

    L_u is the list of user u cut at k, φ the popularity of an item. Undefined for an empty list.

    Range:
        0 or more, in interactions; undefined for an empty list.

    Source:
        Yin, Cui, Li, Yao and Chen, "Challenging the long tail recommendation", VLDB 2012.
    """

    direction: ClassVar[Direction] = "lower"

    popularity: str | None = None
    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = read_popularity(evidence, self.popularity)
        means = aggregate_lists(evidence, popularity, average_rows, self.k)
        return [evidence.measure_queries(means)]


@dataclass(frozen=True, kw_only=True)
class LogPopularityDifference(HistoryComparison):
    """Mean log popularity of a user's list minus that of the user's history.

        Δ(u) = (1/|p_r|) Σ_{i in p_r} ln φ(i)  -  (1/|p_u|) Σ_{i in p_u} ln φ(i)

    p_r is the user's list cut at k, p_u the user's training items, φ the popularity of an item;
    the logarithm is natural. 0 is neutral; a positive value is a list that is more popular than
    the history: ln 2 if its items are twice as popular. Popularity 0 has no logarithm: such items
    of a list are excluded and counted, in a history they raise an error, unless ``smoothing`` is
    added to every φ. Items of unknown popularity are excluded and counted. Undefined if none
    remains in the list or in the history.

    The interval of a counted popularity refers to all users that could be sampled, of whom those
    of the training data are a sample: it includes the sampling error of the counts, and is moved
    by their bias, which a user's own interactions cause. Tests and the intervals of groups
    (``by``) treat the popularity as known.

    Args:
        smoothing: Added to the popularity of every item before the logarithm; null adds nothing.

    Raises:
        OutOfRange: An item of a history has popularity 0, and there is no smoothing.

    >>> sets = np.array([4.0, 2.0]), np.array([4.0, 2.0, 1.0])
    >>> float(LogPopularityDifference().compare_sets(*sets).round(6))  # 1.5 ln 2 - ln 2
    0.346574

    Range:
        Any number; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study
        of popularity bias", Gen-IR at SIGIR 2024, equation 2.
    """

    direction: ClassVar[Direction] = "zero"
    aggregate = average_finite_rows

    popularity: str | None = None
    smoothing: Annotated[float, Gt(0)] | None = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn for the column, OutOfRange for a history with popularity 0."""
        self._reject_zero_popularity(evidence)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        self._reject_zero_popularity(evidence)
        listed = build_list_matrix(evidence, self.k).indices
        n_zeros = np.count_nonzero(self._mark_zeros(evidence)[listed])
        if n_zeros:
            message = "positions of the lists hold an item of popularity 0 and are excluded"
            warn(f"{evidence.metric}: {n_zeros:,} {message}")
        return super().measure(evidence)

    def _add_interval(self, measurement: Measurement, evidence: Evidence) -> Measurement:
        if not is_counted(self.popularity):
            return measurement
        smoothed = read_popularity(evidence, self.popularity) + (self.smoothing or 0.0)
        has_logarithm = smoothed > 0
        lists = weigh_averages(build_list_matrix(evidence, self.k), has_logarithm)
        histories = weigh_averages(build_history_matrix(evidence), has_logarithm)
        weights = (lists, histories.scale(-1.0))
        slopes, curvatures = differentiate_logarithms(weights, smoothed)
        return add_counted_interval(measurement, evidence, self.popularity, slopes, curvatures)

    def _transform(self, popularity: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):  # ln 0 is excluded from the means
            return np.log(popularity + (self.smoothing or 0.0))

    def _mark_zeros(self, evidence: Evidence) -> BoolArray:
        """Return which items have no logarithm, ``bool[n_items]``."""
        smoothed = read_popularity(evidence, self.popularity) + (self.smoothing or 0.0)
        return np.asarray(smoothed == 0)

    def _reject_zero_popularity(self, evidence: Evidence) -> None:
        """Raise OutOfRange, which names the items, if an item of a history has no logarithm."""
        consumed = mark_items(build_history_matrix(evidence))
        zeros = np.flatnonzero(consumed & self._mark_zeros(evidence))
        if not zeros.size:
            return
        names = ", ".join(evidence.item_ids.ids[zeros[:MAX_NAMED_ITEMS]])
        more = ", ..." if zeros.size > MAX_NAMED_ITEMS else ""
        message = (
            f"{zeros.size:,} item(s) of the histories have popularity 0, which has no logarithm: "
            f"{names}{more}"
        )
        remedy = "set smoothing: 1 to add 1 to every popularity, or exclude these items"
        raise OutOfRange(message, where="smoothing", remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class PopularityLift(HistoryComparison):
    """Relative difference in mean popularity between a user's list and the user's history.

        lift(u) = ( AP(L_u) - AP(H_u) ) / AP(H_u),    AP(X) = (1/|X|) Σ_{i in X} φ(i)

    L_u is the list of user u cut at k, H_u the user's training items, φ the popularity of an item.
    0 is neutral, 1 is a list that is twice as popular as the history, -1 the minimum. Undefined
    for an empty list, or a history that is empty or has popularity 0.

    The interval of a counted popularity refers to all users that could be sampled, of whom those
    of the training data are a sample: it includes the sampling error of the counts, and is moved
    by their bias, which a user's own interactions cause. Tests and the intervals of groups
    (``by``) treat the popularity as known.

    Range:
        -1 or more; undefined for an empty list or history.

    Source:
        Abdollahpouri, Mansoury, Burke and Mobasher, "The connection between popularity bias,
        calibration, and fairness in recommendation", RecSys 2020; here for one user at a time.
    """

    direction: ClassVar[Direction] = "zero"

    popularity: str | None = None
    k: Cutoff = None

    def _add_interval(self, measurement: Measurement, evidence: Evidence) -> Measurement:
        if not is_counted(self.popularity):
            return measurement
        popularity = read_popularity(evidence, self.popularity)
        every_item = np.ones(popularity.size, dtype=bool)
        histories = weigh_averages(build_history_matrix(evidence), every_item)
        lists = weigh_averages(build_list_matrix(evidence, self.k), every_item)
        of_history, of_list = (
            part.of_query * (part.rows @ popularity) for part in (histories, lists)
        )
        inverse = np.divide(1.0, of_history, out=np.zeros(of_history.size), where=of_history > 0)
        slopes = (lists.scale(inverse), histories.scale(-of_list * inverse**2))
        return add_counted_interval(measurement, evidence, self.popularity, slopes)

    def _compare(self, lists: FloatArray, histories: FloatArray) -> FloatArray:
        undefined = np.full(lists.shape, np.nan)
        gap = lists - histories
        return np.asarray(np.divide(gap, histories, out=undefined, where=histories > 0))
