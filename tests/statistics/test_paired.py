from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import chi2_contingency, fisher_exact

from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.errors import Contradiction
from recbias.statistics import paired as module
from recbias.statistics.paired import (
    MAX_EXACT,
    ChiSquared,
    Correction,
    Family,
    PairedT,
    SignFlip,
    Wilcoxon,
    adjust,
    check_family,
    cohens_d,
    cohens_dz,
    compute_p_values,
    compute_pair_moments,
    count_tests,
    null_distribution,
    rank_biserial,
    rank_differences,
)

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
    # differences 1 and 2 of two units: of the 4 signings the two with one sign are as extreme
    assert compare_pairs(Wilcoxon(), np.array([[1.0, 2], [0, 0]]))["p"].tolist() == [0.5]


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


def random_values(seed: int, *, holes: float) -> FloatArray:
    rng = np.random.default_rng(seed)
    n_systems, n_units = rng.integers(2, 6), rng.integers(1, 30)
    values = rng.normal(rng.uniform(-5, 5), 1.0, size=(n_systems, n_units))
    values[rng.random(values.shape) < holes] = np.nan
    return values


def test_moments_by_hand() -> None:
    # over units 0, 1, 3: a = 1, 2, 6 (mean 3), b = 2, 0, 1 (mean 1); differences -1, 2, 5:
    # mean 2, squares 9 + 0 + 9, sd sqrt(18 / 2) = 3
    values = np.array([[1.0, 2.0, 8.0, 6.0], [2.0, 0.0, np.nan, 1.0]])
    moments = compute_pair_moments(values)
    assert (moments.a.tolist(), moments.b.tolist(), moments.n.tolist()) == ([0], [1], [3])
    assert (moments.mean_a[0], moments.mean_b[0]) == pytest.approx((3, 1))
    assert (moments.difference[0], moments.std[0]) == pytest.approx((2, 3))


@pytest.mark.parametrize("holes", [0.0, 0.3])
@given(seed=st.integers(0, 2**32 - 1))
def test_one_pass_agrees_with_each_pair_by_itself(holes: float, seed: int) -> None:
    values = random_values(seed, holes=holes)
    moments = compute_pair_moments(values)
    for pair, (a, b) in enumerate(zip(moments.a, moments.b, strict=True)):
        both = ~np.isnan(values[a] - values[b])
        gaps = (values[a] - values[b])[both]
        assert moments.n[pair] == both.sum()
        if gaps.size:
            assert moments.mean_a[pair] == pytest.approx(values[a][both].mean(), rel=1e-12)
            assert moments.difference[pair] == pytest.approx(gaps.mean(), rel=1e-9, abs=1e-13)
        if gaps.size > 1:
            assert moments.std[pair] == pytest.approx(gaps.std(ddof=1), rel=1e-11)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_systems_that_are_nearly_the_same_keep_their_digits(
    gap: float, rng: np.random.Generator
) -> None:
    values = rng.normal(100.0, 30.0, size=5000)
    two = values + gap * rng.normal(0.2, 1.0, size=5000)
    expected = values - two
    moments = compute_pair_moments(np.stack([values, two]))
    assert moments.std[0] == pytest.approx(expected.std(ddof=1), rel=1e-13)
    assert moments.difference[0] == pytest.approx(expected.mean(), rel=1e-13)


@pytest.mark.parametrize("shared", [0, 1])
def test_below_two_shared_units_there_is_no_spread(shared: int) -> None:
    values = np.array([[1.0, 2.0, np.nan], [np.nan, 4.0 if shared else np.nan, 5.0]])
    moments = compute_pair_moments(values)
    assert moments.n[0] == shared
    assert np.isnan(moments.std[0])
    assert np.isnan(moments.difference[0]) == (shared == 0)


