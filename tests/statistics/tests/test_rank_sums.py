from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from recbias.statistics.groups import compare_ranks

NAMES = ("a", "b")
SAMPLES = st.lists(st.integers(0, 5), min_size=2, max_size=30)


def test_by_hand() -> None:
    # a above b: (3, 1), (3, 2), (2, 1); equal: (2, 2): U = 3.5 of 4
    test = compare_ranks(NAMES, np.array([3.0, 2.0]), np.array([1.0, 2.0]), between="targets")
    assert (test.statistic, test.effect_size) == (3.5, 0.75)
    assert (test.mean_a, test.mean_b, test.difference, test.n) == (2.5, 1.5, 1.0, 4)
    assert (test.between, test.test, test.a, test.b) == ("targets", "rank_sum", "a", "b")


@given(SAMPLES, SAMPLES)
def test_p_is_that_of_scipy_and_sides_are_symmetric(first: list[int], second: list[int]) -> None:
    a, b = np.array(first, dtype=float), np.array(second, dtype=float)
    test = compare_ranks(NAMES, a, b, between="targets")
    swapped = compare_ranks(NAMES, b, a, between="targets")
    assert swapped.effect_size == pytest.approx(-test.effect_size)
    assert swapped.p == pytest.approx(test.p)
    if np.unique([*first, *second]).size > 1:
        expected = mannwhitneyu(a, b, method="asymptotic")
        assert (test.statistic, test.p) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("size", [0, 1])
def test_a_sample_below_two_values_has_no_p(size: int) -> None:
    test = compare_ranks(NAMES, np.zeros(size), np.ones(3), between="targets")
    assert math.isnan(test.p)
    assert math.isnan(test.effect_size)
