from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.paired import PairedT, SignFlip, Wilcoxon, adjust

TESTS = (PairedT, Wilcoxon, SignFlip)
wilcoxon: Any = stats.wilcoxon  # its stubs do not know all of its methods


def compare_pairs(test: Any, values: FloatArray, seed: int = 0) -> Mapping[str, AnyArray]:
    columns: Mapping[str, AnyArray] = test.pairs(values, np.random.default_rng(seed))
    return columns


def sample_values(rng: np.random.Generator, n_systems: int, n_users: int) -> FloatArray:
    """Values as of nDCG: between 0 and 1, many of them 0, systems alike on a user."""
    taste = rng.normal(0.1, 0.3, size=n_users)
    return np.clip(taste + rng.normal(0.05, 0.2, size=(n_systems, n_users)), 0, 1)


def test_t_by_hand() -> None:
    # differences 2, 1, 3, 2: mean 2, sd sqrt(2/3) = 0.816497, t = 2 / (0.816497 / 2) = 4.898979
    # with 3 degrees of freedom and x = t / sqrt(3) = 2.828427, p = 1 - (2/pi) (arctan x +
    # x / (1 + x^2)) = 1 - 0.636620 x (1.230959 + 0.314270) = 0.016277
    # dz = 2 / 0.816497 = 2.449490
    columns = compare_pairs(PairedT(), np.array([[3.0, 5, 7, 2], [1, 4, 4, 0]]))
    assert columns["n"].tolist() == [4]
    assert columns["mean_a"].tolist() == [4.25]
    assert columns["mean_b"].tolist() == [2.25]
    assert columns["difference"].tolist() == [2]
    assert columns["df"].tolist() == [3]
    assert columns["statistic"][0] == pytest.approx(4.898979, abs=1e-6)
    assert columns["p"][0] == pytest.approx(0.016277, abs=1e-6)
    assert columns["effect_size"][0] == pytest.approx(2.449490, abs=1e-6)


def test_wilcoxon_by_hand() -> None:
    # differences 1, -2, 3, 4, 0: ranks 1, 2, 3, 4; W+ 8, W- 2; of the 16 signings those with
    # W+ <= 2 are {}, {1}, {2}: p = 2 x 3/16; r = (8 - 2) / 10
    columns = compare_pairs(Wilcoxon(), np.array([[1.0, 0, 3, 4, 5], [0, 2, 0, 0, 5]]))
    assert columns["n"].tolist() == [5]
    assert columns["statistic"].tolist() == [2]
    assert columns["p"].tolist() == [0.375]
    assert columns["effect_size"].tolist() == [0.6]
    assert np.isnan(columns["df"]).all()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 200))
def test_t_of_all_pairs_agrees_with_scipy_one_by_one(seed: int, n: int) -> None:
    values = np.random.default_rng(seed).normal(size=(5, n))
    columns = compare_pairs(PairedT(alpha=0.1), values)
    for pair, (a, b) in enumerate(zip(columns["a"], columns["b"], strict=True)):
        expected = stats.ttest_rel(values[a], values[b])
        interval = expected.confidence_interval(0.9)
        assert columns["statistic"][pair] == pytest.approx(
            expected.statistic, rel=1e-10, abs=1e-12
        )
        assert columns["p"][pair] == pytest.approx(expected.pvalue, rel=1e-10)
        assert columns["df"][pair] == expected.df
        assert columns["ci_low"][pair] == pytest.approx(interval.low, rel=1e-9, abs=1e-12)
        assert columns["ci_high"][pair] == pytest.approx(interval.high, rel=1e-9, abs=1e-12)


def test_tiny_p_values_keep_their_digits(rng: np.random.Generator) -> None:
    values = np.stack([rng.normal(0.5, 1, 6000), rng.normal(0, 1, 6000), rng.normal(3, 1, 6000)])
    columns = compare_pairs(PairedT(), values)
    expected = stats.ttest_rel(values[columns["a"]], values[columns["b"]], axis=1).pvalue
    assert 0 < columns["p"][0] < 1e-100
    np.testing.assert_allclose(columns["p"], expected, rtol=1e-10)


@pytest.mark.parametrize("test", [PairedT(), Wilcoxon()])
def test_undefined_values_are_left_out_pair_by_pair(test: Any, rng: np.random.Generator) -> None:
    values = rng.normal(size=(4, 60))
    values[rng.random(values.shape) < 0.2] = np.nan
    columns = compare_pairs(test, values)
    for pair, (a, b) in enumerate(zip(columns["a"], columns["b"], strict=True)):
        both = ~np.isnan(values[a] + values[b])
        alone = compare_pairs(test, values[[a, b]][:, both])
        for name in set(columns) - {"a", "b"}:
            np.testing.assert_allclose(columns[name][pair], alone[name][0], rtol=1e-9)
    defined = ~np.isnan(values[0] + values[1])
    if isinstance(test, Wilcoxon):
        expected = wilcoxon(values[0, defined], values[1, defined], method="exact").pvalue
    else:
        expected = stats.ttest_rel(values[0], values[1], nan_policy="omit").pvalue
    assert columns["p"][0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("n", "steps"), [(20, None), (400, None), (400, 4)], ids=["exact", "many", "many ties"]
)
def test_wilcoxon_agrees_with_scipy(n: int, steps: int | None, rng: np.random.Generator) -> None:
    values = (
        sample_values(rng, 5, n)
        if steps is None
        else np.round(sample_values(rng, 5, n) * steps) / steps
    )
    columns = compare_pairs(Wilcoxon(), values)
    for pair, (a, b) in enumerate(zip(columns["a"], columns["b"], strict=True)):
        gaps = (values[a] - values[b])[values[a] != values[b]]
        exact = gaps.size <= 50 and np.unique(np.abs(gaps)).size == gaps.size
        method = "exact" if exact else "asymptotic"
        expected = wilcoxon(gaps, correction=False, method=method)
        assert columns["statistic"][pair] == pytest.approx(expected.statistic)
        assert columns["p"][pair] == pytest.approx(expected.pvalue, rel=1e-10)