def test_columns_hold_the_t_interval_of_the_difference() -> None:
    # differences -1, 2, 5: mean 2, sd 3, t(0.975; 2) = 4.302653, half 4.302653 x 3 / sqrt(3)
    columns = compute_pair_moments(np.array([[1.0, 2.0, 6.0], [2.0, 0.0, 1.0]])).columns(0.05)
    assert columns["ci_low"][0] == pytest.approx(2 - 7.452413, abs=1e-6)
    assert columns["ci_high"][0] == pytest.approx(2 + 7.452413, abs=1e-6)
    assert list(columns) == ["a", "b", "n", "mean_a", "mean_b", "difference", "ci_low", "ci_high"]


def test_rank_sums_by_hand() -> None:
    # sizes 3 1 1 2 (0 and NaN dropped): ranks 4, 1.5, 1.5, 3; up 4 + 1.5, down 1.5 + 3
    ranks = rank_differences(np.array([[3.0, -1.0, 0.0, 1.0, np.nan, -2.0]]))
    assert ranks.tolist() == [[4.0, -1.5, 0.0, 1.5, 0.0, -3.0]]


@pytest.mark.parametrize("doubled", [(2, 4, 6, 8, 10), (3, 3, 6), (5, 5, 5, 5), (2,)])
def test_null_distribution_is_that_of_all_signings(doubled: tuple[int, ...]) -> None:
    sums = [np.dot(signs, doubled) for signs in product([0, 1], repeat=len(doubled))]
    expected = [np.mean(np.array(sums) <= w) for w in range(sum(doubled) + 1)]
    assert null_distribution(doubled).tolist() == expected


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([1.0] * 6, 2 / 64),  # no smaller p is possible
        ([1.0, 1.0, -1.0], 1.0),  # ranks 2, 2, 2: W- is 2, and 7 of 8 signings are <= 4
        ([1.0, 1.0, 2.0, 2.0, 2.0, 3.0], 2 / 64),
        ([-1.0, 1.0, 2.0, 2.0, 2.0, 3.0], 6 / 64),  # W- of 0, 1.5 and 1.5 are at most 1.5
    ],
)
def test_with_few_ties_it_is_exact(differences: list[float], p: float) -> None:
    ranks = rank_differences(np.array([differences]))
    assert compute_p_values(ranks).tolist() == [pytest.approx(p)]


def random_differences(seed: int, *, coarse: bool, n: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    differences = rng.normal(0.3, 1.0, size=(4, n))
    return np.round(differences * 2) / 2 if coarse else differences


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, MAX_EXACT))
def test_without_ties_the_p_value_is_exact(seed: int, n: int) -> None:
    gaps = random_differences(seed, coarse=False, n=n)
    p = compute_p_values(rank_differences(gaps))
    expected = wilcoxon(gaps, axis=1, method="exact").pvalue
    np.testing.assert_allclose(p, expected, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:invalid value")  # scipy's, where all differences are 0
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(100, 140))
def test_with_many_ties_it_is_the_normal_approximation(seed: int, n: int) -> None:
    gaps = random_differences(seed, coarse=True, n=n)
    p = compute_p_values(rank_differences(gaps))
    expected = wilcoxon(
        gaps, axis=1, zero_method="wilcox", correction=False, method="asymptotic"
    ).pvalue
    np.testing.assert_allclose(p, expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0)])
def test_nothing_to_rank(shape: tuple[int, int]) -> None:
    ranks = rank_differences(np.empty(shape))
    assert ranks.shape == shape
    assert compute_p_values(ranks).tolist() == [1] * shape[0]


def compute_p(values: FloatArray, *, seed: int = 0, permutations: int = 10_000) -> FloatArray:
    columns = SignFlip(permutations=permutations).pairs(values, np.random.default_rng(seed))
    return columns["p"]


def enumerate_signings(gaps: FloatArray) -> float:
    """The share of all signings whose sum is as far from zero, by the definition."""
    observed = abs(sum(gaps))
    sums = [abs(np.dot(signs, gaps)) for signs in product([1, -1], repeat=len(gaps))]
    return float(np.mean(np.array(sums) >= observed - 1e-9))


