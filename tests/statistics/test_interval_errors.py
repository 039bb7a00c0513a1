from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_rel

from recbias.statistics.intervals import UNTESTABLE, derive_error, detect_difference

ROW: dict[str, Any] = {
    "between": "models",
    "test": "paired_t",
    "n": 4.0,
    "df": 3.0,
    "alpha": 0.05,
    "correction": "none",
    "family_size": 1.0,
}


def test_the_error_is_that_of_the_paired_differences() -> None:
    a, b = np.array([5.0, 4.0, 7.0, 6.0]), np.array([3.0, 3.0, 4.0, 4.0])
    interval = ttest_rel(a, b).confidence_interval(0.95)
    error, df = derive_error({**ROW, "ci_low": interval.low, "ci_high": interval.high})
    # Differences 2, 1, 3, 2: sd 0.8165, se 0.8165 / 2 = 0.4082.
    assert error == pytest.approx(0.40825, abs=1e-5)
    assert df == 3


@given(st.floats(0.01, 100), st.integers(1, 50))
def test_what_is_detectable_grows_with_the_interval_and_the_family(half: float, size: int) -> None:
    row = {**ROW, "ci_low": -half, "ci_high": half, "correction": "bonferroni"}
    single = detect_difference(row)
    assert detect_difference({**row, "family_size": size}) >= single
    assert single > half  # power is about one half at the half width
    assert detect_difference({**row, "ci_high": 2 * half}) > single


@pytest.mark.parametrize("test", sorted(UNTESTABLE))
def test_tests_of_no_two_means_have_no_detectable_difference(test: str) -> None:
    row = {**ROW, "test": test, "ci_low": -1.0, "ci_high": 1.0}
    assert math.isnan(detect_difference(row))


@pytest.mark.parametrize("half", [0.0, math.nan])
def test_without_variance_or_interval_it_is_undefined(half: float) -> None:
    assert math.isnan(detect_difference({**ROW, "ci_low": -half, "ci_high": half}))


@pytest.mark.parametrize(("n", "is_possible"), [(5, False), (6, True)])  # 2 / 2⁵ is 0.0625
def test_few_units_cannot_be_significant_by_their_signs(n: int, is_possible: bool) -> None:
    row = {**ROW, "test": "sign_flip", "n": float(n), "df": math.nan, "ci_low": -1, "ci_high": 1}
    assert math.isnan(detect_difference(row)) != is_possible


def test_groups_have_intervals_of_95_percent_at_any_level() -> None:
    half = float(t.ppf(0.975, 3))
    row = {**ROW, "between": "groups", "alpha": 0.01, "ci_low": -half, "ci_high": half}
    assert derive_error(row)[0] == pytest.approx(1.0)