@pytest.mark.parametrize("test", TESTS)
def test_systems_that_never_differ_have_a_p_of_one_and_no_statistic(test: Any) -> None:
    columns = compare_pairs(test(), np.array([[0.5, 0.25, 0.0], [0.5, 0.25, 0.0]]))
    assert columns["p"].tolist() == [1]
    assert columns["difference"].tolist() == [0]
    assert (columns["ci_low"].tolist(), columns["ci_high"].tolist()) == ([0], [0])
    assert np.isnan(columns["effect_size"]).all()
    assert test is SignFlip or np.isnan(columns["statistic"]).all()


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    "values", [[[1.0], [0.0]], [[1.0, np.nan], [np.nan, 0.0]], [[1.0, np.nan], [0.0, np.nan]]]
)
def test_below_two_shared_units_there_is_no_p_value(test: Any, values: list[list[float]]) -> None:
    columns = compare_pairs(test(), np.array(values))
    assert np.isnan(columns["p"]).all()
    assert columns["n"][0] < 2


@pytest.mark.parametrize("shift", [1.0, 0.1])  # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit
def test_equal_differences_have_no_t_and_no_interval(shift: float) -> None:
    values = np.array([[0.3, 0.2, 0.7], [0.3 - shift, 0.2 - shift, 0.7 - shift]])
    columns = compare_pairs(PairedT(), values)
    for name in ("statistic", "df", "effect_size", "ci_low", "ci_high"):
        assert np.isnan(columns[name]).all(), name
    assert columns["difference"][0] == pytest.approx(shift)


@pytest.mark.parametrize("test", TESTS)
def test_equal_differences_have_the_p_of_their_signs(test: Any) -> None:
    # 2 of the 2^6 signings are as far from 0; the units without a value are none of them
    values = np.array([[1.0] * 6 + [np.nan] * 30, [0.0] * 36])
    columns = compare_pairs(test(), values)
    assert columns["p"].tolist() == [2 / 64]
    for name in ("ci_low", "ci_high"):
        assert np.isnan(columns[name]).all()


def test_pairs_with_different_units_have_the_signings_of_their_own_units() -> None:
    # of the 16 signings of 1, 2, 3, -1 the sum is 7 with all signs alike, 5 with one of the two 1
    # turned, and the negative of these: 6 as far as 5; 2^14 of the last pair are sampled
    rows = [[1.0, 2.0, 3.0, -1.0, *[np.nan] * 10], [0.0] * 14, [1.0] * 14]
    columns = compare_pairs(SignFlip(), np.array(rows))
    assert columns["p"][0] == 6 / 16
    assert columns["p"][2] == pytest.approx(2 / 2**14, abs=5e-4)


def test_differences_by_rounding_alone_are_none() -> None:
    columns = compare_pairs(PairedT(), np.array([[0.3, 0.1 + 0.2], [0.1 + 0.2, 0.3 + 1e-16]]))
    assert (columns["difference"].tolist(), columns["p"].tolist()) == ([0], [1])


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("n", [12, 60])
def test_in_null_worlds_the_level_holds(test: Any, n: int, rng: np.random.Generator) -> None:
    # 1,500 pairs of systems that differ by chance only, their differences skewed in no direction:
    # p <= 0.05 in about 5% of them (for sign_flip and wilcoxon never much more)
    worlds = 1500
    values = rng.standard_t(3, size=(worlds, 2, n))
    plugin = test(permutations=199) if test is SignFlip else test()
    p_values = np.array(
        [compare_pairs(plugin, sample, seed)["p"][0] for seed, sample in enumerate(values)]
    )
    level = np.mean(p_values <= 0.05)
    assert level < 0.05 + 4 * math.sqrt(0.05 * 0.95 / worlds)
    assert level > 0.02


@pytest.mark.parametrize("test", TESTS)
def test_a_planted_difference_is_found_and_only_that(test: Any, rng: np.random.Generator) -> None:
    # system 0 of four is better by 0.05 for each of 800 users, the others are alike
    values = sample_values(rng, 4, 800)
    values[0] += 0.05
    plugin = test(permutations=2000) if test is SignFlip else test()
    columns = compare_pairs(plugin, values)
    significant = adjust(columns["p"], "bonferroni") <= 0.05
    assert significant.tolist() == [True, True, True, False, False, False]
    assert (columns["ci_low"][:3] > 0).all()
    assert (columns["effect_size"][:3] > 0.1).all()
