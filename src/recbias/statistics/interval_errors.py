"""The standard error behind an interval, and the difference that its test could have found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from recbias.statistics.power import compute_detectable_difference

CONTRAST_LEVEL = 0.05
"""The level of the intervals of tests within a model."""

UNTESTABLE = frozenset({"welch_anova", "random_direction", "rank_sum"})
"""Tests without a difference of two means, which have no detectable one."""


def derive_error(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the standard error and the degrees of freedom behind the interval of a comparison.

        se = (high - low) / (2 t(1 - α/2; df))

    Args:
        row: A row of ``significance.csv``.

    >>> row = {"ci_low": -1.96, "ci_high": 1.96, "df": float("nan"), "n": 10.0}
    >>> error, df = derive_error({**row, "test": "paired_bootstrap", "between": "groups"})
    >>> round(error, 3), df
    (1.0, inf)
    """
    df = _find_df(row)
    level = row["alpha"] if str(row["between"]).startswith("model") else CONTRAST_LEVEL
    half_width = (row["ci_high"] - row["ci_low"]) / 2.0
    return half_width / _compute_quantile(df, 1.0 - level / 2.0), df


def detect_difference(row: Mapping[str, Any], power: float = 0.8) -> float:
    """Return the smallest true difference that a comparison would find with some power.

        D = λ(df, α / m, power) · se

    where m is the size of the family if the p-values are corrected; for Holm and
    Benjamini-Hochberg D is an upper bound. D is NaN without an interval, without variance, for
    ``UNTESTABLE`` tests, and where no p-value of the test can be as small (``find_least_p``).

    Args:
        row: A row of ``significance.csv``.
        power: The probability of a significant result.

    Source:
        Bloom, "Minimum detectable effects", Evaluation Review 1995.
    """
    error, df = derive_error(row)
    if row["test"] in UNTESTABLE or not error > 0:
        return math.nan
    family_size = row["family_size"] if row["correction"] not in {"", "none"} else 1.0
    level = row["alpha"] / max(family_size, 1.0)
    if find_least_p(str(row["test"]), row["n"]) > level:
        return math.nan
    return float(compute_detectable_difference(error, df, alpha=level, power=power))


def find_least_p(test: str, n: float) -> float:
    """Return the smallest p-value of a test of n units: that of sign flips is 2 / 2ⁿ, else 0.

    >>> find_least_p("sign_flip(permutations=99)", 3), find_least_p("paired_t", 3)
    (0.25, 0.0)
    """
    return float(2.0 ** (1.0 - n)) if test.partition("(")[0] == "sign_flip" else 0.0


def _find_df(row: Mapping[str, Any]) -> float:
    """Return the degrees of freedom of the interval; infinite for the normal distribution."""
    if not math.isnan(row["df"]):
        return float(row["df"])
    if row["test"] == "paired_bootstrap":
        return math.inf
    lost = 1.0 if str(row["between"]).startswith("model") else 2.0
    return float(row["n"]) - lost if row["n"] > lost else math.nan


def _compute_quantile(df: float, share: float) -> float:
    from scipy.special import ndtri, stdtrit

    return float(ndtri(share) if math.isinf(df) else stdtrit(df, share))