def test_p_value_equals_that_worked_by_hand() -> None:
    # differences 3, 1, -1: observed 3; the 8 sums are +-3 (twice each), +-5, +-1: 6 of 8
    columns = SignFlip().pairs(
        np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.random.default_rng(0)
    )
    assert columns["p"].tolist() == [0.75]
    assert columns["statistic"].tolist() == [1.0]
    assert np.isnan(columns["df"]).all()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 8), coarse=st.booleans())
def test_few_units_are_counted_out(seed: int, n: int, *, coarse: bool) -> None:
    values = np.random.default_rng(seed).normal(size=(3, n))
    if coarse:
        values = np.round(values)
    expected = [enumerate_signings(values[a] - values[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert compute_p(values).tolist() == expected


def test_thirteen_units_are_exact_and_fourteen_are_drawn(rng: np.random.Generator) -> None:
    values = rng.normal(size=(2, 14))
    assert compute_p(values[:, :13], seed=1) == compute_p(values[:, :13], seed=2)
    assert (compute_p(values[:, :13]) * 2**13) % 1 == 0
    n_hits = compute_p(values)[0] * 10_001
    assert n_hits == pytest.approx(round(n_hits), abs=1e-9)


def test_exact_p_agrees_with_scipy(rng: np.random.Generator) -> None:
    values = rng.normal(size=(2, 10))
    expected = stats.permutation_test(
        (values[0], values[1]),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=10_000,
        vectorized=True,
    ).pvalue
    assert compute_p(values)[0] == pytest.approx(expected)


def test_drawn_p_is_never_zero() -> None:
    values = np.stack([np.arange(1.0, 101.0), np.zeros(100)])
    assert compute_p(values, permutations=99).tolist() == [0.01]


def test_undefined_units_are_left_out(rng: np.random.Generator) -> None:
    values = rng.normal(size=(2, 9))
    with_holes = np.insert(values, 4, np.array([np.nan, 1.0]), axis=1)
    assert compute_p(with_holes).tolist() == compute_p(values).tolist()


def test_ties_in_the_last_digit_count_as_ties() -> None:
    # ten differences of 0.1: only the two signings that are all alike reach the observed sum, and
    # with one of -0.1 the 20 with one odd sign do too, whatever 0.1 adds up to
    values = np.full(10, 0.1)
    other = np.append(values[1:], -0.1)
    values = np.stack([values, other, np.zeros(10)])
    assert compute_p(values)[1:].tolist() == [2 / 1024, 22 / 1024]


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_signs_are_fair_and_independent(seed: int) -> None:
    signs = np.concatenate(list(module._iterate_signs(20, 4000, seed)))
    assert signs.shape == (4000, 20)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    slack = 5.5 / np.sqrt(4000)
    assert (np.abs(signs.mean(axis=0)) < slack).all()
    products = signs.T @ signs / 4000 - np.eye(20)
    assert (np.abs(products) < slack).all()


def compare_pairs_proportions(values: Any) -> Mapping[str, AnyArray]:
    return ChiSquared().pairs(np.asarray(values, dtype=float), np.random.default_rng(0))


def test_by_hand() -> None:
    # table 15 5 / 5 15: expected 10 everywhere: X2 = 4 x 25/10 = 10, phi = sqrt(10 / 40)
    columns = compare_pairs_proportions(np.repeat([[1, 1, 1, 0], [1, 0, 0, 0]], 5, axis=1))
    assert columns["statistic"].tolist() == [10.0]
    assert columns["df"].tolist() == [1.0]
    assert columns["p"][0] == pytest.approx(0.001565, abs=1e-6)
    assert columns["test"].tolist() == [""]
    assert columns["effect_size"].tolist() == [0.5]
    assert (columns["mean_a"].tolist(), columns["mean_b"].tolist()) == ([0.75], [0.25])
    assert columns["n"].tolist() == [20]


def test_small_tables_have_the_exact_test() -> None:
    # table 2 0 / 0 2: of the 6 tables with these margins, 2 are as extreme: p = 1/3
    columns = compare_pairs_proportions([[1, 1], [0, 0]])
    assert columns["test"].tolist() == ["fisher_exact"]
    assert columns["p"][0] == pytest.approx(1 / 3)
    assert np.isnan([columns["statistic"][0], columns["df"][0]]).all()
    assert columns["effect_size"].tolist() == [1.0]


def test_the_limit_is_an_expected_count_of_5() -> None:
    # ones 10 and 0 of 20: expected 5; ones 9 and 0 of 20: expected 4.5
    tens, nines, zeros = (np.arange(20) < ones for ones in (10, 9, 0))
    columns = compare_pairs_proportions([tens, zeros, nines])
    assert columns["test"].tolist() == ["", "", "fisher_exact"]
    assert columns["p"][2] == pytest.approx(fisher_exact([[0, 20], [9, 11]]).pvalue)


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60).filter(
        lambda pairs: 0 < sum(map(sum, pairs)) < 2 * len(pairs)
    )
)
def test_both_tests_are_those_of_scipy(pairs: list[tuple[bool, bool]]) -> None:
    values = np.array(pairs, dtype=float).T
    columns = compare_pairs_proportions(values)
    ones = values.sum(axis=1)
    table = np.stack([ones, values.shape[1] - ones], axis=1)
    expected = chi2_contingency(table, correction=False)
    if expected.expected_freq.min() >= 5:
        assert columns["statistic"][0] == pytest.approx(expected.statistic, abs=1e-9)
        assert columns["p"][0] == pytest.approx(expected.pvalue)
    else:
        assert np.isnan(columns["statistic"][0])
        assert columns["p"][0] == pytest.approx(fisher_exact(table).pvalue)
    phi = np.sqrt(expected.statistic / (2 * len(pairs)))
    assert abs(columns["effect_size"][0]) == pytest.approx(phi, abs=1e-9)
    swapped = compare_pairs_proportions(values[::-1])
    assert swapped["p"][0] == pytest.approx(columns["p"][0])
    assert swapped["effect_size"][0] == pytest.approx(-columns["effect_size"][0])


def test_units_that_one_model_does_not_define_are_excluded() -> None:
    values = np.repeat([[1, 1, 1, 0], [1, 0, 0, 0]], 5, axis=1)
    columns = compare_pairs_proportions(np.column_stack([values, [np.nan, 1]]))
    assert columns["n"].tolist() == [20]
    assert columns["statistic"][0] == pytest.approx(10.0)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_values_are_equal(value: float) -> None:
    columns = compare_pairs_proportions(np.full((2, 5), value))
    assert columns["p"].tolist() == [1.0]
    assert np.isnan(columns["statistic"]).all()
    assert np.isnan(columns["effect_size"]).all()


@pytest.mark.parametrize("values", [[[0.2, 1.0, 0.0], [1.0, 1.0, 0.0]], [[1.0], [0.0]]])
def test_other_values_and_single_units_have_no_p(values: list[list[float]]) -> None:
    columns = compare_pairs_proportions(np.array(values))
    assert np.isnan(columns["p"]).all()
    assert np.isnan(columns["statistic"]).all()


METHODS: tuple[Correction, ...] = ("none", "bonferroni", "holm", "bh")
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)

