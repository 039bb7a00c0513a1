"""Accuracy corrected for exposure: test items that users rarely saw count more.

A test set holds what users saw and liked. Under a model of the propensity ``p_i``, the probability
that a relevant item i was seen, and so got into the test set, each hit is weighted by 1 / p_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray, divide
from recbias.core.errors import OutOfRange, UnknownColumn
from recbias.core.evidence import Evidence, rank_discounts
from recbias.core.measures import Bounds, Direction, Measurement
from recbias.core.plugins import OnlyWith
from recbias.metrics.base import Cutoff, PerQuery


@dataclass(frozen=True, kw_only=True)
class Propensity:
    """How likely it is that a relevant item was seen.

        p_i = ( n_i / max_j n_j )^power,    n_i: the training interactions of item i

    Args:
        of: ``popularity``, or a numeric column of the items that holds the propensities.
        power: 0 is no correction; a larger one assumes that rare items were seen less.

    Source:
        Yang, Cui, Xuan, Wang, Belongie and Estrin, RecSys 2018, section 4.
    """

    of: str = "popularity"
    power: Annotated[float, Ge(0), OnlyWith("of", "popularity")] = 0.5

    def read_column(self, evidence: Evidence) -> FloatArray:
        """Return the column of the items, ``float64[n_items]``."""
        evidence.need("items")
        try:
            return evidence.items.numbers(self.of)  # type: ignore[union-attr]  # need() raises
        except UnknownColumn as error:
            error.where = "propensity.of"
            raise

    def weigh(self, evidence: Evidence, clip: float) -> FloatArray:
        """Return 1 / p of each item, at most ``clip``, ``float64[n_items]``.

        A warning says how many test items are affected by ``clip``.

        Raises:
            OutOfRange: The column has no propensity of a test item, or one of 0 or above 1.
            UnknownColumn: The items have no such column.
        """
        tested = evidence.relevant.indices  # type: ignore[union-attr]  # after need()
        if self.of == "popularity":
            counts = evidence.popularity
            propensities = (counts / max(counts.max(initial=0.0), 1.0)) ** self.power
        else:
            propensities = self.read_column(evidence)
            values = propensities[tested]
            if (wrong := np.flatnonzero(~((values > 0) & (values <= 1)))).size:
                name = evidence.item_ids.ids[tested[wrong[0]]]
                message = f"the item {name} has the propensity {values[wrong[0]]:g}"
                remedy = "a propensity is a probability above 0: give each test item one"
                raise OutOfRange(message, where="propensity.of", remedy=remedy)
        weights = divide(np.ones(propensities.size), propensities)
        is_clipped = ~(weights <= clip)
        if n := int(np.count_nonzero(is_clipped[tested])):
            share = n / tested.size
            reason = f"have a propensity below {1 / clip:.3g} and count {clip:g} times"
            warn(f"{evidence.metric}: {n:,} of the test items ({share:.1%}) {reason}")
        return np.where(is_clipped, clip, weights)


@dataclass(frozen=True, kw_only=True)
class _WeightedAccuracy(PerQuery):
    """A sum over the hits, each weighted by 1 / p.

    With ``snips`` (self-normalised inverse propensity scores) the divisor has the same weights, so
    that a query with one test item has the uncorrected value. With ``ips`` the weights are divided
    by their mean over all test items and the divisor is the uncorrected one: a query with rare
    test items counts more, and the mean varies more. Only ratios of propensities matter, but for
    ``clip``. The propensities are assumed, not measured: compare several powers.

    Args:
        k: Cutoff; by default the length of the lists.
        propensity: The model of the propensities.
        estimator: How the weights are normalised.
        clip: The largest weight 1 / p; larger ones, also of items without training interactions,
            are cut, which is said and lowers the correction.

    Raises:
        OutOfRange: The propensity of a test item is not above 0 and at most 1.
        UnknownColumn: The items have no such column.

    Range:
        0 to 1 with snips, 0 or more with ips; undefined for a query without test items.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test", "train"})

    k: Cutoff = None
    propensity: Propensity = Propensity()
    estimator: Literal["snips", "ips"] = "snips"
    clip: Annotated[float, Gt(1)] = 100.0

    def needs_now(self) -> frozenset[str]:
        """Return the needs, with the items only if they hold the propensities."""
        source = "train" if self.propensity.of == "popularity" else "items"
        return frozenset({"lists", "test", source})

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return 0 and 1; a mean by ``ips`` has no upper end."""
        return (0.0, 1.0 if self.estimator == "snips" else math.inf)

    def check(self, evidence: Evidence) -> None:
        """Refuse a column that the items do not have, before any training."""
        if self.propensity.of != "popularity":
            self.propensity.read_column(evidence)

    def gains(self, hits: BoolArray) -> FloatArray:
        """Return the gain of each hit without its weight, ``float64[q, k]``; 0 elsewhere."""
        raise NotImplementedError

    def ideal_gains(self, ranks: AnyArray, k: int) -> FloatArray:
        """Return the gain of a test item at the rank, from 0, of the ideal list."""
        return (ranks < k).astype(np.float64)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        evidence.need("test")
        hits = evidence.hits[:, : self.k]
        weights = self.propensity.weigh(evidence, self.clip)
        items = np.where(hits, evidence.ranked.items[:, : self.k], 0)
        sums = (self.gains(hits) * weights[items]).sum(axis=1)
        of_tests = weights[evidence.relevant.indices]  # type: ignore[union-attr]
        if self.estimator == "ips":
            sums /= of_tests.mean() if of_tests.size else 1.0
            of_tests = np.ones(of_tests.size)
        n = evidence.n_relevant
        queries = np.repeat(np.arange(n.size), n)
        order = np.lexsort((-of_tests, queries))
        ranks = np.arange(order.size) - np.repeat(np.cumsum(n) - n, n)
        ideal = of_tests[order] * self.ideal_gains(ranks, self.k or max(evidence.ranked.k, 1))
        return divide(sums, np.bincount(queries, ideal, n.size))


class PropensityNDCG(_WeightedAccuracy):
    """nDCG in which test items that were rarely seen count more.

        snips  Σ_{r ≤ k} rel(r) w_r / log2(r + 1)  /  Σ_{l ≤ k} w_(l) / log2(l + 1),    w = 1 / p
        ips    Σ_{r ≤ k} rel(r) (w_r / w̄) / log2(r + 1)  /  Σ_{l ≤ min(R, k)} 1 / log2(l + 1)

    ``rel(r)`` is 1 if the item at rank r is a test item, ``p`` the propensity of an item,
    ``w_(l)`` the weights of the query's R test items, largest first, ``w̄`` the mean weight of all
    test items. With equal propensities both are nDCG.

    Source:
        Yang, Cui, Xuan, Wang, Belongie and Estrin, "Unbiased offline recommender evaluation for
        missing-not-at-random implicit feedback", RecSys 2018; Jain, Prabhu and Varma, KDD 2016
        (the ideal list); Schnabel et al., ICML 2016 (ips).
    """

    direction: ClassVar[Direction] = "higher"

    def gains(self, hits: BoolArray) -> FloatArray:
        """Return the discount of the rank of each hit."""
        return np.asarray(hits * rank_discounts(hits.shape[1]))

    def ideal_gains(self, ranks: AnyArray, k: int) -> FloatArray:
        """Return the discounts of the ranks."""
        return np.where(ranks < k, 1.0 / np.log2(ranks + 2.0), 0.0)


class PropensityRecall(_WeightedAccuracy):
    """The share of a query's test items in its list; those that were rarely seen count more.

        snips  Σ_{hits} w  /  Σ_{test items} w,    w = 1 / p
        ips    Σ_{hits} (w / w̄)  /  R

    ``p`` is the propensity of an item, R the number of test items of the query, ``w̄`` the mean
    weight of all test items. With equal propensities both are recall.

    Source:
        Yang, Cui, Xuan, Wang, Belongie and Estrin, "Unbiased offline recommender evaluation for
        missing-not-at-random implicit feedback", RecSys 2018; Schnabel et al., ICML 2016 (ips).
    """

    direction: ClassVar[Direction] = "higher"

    def gains(self, hits: BoolArray) -> FloatArray:
        """Return 1 for each hit."""
        return hits.astype(np.float64)

    def ideal_gains(self, ranks: AnyArray, k: int) -> FloatArray:
        """Return 1 at every rank, also after k."""
        return np.ones(ranks.size)


class PropensityMAP(_WeightedAccuracy):
    """Average precision in which test items that were rarely seen count more.

        snips  Σ_{r ≤ k} P@r rel(r) w_r  /  Σ_{l ≤ k} w_(l),    w = 1 / p
        ips    Σ_{r ≤ k} P@r rel(r) (w_r / w̄)  /  min(R, k)

    ``P@r`` is the share of hits among the first r, ``rel(r)`` 1 if the item at rank r is a test
    item, ``p`` the propensity of an item, ``w_(l)`` the weights of the query's R test items,
    largest first, ``w̄`` the mean weight of all test items. With equal propensities both are MAP.

    Source:
        Yang, Cui, Xuan, Wang, Belongie and Estrin, "Unbiased offline recommender evaluation for
        missing-not-at-random implicit feedback", RecSys 2018, with c = P@r; Schnabel et al., ICML
        2016 (ips).
    """

    direction: ClassVar[Direction] = "higher"

    def gains(self, hits: BoolArray) -> FloatArray:
        """Return the precision at the rank of each hit."""
        return np.asarray(hits * np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1))
