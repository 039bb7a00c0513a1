"""Attention-weighted rank fairness (AWRF), in both forms that are published under the name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.exposure.browsing import select_relevant, sum_rows
from recbias.metrics.exposure.exposure_metric import GroupExposureMetric
from recbias.metrics.exposure.group_targets import (
    Target,
    compute_target_shares,
    find_entries,
    list_target_needs,
    validate_target,
)
from recbias.metrics.exposure.hidden_groups import drop_intervals


@dataclass(frozen=True, kw_only=True)
class TargetedMetric(GroupExposureMetric):
    """A measure that compares the exposure of groups of items with target shares.

    Args:
        target: The shares that the groups should have: ``catalogue`` for their shares of the items
            that may be recommended, ``interactions`` of the training interactions, ``relevant`` of
            the test items that may be recommended, ``equal`` for the same share each, or a
            share for each group: ``{F: 0.5, M: 0.5}``. A group that it does not name has 0.

    Raises:
        OutOfRange: The shares of the target do not sum to 1, or one is negative.
        UnknownName: The target names a group that no item has.
    """

    target: Target = "catalogue"

    def __post_init__(self) -> None:
        validate_target(self.target)

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return self.needs | list_target_needs(self.target)

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` about the groups and the target."""
        compute_target_shares(evidence, self.target, self.read_groups(evidence))


@dataclass(frozen=True, kw_only=True)
class AWRF(TargetedMetric):
    """How near the shares of exposure of the groups of items are to target shares, in each list.

        AWRF(q) = 1 - JSD(a, p),    a_g = Σ_r e(r) A_{i_r, g} / Σ_h Σ_r e(r) A_{i_r, h}
        JSD(a, p) = ½ Σ_g a_g log2(2 a_g / (a_g + p_g)) + ½ Σ_g p_g log2(2 p_g / (a_g + p_g))

    A_{i,g} is the part of item i in group g, e(r) the exposure of rank r, and p the target. 1 is
    the target itself; 0 is reached if only groups with target 0 are shown. The logarithm has base
    2; TREC's script uses the natural one, with which the lowest value is 0.307, and the same
    exposure for the ranks 1 and 2. A short list cannot match a target of many groups: compare with
    Random. The target ``relevant`` is that of each query. Undefined for a list without an item of
    a group, and for a query without a relevant item of a group, if the target is ``relevant``.

    Range:
        0 to 1; undefined for a list without an item of a group.

    Source:
        Sapiezynski, Zeng, Robertson, Mislove and Wilson, "Quantifying the impact of user attention
        on fair group representation in ranked lists", WWW 2019 companion; with this divergence:
        Ekstrand, McDonald, Raj and Johnson, "Overview of the TREC 2022 fair ranking track".
    """

    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        groups = self.read_groups(evidence)
        target: FloatArray | Matrix
        if self.target == "relevant":
            target = scale_rows(groups.sum_members(select_relevant(evidence)))
        else:
            target = compute_target_shares(evidence, self.target, groups)
        attention = scale_rows(self.expose_groups(evidence, groups))
        fairness = evidence.measure_queries(1.0 - compute_divergence(attention, target))
        return drop_intervals(evidence, groups, [fairness])


def scale_rows(rows: Matrix) -> Matrix:
    """Return the rows divided by their sums; a row without an entry above 0 stays empty."""
    totals = sum_rows(rows)
    parts = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
    scaled = rows.astype(np.float64)
    scaled.data *= np.repeat(parts, np.diff(rows.indptr))
    scaled.eliminate_zeros()
    return scaled


def compute_divergence(shares: Matrix, target: FloatArray | Matrix) -> FloatArray:
    """Return the Jensen-Shannon divergence in bits of each row from the target, ``float64[n]``.

    Only the groups of a row are visited: those that it lacks contribute half of their target.

    Args:
        shares: Rows that sum to 1, CSR ``(n, g)``; NaN is returned for an empty one.
        target: Shares that sum to 1, ``float64[g]``, or those of each row, CSR ``(n, g)``; NaN is
            returned for an empty one.

    >>> from scipy.sparse import csr_array
    >>> shares = csr_array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    >>> compute_divergence(shares, np.array([0.5, 0.5, 0.0])).round(4).tolist()
    [0.0, 1.0, 0.3113]
    """
    rows = np.repeat(np.arange(shares.shape[0]), np.diff(shares.indptr))
    a = shares.data
    if isinstance(target, np.ndarray):
        p, has_target = target[shares.indices], ~np.isnan(target.sum())
    else:
        p = find_entries(target, rows, shares.indices)
        has_target = np.diff(target.indptr) > 0
    terms = a * np.log2(2.0 * a / (a + p))
    terms += p * np.log2(np.where(p > 0, 2.0 * p / (a + p), 1.0)) - p
    sums = np.bincount(rows, weights=terms, minlength=shares.shape[0])
    defined = (np.diff(shares.indptr) > 0) & has_target
    return np.where(defined, np.clip(0.5 * (1.0 + sums), 0.0, 1.0), np.nan)
