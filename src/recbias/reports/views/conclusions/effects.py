"""The size of the effect of a comparison, and what it would have detected."""

from __future__ import annotations

import math
from collections.abc import Sequence

from recbias.reports.views.comparisons import Row
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