P = np.array([0.02, 0.001, 0.04, 0.3])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("none", [0.02, 0.001, 0.04, 0.3]),
        ("bonferroni", [0.08, 0.004, 0.16, 1.0]),
        # in order 0.001 x 4, 0.02 x 3, 0.04 x 2, 0.3 x 1
        ("holm", [0.06, 0.004, 0.08, 0.3]),
        # in order 0.001 x 4/1, 0.02 x 4/2, 0.04 x 4/3, 0.3 x 4/4
        ("bh", [0.04, 0.004, 0.16 / 3, 0.3]),
    ],
)
def test_adjusted_p_values_equal_those_worked_by_hand(
    method: Correction, expected: list[float]
) -> None:
    assert adjust(P, method).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("method", METHODS)
def test_nan_stays_and_is_not_counted(method: Correction) -> None:
    with_nan = np.insert(P, 2, np.nan)
    adjusted = adjust(with_nan, method)
    assert math.isnan(adjusted[2])
    assert np.delete(adjusted, 2).tolist() == adjust(P, method).tolist()
    assert count_tests(with_nan) == 4


def test_bonferroni_takes_a_size_of_the_users_own() -> None:
    assert adjust(P, "bonferroni", 19).tolist() == pytest.approx([0.38, 0.019, 0.76, 1.0])


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_ranking_corrections_take_no_size(method: Correction) -> None:
    with pytest.raises(Contradiction, match=f"correction {method} ranks") as caught:
        adjust(P, method, 19)
    assert "bonferroni" in caught.value.remedy


