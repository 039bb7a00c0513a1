"""The size of the effect of a comparison, what it would have detected, and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from recbias.reports.views.comparisons import Row, is_significant
from recbias.statistics.interval_errors import derive_error, detect_difference


def compute_effect(row: Row) -> float:
    """Return the size of an effect in standard deviations, for the order of conclusions.

    It is that of the test; else |difference| / (se √n), twice this for two groups; NaN if neither
    exists.
    """
    if not math.isnan(row["effect_size"]):
        return float(abs(row["effect_size"]))
    error, _ = derive_error(row)
    if not error > 0 or not row["n"] > 0:
        return math.nan
    sides = 1.0 if row["between"].startswith("model") else 2.0
    return float(sides * abs(row["difference"]) / error / math.sqrt(row["n"]))


def rank_effect(effect: float) -> float:
    """Return a key to sort effects by: undefined ones come last if the largest is first."""
    return -math.inf if math.isnan(effect) else effect


def find_detectable(rows: Sequence[Row]) -> float:
    """Return the difference that each of these comparisons would have found; NaN if unknown."""
    differences = [detect_difference(row) for row in rows]
    return max((value for value in differences if not math.isnan(value)), default=math.nan)


_DIRECTION = (
    "the test takes the direction as it is, and the interval also covers its sampling error"
)
_REASONS = {
    ("permutation", "targets"): _DIRECTION,
    ("random_direction", "directions"): _DIRECTION,
    ("permutation", "groups"): (
        "the test asks how large the difference would be by chance if membership did not matter, "
        "and the interval how far it may be from that of all there could be"
    ),
}
"""What a test and the interval beside it answer, by test and what it compares."""

_OTHER = "the test and the interval are not made from each other, and the interval is wider"


def explain_zero(rows: Sequence[Row]) -> str:
    """Return why the intervals of significant comparisons include 0; blank if none does.

    >>> row = {"significant": True, "ci_low": -0.1, "ci_high": 0.9, "test": "permutation"}
    >>> explain_zero([{**row, "between": "targets"}])[:54]
    'Significant, though the interval includes 0: the test '
    >>> explain_zero([{**row, "between": "targets", "ci_low": 0.1}])
    ''
    """
    reasons = dict.fromkeys(
        _REASONS.get((str(row["test"]), str(row["between"])), _OTHER)
        for row in rows
        if is_significant(row) and row["ci_low"] <= 0.0 <= row["ci_high"]
    )
    if not reasons:
        return ""
    return f"Significant, though the interval includes 0: {'; or '.join(reasons)}."
