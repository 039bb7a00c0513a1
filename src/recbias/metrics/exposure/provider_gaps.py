"""Gaps between the exposure of providers (authors, artists, sellers) and their due shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.errors import OutOfRange, UnknownName
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.suggestions import suggest
from recbias.metrics.exposure.attention import TargetedMetric, scale_rows
from recbias.metrics.exposure.browsing import BrowsingModel, select_relevant
from recbias.metrics.exposure.exposure_metric import GroupExposureMetric
from recbias.metrics.exposure.group_targets import compute_target_shares
from recbias.metrics.exposure.hidden_groups import (
    drop_intervals,
    measure_hidden_variance,
    widen_interval,
)
from recbias.metrics.exposure.item_groups import ItemGroups
from recbias.metrics.resampled_estimates import estimate_from_totals
from recbias.numerics.inequality import gini

MAX_GROUPS = 100
"""The number of groups that may have a row each."""


@dataclass(frozen=True, kw_only=True)
class ExposureGap(TargetedMetric):
    """The share of the exposure that each group of items has, minus its target share.

        gap(g) = (1 / |Q|) Σ_q a_qg - p_g,    a_qg = Σ_r e(r) A_{i_r, g} / Σ_h Σ_r e(r) A_{i_r, h}

    a_qg is the share of group g in the exposure of list q, e(r) the exposure of rank r, A_{i,g}
    the part of item i in group g, and p the target; the target ``relevant`` is that of each
    query. One row for each group; a positive value is more exposure than the target. The gaps of
    all groups sum to 0. Undefined for a list without an item of a group, and with the target
    ``relevant`` for a query without such an item. For groups known as probabilities
    (``weight of p_minor``) the interval is that of the hidden groups: it accounts for the sampling
    of queries and for the unknown groups of the items, which are independent given p.

    Args:
        only: The groups to report, by their values; by default all, at most 100.

    Raises:
        OutOfRange: There are more than 100 groups; the shares of the target do not sum to 1.
        UnknownName: ``only`` or the target names a group that no item has.

    Range:
        -1 to 1; undefined for a list without an item of a group.

    Source:
        Gómez, Boratto and Salamó, "Provider fairness across continents in collaborative
        recommender systems", Information Processing and Management 2022, disparate exposure, with
        the representation as target.
    """

    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"

    browsing: BrowsingModel = "dcg"
    only: tuple[str, ...] | None = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` about the groups and the target."""
        super().check(evidence)
        self._find_columns(self.read_groups(evidence))

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the gap of each query and their mean, for each group."""
        groups = self.read_groups(evidence)
        columns = self._find_columns(groups)
        shares = scale_rows(self.expose_groups(evidence, groups))
        defined = np.diff(shares.indptr) > 0
        if self.target == "relevant":
            due = scale_rows(groups.sum_members(select_relevant(evidence)))
            defined &= np.diff(due.indptr) > 0
            gaps = (shares - due).tocsc()
            fixed = np.zeros(len(groups.names))
        else:
            gaps = shares.tocsc()
            fixed = compute_target_shares(evidence, self.target, groups)
        hidden = None
        if groups.is_uncertain:
            exposure = self.expose_items(evidence)
            hidden = measure_hidden_variance(evidence, groups, exposure, defined, self.target)
        measurements = []
        for code in columns.tolist():
            values = gaps[:, [code]].toarray()[:, 0] - fixed[code]
            gap = evidence.measure_queries(np.where(defined, values, np.nan))
            if hidden is not None:
                gap = widen_interval(gap, float(hidden[code]))
            measurements.append(replace(gap, target=f"{self.attribute}={groups.names[code]}"))
        return measurements

    def _find_columns(self, groups: ItemGroups) -> AnyArray:
        names = groups.names
        if self.only is None:
            if len(names) > MAX_GROUPS:
                message = f"{self.attribute!r} has {len(names):,} groups, more than {MAX_GROUPS}"
                remedy = "name groups (only: [...]), or summarise all of them by provider_gap"
                raise OutOfRange(message, where="only", remedy=remedy)
            return np.arange(len(names))
        for name in self.only:
            if name not in names:
                message = f"no item that may be recommended has the {self.attribute} {name!r}"
                raise UnknownName(message, where="only", remedy=suggest(name, names))
        return np.array([names.index(name) for name in self.only], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class ProviderGap(TargetedMetric):
    """How far the providers' shares of exposure are from their target shares, on average.

        provider_gap = (1 / |G|) Σ_g | x_g / Σ_h x_h - p_g |,    x_g = Σ_q Σ_{i in g} E_qi

    G are the values of the attribute (authors, artists, sellers) with an item that may be
    recommended, E_qi is the exposure of item i in the list of query q, and p the target. The paper
    counts recommended items (every rank has the same exposure) and compares with the share of the
    training interactions (``target: interactions``). Half of |G| times the value is the share of
    the exposure that would have to be given to others. It is above 0 by chance, more so with many
    providers or few lists: compare models on the same queries only. Undefined if no item of a
    provider is shown; with the target ``relevant`` (the relevant items of all queries together)
    also without a relevant item.

    Range:
        0 to 1, at most 2 / |G|; undefined if no item of a provider is shown.

    Source:
        Abdollahpouri and Mansoury, "Multi-sided exposure bias in recommendation", IRS at KDD 2020,
        supplier popularity deviation; with the exposure of ranks as in Gómez, Boratto and Salamó,
        Information Processing and Management 2022.
    """

    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = ""

    browsing: BrowsingModel = "dcg"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        from scipy.sparse import hstack

        groups = self.read_groups(evidence)
        totals, n = self.expose_groups(evidence, groups), len(groups.names)
        due = compute_target_shares(evidence, self.target, groups)
        if self.target == "relevant":
            relevance = groups.sum_members(select_relevant(evidence))
            totals = hstack([totals, relevance], format="csr")

        def estimate(sums: AnyArray) -> FloatArray:
            target = compute_shares(sums[..., n:]) if self.target == "relevant" else due
            gaps: FloatArray = np.abs(compute_shares(sums[..., :n]) - target)
            return np.asarray(gaps.mean(axis=-1))

        return drop_intervals(evidence, groups, estimate_from_totals(evidence, totals, estimate))


@dataclass(frozen=True, kw_only=True)
class ProviderGini(GroupExposureMetric):
    """How unevenly the exposure is distributed over the providers of the items.

        Gini = Σ_j (2 j - |G| - 1) x_j / (|G| Σ_j x_j),    x ascending, j from 1

    G are the values of the attribute (authors, artists, sellers) with an item that may be
    recommended, and x_g = Σ_q Σ_{i in g} E_qi the exposure of provider g over all lists, 0 if it
    is never shown. 0 is equal exposure of all providers, however many items they offer. Undefined
    if no item of a provider is shown.

    Range:
        0 to 1 - 1/|G|; undefined if no item of a provider is shown.

    Source:
        Mansoury, Abdollahpouri, Pechenizkiy, Mobasher and Burke, "A graph-based approach for
        mitigating multi-sided exposure bias in recommender systems", ACM TOIS 2021, supplier Gini.
    """

    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = ""

    browsing: BrowsingModel = "dcg"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        groups = self.read_groups(evidence)
        totals = self.expose_groups(evidence, groups)
        return drop_intervals(evidence, groups, estimate_from_totals(evidence, totals, gini))


def compute_shares(totals: AnyArray) -> FloatArray:
    """Return the shares of totals ``(..., g)`` in their sum, NaN where it is 0."""
    sums = np.asarray(totals, dtype=np.float64).sum(axis=-1, keepdims=True)
    undefined = np.full(np.shape(totals), np.nan)
    return np.asarray(np.divide(totals, sums, out=undefined, where=sums > 0))
