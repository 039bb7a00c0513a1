"""What the unknown groups of items add to an interval: ``attribute: weight of p_minor``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray, Matrix
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.exposure.browsing import mark_candidates, select_relevant, sum_rows
from recbias.metrics.exposure.group_targets import Target
from recbias.metrics.exposure.item_groups import ItemGroups


def measure_hidden_variance(
    evidence: Evidence, groups: ItemGroups, exposure: Matrix, defined: BoolArray, target: Target
) -> FloatArray:
    """Return the variance of the gap of each group over its unknown members, ``float64[g]``.

        V_g = Σ_i ( s_i - t_i )² p_ig (1 - p_ig)

    s_i is the mean share of item i in the exposure of the lists, t_i its part of the target, 0 if
    the target does not depend on the groups of the items, and p_ig the probability that it is in
    group g. Given the probabilities, the groups of two items are independent. Known groups have 0.

    Args:
        evidence: The candidates, the training interactions and the relevant items.
        groups: The groups.
        exposure: The exposure of the items in each list, CSR ``(q, n_items + number outside)``.
        defined: Which lists the gap is a mean of, ``bool[q]``.
        target: The target of the gap.

    >>> from scipy.sparse import csr_array
    >>> groups = ItemGroups("p", ("p", "not p"), csr_array([[0.5, 0.5], [1.0, 0.0]]), np.ones(2))
    >>> exposure, lists = csr_array([[1.0, 3.0]]), np.ones(1, dtype=bool)
    >>> measure_hidden_variance(None, groups, exposure, lists, "equal").tolist()  # ¼² · ½ · ½
    [0.015625, 0.015625]
    """
    from scipy.sparse import csr_array

    shares = _share_items(exposure, groups, defined)
    due: Matrix | None = None
    if target == "relevant":
        due = select_relevant(evidence)
    elif target == "catalogue":
        due = csr_array(mark_candidates(evidence).astype(np.float64)[None])
    elif target == "interactions":
        due = csr_array(np.asarray(evidence.popularity, dtype=np.float64)[None])
    if due is not None:
        rows = defined if due.shape[0] == defined.size else np.ones(1, dtype=bool)
        shares[: due.shape[1]] -= _share_items(due, groups, rows)
    weights = groups.weights.tocoo()
    terms = shares[weights.row] ** 2 * weights.data * (1.0 - weights.data)
    sums = np.bincount(weights.col, weights=terms, minlength=len(groups.names))
    return np.asarray(sums, dtype=np.float64)


def widen_interval(gap: Measurement, variance: float) -> Measurement:
    """Return a mean over lists with the interval of its own and a further, independent error.

        x ± √( h² + z(0.975)² V ),    h the half width without it

    >>> gap = Measurement(0.5, n=9, undefined=0, ci_low=0.2, ci_high=0.8)
    >>> widened = widen_interval(gap, (0.4 / 1.959964) ** 2)
    >>> round(widened.ci_low, 4), round(widened.ci_high, 4)  # √(0.3² + 0.4²) = 0.5
    (0.0, 1.0)
    """
    from scipy.special import ndtri

    error = float(ndtri(0.975)) * math.sqrt(variance)
    half_width = math.hypot((gap.ci_high - gap.ci_low) / 2.0, error)
    low, high = gap.value - half_width, gap.value + half_width
    return replace(gap, ci_low=low, ci_high=high, own_interval=True)


def drop_intervals(
    evidence: Evidence, groups: ItemGroups, measurements: Sequence[Measurement]
) -> list[Measurement]:
    """Return the measurements without their intervals, with a warning, if groups are unknown."""
    if not groups.is_uncertain:
        return [*measurements]
    cause = f"the groups of the items are unknown ({groups.attribute})"
    scope = "only exposure_gap has an interval that accounts for them"
    warn(f"{evidence.metric}: no interval, because {cause}; {scope}")
    return [
        replace(measurement, ci_low=math.nan, ci_high=math.nan, own_interval=True)
        for measurement in measurements
    ]


def _share_items(rows: Matrix, groups: ItemGroups, used: BoolArray) -> FloatArray:
    """Return the mean share of each item in the rows used, of items with a group, ``float64[n]``.

    A row without an item with a group has the share 0.
    """
    totals = sum_rows(groups.sum_members(rows))
    parts = np.divide(1.0, totals, out=np.zeros_like(totals), where=(totals > 0) & used)
    return np.asarray(rows.T @ parts / max(np.count_nonzero(used), 1))
