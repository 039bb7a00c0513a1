"""Ratios of the exposure of groups of items: parity, to relevance, and realised by clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.exposure.browsing import BrowsingModel, select_relevant
from recbias.metrics.exposure.exposure_metric import GroupExposureMetric
from recbias.metrics.exposure.hidden_groups import drop_intervals
from recbias.metrics.exposure.item_groups import ItemGroups, warn_ungrouped
from recbias.metrics.resampled_estimates import estimate_from_totals
from recbias.numerics.sparse.columns import join_columns
from recbias.statistics.intervals import log_interval


@dataclass(frozen=True, kw_only=True)
class _ExposureRatio(GroupExposureMetric):
    """The smallest value of a group of items divided by the largest, over all lists together."""

    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    def _expose(self, evidence: Evidence, groups: ItemGroups) -> Matrix | FloatArray:
        """Return the exposure of each group in each list, ``(q, g)``."""
        warn_ungrouped(evidence, groups, self.k)
        return groups.add_members(self.expose_items(evidence))

    def _compare_sizes(self, evidence: Evidence) -> list[Measurement]:
        """Return the ratio of the mean exposures of the candidates of each group."""
        groups = self.read_groups(evidence)
        exposure = self._expose(evidence, groups)
        rows = estimate_from_totals(
            evidence, exposure, lambda sums: divide_extremes(sums / groups.sizes)
        )
        return drop_intervals(evidence, groups, [_add_log_interval(row) for row in rows])

    def _compare_relevance(
        self,
        evidence: Evidence,
        groups: ItemGroups,
        gains: Matrix | FloatArray,
        relevant: Matrix,
    ) -> list[Measurement]:
        """Return the ratio of the gains by the relevance of each group.

        Queries without a relevant item are excluded, and groups without one in a warning.
        """
        queries = np.flatnonzero(np.diff(relevant.indptr) > 0)
        relevance = groups.add_members(relevant)
        n_without = int(np.count_nonzero(np.asarray(relevance.sum(axis=0)) == 0))
        if n_without and queries.size:
            message = "have no relevant item and are excluded"
            warn(f"{evidence.metric}: {n_without:,} groups of {self.attribute} {message}")
        n = len(groups.names)

        def estimate(sums: AnyArray) -> FloatArray:
            undefined = np.full((*sums.shape[:-1], n), np.nan)
            relevances = sums[..., n:]
            ratios = np.divide(sums[..., :n], relevances, out=undefined, where=relevances > 0)
            return divide_extremes(ratios)

        is_array = isinstance(gains, np.ndarray)
        totals = np.hstack([gains, relevance]) if is_array else join_columns(gains, relevance)
        totals = totals if queries.size == totals.shape[0] else totals[queries]
        n_excluded = len(evidence.queries) - queries.size
        rows = estimate_from_totals(evidence, totals, estimate, n_excluded=n_excluded)
        return drop_intervals(evidence, groups, [_add_log_interval(row) for row in rows])


@dataclass(frozen=True, kw_only=True)
class ExposureParity(_ExposureRatio):
    """Demographic parity: the mean exposure of the group of items with the least, over the most.

        EXP = min_g x_g / max_g x_g,    x_g = Σ_q Σ_{i in g} E_qi / |g|

    E_qi is the exposure of item i in the list of query q, and |g| the number of items of group g
    that may be recommended, shown or not. 1 is parity, 0 a group that is never shown. With several
    groups it compares the two extreme ones only; with many it is near 0 by chance (see
    ``provider_gap``). Undefined if no item with a group is shown. The interval is symmetric on the
    scale of the logarithm.

    Range:
        0 to 1; undefined if no item with a group is shown.

    Source:
        Singh and Joachims, "Fairness of exposure in rankings", KDD 2018, demographic parity; as a
        ratio over several lists: Cachel and Rundensteiner, package FairRankTune, EXP.
    """

    direction: ClassVar[Direction] = "higher"

    browsing: BrowsingModel = "dcg"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        return self._compare_sizes(evidence)


@dataclass(frozen=True, kw_only=True)
class AttentionRatio(_ExposureRatio):
    """The mean attention to the group of items with the least, over that with the most.

        AWRF-min-max = min_g x_g / max_g x_g,    x_g = Σ_q Σ_{i in g} e(r_qi) / |g|

    e(r_qi) is γ^(r - 1) at the rank of item i in the list of query q, 0 if it is not there, and
    |g| the number of items of group g that may be recommended. The FairRankTune package calls this
    AWRF; it has no target, and differs from EXP in the attention only. ``AWRF`` is the other
    published form. Undefined if no item with a group is shown. The interval is symmetric on the
    scale of the logarithm.

    Range:
        0 to 1; undefined if no item with a group is shown.

    Source:
        Cachel and Rundensteiner, package FairRankTune, AWRF with MinMaxRatio; the attention
        after Sapiezynski et al., WWW 2019 companion.
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        return self._compare_sizes(evidence)