@pytest.mark.parametrize(
    ("correction", "family"),
    [("holm", "metric"), ("bh", "report"), ("bonferroni", 19), ("none", 3)],
)
def test_families_that_go_with_their_correction(correction: Correction, family: Family) -> None:
    check_family(correction, family)


@given(p_values)
def test_benjamini_hochberg_agrees_with_scipy(p: np.ndarray) -> None:
    expected = stats.false_discovery_control(p, method="bh")
    np.testing.assert_allclose(adjust(p, "bh"), expected, rtol=1e-12, atol=1e-300)


@given(p_values)
def test_corrections_are_ordered_and_keep_the_order(p: np.ndarray) -> None:
    none, bonferroni, holm, bh = (adjust(p, method) for method in METHODS)
    slack = 1e-15
    assert (none <= bh + slack).all()
    assert (bh <= holm + slack).all()
    assert (holm <= bonferroni + slack).all()
    assert (bonferroni <= 1).all()
    order = np.argsort(p, kind="stable")
    for method in (bonferroni, holm, bh):
        assert (np.diff(method[order]) >= 0).all()


@pytest.mark.parametrize("method", ["bonferroni", "holm"])
def test_false_findings_in_null_worlds_are_as_rare_as_promised(
    method: Correction, rng: np.random.Generator
) -> None:
    # 2,000 worlds of 10 true nulls: any finding in at most alpha of them
    has_finding = [(adjust(row, method) <= 0.05).any() for row in rng.random((2000, 10))]
    assert abs(np.mean(has_finding) - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize(
    ("difference", "std", "expected"), [(1.0, 2.0, 0.5), (-1.0, 2.0, -0.5), (0.0, 1.0, 0.0)]
)
def test_dz_is_the_mean_in_units_of_the_spread(
    difference: float, std: float, expected: float
) -> None:
    assert float(cohens_dz(difference, std)) == expected


@pytest.mark.parametrize("difference", [0.0, 0.5])
def test_dz_of_equal_differences_is_undefined(difference: float) -> None:
    assert math.isnan(cohens_dz(difference, 0.0))


def test_d_by_hand() -> None:
    # means 4 and 7; squares 8 and 2; pooled variance 10 / (3 + 2 - 2) = 3.333; d = -3 / 1.825742
    d = cohens_d(np.array([2.0, 4.0, 6.0, np.nan]), np.array([6.0, 8.0]))
    assert d == pytest.approx(-1.643168, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [([], [1.0, 2.0]), ([1.0], [2.0]), ([1.0, 1.0], [1.0, 1.0])])
def test_d_is_undefined_without_spread(a: list[float], b: list[float]) -> None:
    assert math.isnan(cohens_d(np.array(a), np.array(b)))


@pytest.mark.parametrize(
    ("up", "down", "expected"), [(15, 6, 9 / 21), (6, 15, -9 / 21), (10, 0, 1.0), (3, 3, 0.0)]
)
def test_rank_biserial(up: float, down: float, expected: float) -> None:
    assert float(rank_biserial(up, down)) == pytest.approx(expected)


def test_rank_biserial_without_differences_is_undefined() -> None:
    assert np.isnan(rank_biserial(np.array([0.0]), np.array([0.0]))).all()
