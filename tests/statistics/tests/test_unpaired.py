from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f_oneway, ttest_ind

from recbias.statistics.groups import (
    compute_moments,
    overlap_contrasts,
    welch_anova,
    welch_contrasts,
)
from recbias.statistics.paired import cohens_d


def test_welch_by_hand() -> None:
    # a = 1, 3: mean 2, variance 2;  b = 4, 6, 8: mean 6, variance 4
    # error = sqrt(2/2 + 4/3) = 1.527525;  t = -4 / 1.527525 = -2.618615
    # df = (1 + 4/3)^2 / (1^2/1 + (4/3)^2/2) = 5.444444 / 1.888889 = 2.882353
    values, codes = np.array([1.0, 3, 4, 6, 8]), np.array([0, 0, 1, 1, 1])
    (contrast,) = welch_contrasts(("a", "b"), compute_moments(values, codes, 2), between="groups")
    assert (contrast.a, contrast.b, contrast.n) == ("a", "b", 5)
    assert contrast.statistic == pytest.approx(-2.618615, abs=1e-6)
    assert contrast.df == pytest.approx(2.882353, abs=1e-6)
    assert contrast.difference == -4.0


@given(
    st.lists(st.floats(-5, 5), min_size=3, max_size=20).filter(
        lambda sample: np.std(sample) > 0.01
    ),
    st.lists(st.floats(-5, 5), min_size=3, max_size=20).filter(
        lambda sample: np.std(sample) > 0.01
    ),
)
def test_welch_is_scipys(a: list[float], b: list[float]) -> None:
    values = np.array(a + b)
    codes = np.repeat([0, 1], [len(a), len(b)])
    (contrast,) = welch_contrasts(("a", "b"), compute_moments(values, codes, 2), between="groups")
    theirs = ttest_ind(a, b, equal_var=False)
    assert contrast.statistic == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-12)
    assert contrast.p == pytest.approx(theirs.pvalue, rel=1e-7)
    interval = theirs.confidence_interval()
    assert (contrast.ci_low, contrast.ci_high) == pytest.approx(
        (interval.low, interval.high), rel=1e-7
    )
    assert contrast.effect_size == pytest.approx(cohens_d(np.array(a), np.array(b)), rel=1e-9)


@pytest.mark.parametrize("b", [[2.0], [math.nan, math.nan]])
def test_a_group_of_one_or_none_has_no_test(b: list[float]) -> None:
    values = np.array([1.0, 3.0, *b])
    codes = np.repeat([0, 1], [2, len(b)])
    (contrast,) = welch_contrasts(("a", "b"), compute_moments(values, codes, 2), between="groups")
    assert math.isnan(contrast.p)


@pytest.mark.parametrize(
    ("a", "b", "n", "p"),
    [
        (1.0, 0.0, 7, 1 / 120),  # of 10 over 3 divisions
        (0.1, 0.2, 3, 2 / 20),  # and that which swaps them
        (0.7, 0.7, 7, math.nan),
    ],
)
def test_groups_of_equal_values_have_the_p_of_their_labels(
    a: float, b: float, n: int, p: float
) -> None:
    values, codes = np.repeat([a, b], [3, n]), np.repeat([0, 1], [3, n])  # 3 x 0.1 is not 0.3
    moments = compute_moments(values, codes, 2)
    members = np.stack([codes == 0, codes == 1])
    pairs = (np.array([0]), np.array([1]))
    (welch,) = welch_contrasts(("a", "b"), moments, between="groups")
    (overlap,) = overlap_contrasts(("a", "b"), values, members, between="groups", pairs=pairs)
    for test in (welch, overlap):
        names = ("statistic", "effect_size", "ci_low", "ci_high")
        assert all(math.isnan(getattr(test, name)) for name in names), test
    assert welch.p == pytest.approx(p, nan_ok=True)
    assert overlap.p == pytest.approx(p, nan_ok=True)
    assert welch_anova(moments)[2] == pytest.approx(p, nan_ok=True)


@pytest.mark.parametrize(
    ("means", "sizes", "p"),
    [
        ([1, 2, 3], [2, 2, 2], 6 / 90),
        ([1, 2, 3], [2, 3, 4], 1 / 1260),
        ([1, 1, 2], [2, 2, 4], 2 / 420),  # the third group may hold the 1s
        ([1, 1, 1], [2, 2, 2], math.nan),
    ],
)
def test_all_groups_of_equal_values_have_the_p_of_their_labels(
    means: list[float], sizes: list[int], p: float
) -> None:
    codes = np.repeat(np.arange(3), sizes)
    _, _, exact = welch_anova(compute_moments(np.repeat(np.array(means, float), sizes), codes, 3))
    assert exact == pytest.approx(p, nan_ok=True)


def test_a_group_of_equal_values_has_the_spread_of_the_other() -> None:
    values, codes = np.array([0.0, 0, 0, 0, 0, 1, 1]), np.repeat([0, 1], [3, 4])
    moments = compute_moments(values, codes, 2)
    (welch,) = welch_contrasts(("a", "b"), moments, between="groups")
    statistic = -0.5 / math.sqrt((1 / 3) / 3 + (1 / 3) / 4)
    assert welch.statistic == pytest.approx(statistic)
    members, pairs = np.stack([codes == 0, codes == 1]), (np.array([0]), np.array([1]))
    (overlap,) = overlap_contrasts(("a", "b"), values, members, between="groups", pairs=pairs)
    assert (overlap.statistic, overlap.p) == pytest.approx((welch.statistic, welch.p))
    assert welch_anova(moments)[0] == pytest.approx(statistic**2)


@given(
    st.lists(
        st.lists(st.floats(-5, 5), min_size=3, max_size=9).filter(
            lambda sample: np.std(sample) > 0.1
        ),
        min_size=2,
        max_size=5,
    )
)
def test_the_analysis_of_variance_is_scipys(groups: list[list[float]]) -> None:
    values = np.concatenate([np.array(values) for values in groups])
    codes = np.repeat(np.arange(len(groups)), [len(values) for values in groups])
    statistic, df, p = welch_anova(compute_moments(values, codes, len(groups)))
    theirs = f_oneway(*groups, equal_var=False)
    assert statistic == pytest.approx(theirs.statistic, rel=1e-7, abs=1e-10)
    assert p == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
    assert df == len(groups) - 1


def test_groups_that_cannot_be_told_apart_have_no_test() -> None:
    assert math.isnan(welch_anova(compute_moments(np.ones(4), np.array([0, 0, 1, 1]), 2))[2])
    assert math.isnan(welch_anova(compute_moments(np.arange(3.0), np.array([0, 0, 1]), 2))[2])