@dataclass(frozen=True, kw_only=True)
class ExposureToRelevance(_ExposureRatio):
    """Disparate treatment: exposure for each relevant item, of the group of items with the least.

        EXPU = min_g x_g / max_g x_g,    x_g = Σ_q Σ_{i in g} E_qi / Σ_q |R_q ∩ g|

    E_qi is the exposure of item i in the list of query q, and R_q its relevant items: the test
    items that may be recommended. 1 is exposure in proportion to relevance. Groups without a
    relevant item are excluded with a warning. Queries without a relevant item are excluded, and
    counted as undefined. Undefined if fewer than two groups remain, or none of them is shown. The
    interval is symmetric on the scale of the logarithm.

    Range:
        0 to 1; undefined if fewer than two groups have relevant items.

    Source:
        Singh and Joachims, "Fairness of exposure in rankings", KDD 2018, disparate treatment
        ratio; Cachel and Rundensteiner, package FairRankTune, EXPU.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items", "test"})
    direction: ClassVar[Direction] = "higher"

    browsing: BrowsingModel = "dcg"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        relevant, groups = select_relevant(evidence), self.read_groups(evidence)
        exposure = self._expose(evidence, groups)
        return self._compare_relevance(evidence, groups, exposure, relevant)


@dataclass(frozen=True, kw_only=True)
class ClicksToRelevance(_ExposureRatio):
    """Disparate impact: clicks for each relevant item, of the group of items with the fewest.

        EXPRU = min_g x_g / max_g x_g,    x_g = Σ_q Σ_{i in R_q ∩ g} E_qi / Σ_q |R_q ∩ g|

    E_qi is the exposure of item i in the list of query q, and R_q its relevant items: the test
    items that may be recommended. An item is clicked if it is seen and relevant, so the expected
    number of clicks is its exposure if it is relevant, else 0. Groups without a relevant item are
    excluded with a warning. Queries without a relevant item are excluded, and counted as
    undefined. Undefined if fewer than two groups remain, or no relevant item is shown. The
    interval is symmetric on the scale of the logarithm.

    Range:
        0 to 1; undefined if fewer than two groups have relevant items.

    Source:
        Singh and Joachims, "Fairness of exposure in rankings", KDD 2018, disparate impact ratio;
        Cachel and Rundensteiner, package FairRankTune, EXPRU.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items", "test"})
    direction: ClassVar[Direction] = "higher"

    browsing: BrowsingModel = "dcg"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        relevant, groups = select_relevant(evidence), self.read_groups(evidence)
        exposure = self.expose_items(evidence)[:, : relevant.shape[1]]
        clicks = groups.add_members(exposure.multiply(relevant).tocsr())
        return self._compare_relevance(evidence, groups, clicks, relevant)


def _add_log_interval(ratio: Measurement) -> Measurement:
    """Return a ratio with the interval of its logarithm."""
    low, high = log_interval(ratio.value, ratio.replicates)  # type: ignore[arg-type]
    return replace(ratio, ci_low=low, ci_high=high, log_scale=True)


def divide_extremes(values: FloatArray) -> FloatArray:
    """Return the smallest value divided by the largest, ``(..., g)`` to ``float64[...]``.

    NaN values are left out; NaN if fewer than two remain or the largest is 0.

    >>> divide_extremes(np.array([[2.0, 4.0], [np.nan, 1.0], [0.0, 0.0]])).tolist()
    [0.5, nan, nan]
    """
    is_defined = ~np.isnan(values)
    smallest = np.where(is_defined, values, np.inf).min(axis=-1, initial=np.inf)
    largest = np.where(is_defined, values, -np.inf).max(axis=-1, initial=-np.inf)
    defined = (is_defined.sum(axis=-1) > 1) & (largest > 0)
    undefined = np.full(smallest.shape, np.nan)
    return np.asarray(np.divide(smallest, largest, out=undefined, where=defined))
