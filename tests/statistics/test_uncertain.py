from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.dataset import FloatArray
from recbias.core.grouping import Assumption, UncertainGroups
from recbias.core.measures import Measurement, UnitScores
from recbias.statistics.groups import compute_moments, measure_gap, pool_groups, welch_contrasts
from recbias.statistics.uncertain import (
    TEST,
    compare_contributions,
    compare_pooled_contributions,
    compute_uncertain_gap,
    count_df,
    measure_contributions,
    summarize_uncertain_groups,
)

ASSUMPTIONS: tuple[Assumption, ...] = ("probability", "weight")


def make_groups(p: FloatArray, assumption: Assumption) -> UncertainGroups:
    columns = np.column_stack([p, 1.0 - p]) if p.ndim == 1 else p
    names = tuple(f"g{code}" for code in range(columns.shape[1]))
    return UncertainGroups("probabilities", names, columns, assumption)


def test_the_means_of_three_queries_and_their_copies_by_hand() -> None:
    p, x = np.tile([1.0, 0.5, 0.0], 2), np.tile([1.0, 0.4, 0.0], 2)
    # of three queries, P'P = [[1.25, 0.25], [0.25, 1.25]], P'x = (1.2, 0.2), determinant 1.5:
    # (1.25 · 1.2 - 0.25 · 0.2) / 1.5 and (1.25 · 0.2 - 0.25 · 1.2) / 1.5
    fitted = measure_contributions(x, make_groups(p, "probability"))
    assert fitted.means.tolist() == pytest.approx([1.45 / 1.5, -0.05 / 1.5])
    # Σ p x / Σ p = 1.2 / 1.5 and 0.2 / 1.5
    weighted = measure_contributions(x, make_groups(p, "weight"))
    assert weighted.means.tolist() == pytest.approx([0.8, 0.2 / 1.5])


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_a_group_without_a_defined_query_leaves_the_others_their_means(
    assumption: Assumption,
) -> None:
    p = np.repeat(np.eye(3), [3, 2, 1], axis=0)
    measured = measure_contributions(
        np.array([1.0, 2.0, 3.0, 5.0, 7.0, np.nan]), make_groups(p, assumption)
    )
    assert measured.means.tolist() == pytest.approx([2, 6, math.nan], nan_ok=True)
    assert measured.df.tolist() == pytest.approx([2, 1, math.nan], nan_ok=True)
    assert compare_contributions(("a", "b"), measured, (0, 1)).difference == pytest.approx(-4)


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_the_effect_size_of_known_groups_is_cohens_d(assumption: Assumption) -> None:
    # means 2 and 6, sums of squares 2 and 2: -4 / √(4 / 3)
    groups = make_groups(np.array([1.0, 1.0, 1.0, 0.0, 0.0]), assumption)
    measured = measure_contributions(np.array([1.0, 2.0, 3.0, 5.0, 7.0]), groups)
    test = compare_contributions(groups.names, measured, (0, 1))
    assert test.effect_size == pytest.approx(-4 / math.sqrt(4 / 3))


def test_the_standard_error_is_that_of_least_squares_with_hc2() -> None:
    rng = np.random.default_rng(3)
    p = rng.dirichlet([0.5, 0.7, 1.0], 400)
    x = p @ np.array([0.2, 0.5, 0.3]) + rng.normal(0.0, 0.1 + 0.3 * p[:, 0])
    measured = measure_contributions(x, make_groups(p, "probability"))
    coefficients = np.linalg.lstsq(p, x, rcond=None)[0]
    assert measured.means == pytest.approx(coefficients)
    inverse = np.linalg.inv(p.T @ p)
    leverage = np.einsum("ui,ij,uj->u", p, inverse, p)
    squares = (x - p @ coefficients) ** 2 / (1.0 - leverage)
    covariance = inverse @ (p.T * squares) @ p @ inverse
    variance = measured.values.var(axis=0, ddof=1) / x.size
    assert variance == pytest.approx(np.diag(covariance), rel=1e-3)


def test_the_standard_error_of_weighted_means_is_that_of_the_jackknife() -> None:
    rng = np.random.default_rng(4)
    p, x = rng.beta(0.5, 0.5, 300), rng.normal(size=300)
    measured = measure_contributions(x, make_groups(p, "weight"))
    left_out = np.array([np.delete(p * x, u).sum() / np.delete(p, u).sum() for u in range(300)])
    jackknife = (299 / 300) * ((left_out - left_out.mean()) ** 2).sum()
    assert measured.values[:, 0].var(ddof=1) / 300 == pytest.approx(jackknife, rel=0.01)


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
@given(labels=st.lists(st.booleans(), min_size=8, max_size=40), seed=st.integers(0, 1000))
def test_certain_labels_give_the_group_means_and_the_error_of_welch(
    assumption: Assumption, labels: list[bool], seed: int
) -> None:
    certain = np.array(labels, dtype=np.float64)
    if min(certain.sum(), (1.0 - certain).sum()) < 3:
        return
    x = np.random.default_rng(seed).normal(size=certain.size)
    measured = measure_contributions(x, make_groups(certain, assumption))
    codes = (1.0 - certain).astype(np.intp)
    moments = compute_moments(x, codes, 2)
    assert measured.means == pytest.approx(moments.mean)
    assert measured.df == pytest.approx(moments.n - 1.0)
    variance = measured.values.var(axis=0, ddof=1) / x.size
    assert variance == pytest.approx(moments.variance / moments.n)
    ours = compare_contributions(("a", "b"), measured, (0, 1))
    (welch,) = welch_contrasts(("a", "b"), moments, between="groups")
    assert ours.statistic == pytest.approx(welch.statistic)
    assert ours.effect_size == pytest.approx(welch.effect_size)


def test_undefined_values_and_probabilities_are_excluded() -> None:
    rng = np.random.default_rng(5)
    p, x = rng.random(20), rng.random(20)
    p[3], x[7] = math.nan, math.nan
    measured = measure_contributions(x, make_groups(p, "probability"))
    retained = np.delete(np.arange(20), [3, 7])
    alone = measure_contributions(x[retained], make_groups(p[retained], "probability"))
    assert np.flatnonzero(np.isnan(measured.values[:, 0])).tolist() == [3, 7]
    assert measured.values[retained] == pytest.approx(alone.values)


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_a_group_of_one_query_is_undefined(assumption: Assumption) -> None:
    groups = make_groups(np.array([1.0, 0.0, 0.0, 0.0]), assumption)
    measured = measure_contributions(np.array([0.3, 0.1, 0.5, 0.2]), groups)
    assert np.isnan(measured.means).tolist() == [True, False]
    assert np.isnan(measured.values[:, 0]).all()


def test_values_without_probabilities_that_differ_are_undefined() -> None:
    x = np.array([0.3, 0.1, math.nan, math.nan])
    groups = make_groups(np.array([0.5, 0.5, 0.9, 0.1]), "probability")
    assert np.isnan(measure_contributions(x, groups).means).all()


def test_degrees_of_freedom_fall_with_unequal_weights() -> None:
    assert count_df(np.full(10, 0.1), 1) == pytest.approx(9.0)
    # (1 + 9 · 0.01)² / (1 + 9 · 0.0001) - 1
    few = np.array([1.0, *[0.1] * 9])
    assert count_df(few, 1) == pytest.approx(1.09**2 / 1.0009 - 1.0)


def make_groups_means(p: FloatArray) -> UncertainGroups:
    names = tuple(f"g{code}" for code in range(p.shape[1]))
    return UncertainGroups("probabilities", names, p, "probability")


def measure(values: FloatArray) -> Measurement:
    ids = np.array([f"u{row}" for row in range(values.size)], dtype=object)
    return Measurement.from_units(UnitScores("user", ids, values))


def draw(n_groups: int = 2, n: int = 200, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_groups, 0.5), n)
    return p, np.asarray(p[:, 0] * 0.5 + rng.random(n))


def test_the_test_of_two_groups_is_the_paired_test_of_their_contributions() -> None:
    p, x = draw()
    groups = make_groups_means(p)
    first, second = summarize_uncertain_groups(measure(x), groups)
    (test,) = first.contrasts
    expected = stats.ttest_rel(first.units.values, second.units.values)
    assert (test.a, test.b, test.test, test.n) == ("g0", "g1", TEST, 200)
    assert test.statistic == pytest.approx(expected.statistic)
    assert test.p == pytest.approx(2.0 * stats.t.sf(abs(test.statistic), test.df))
    assert test.df < 199  # fewer than of equal weights
    half = stats.t.ppf(0.975, test.df) * test.difference / test.statistic
    assert (test.ci_low, test.ci_high) == pytest.approx(
        (test.difference - half, test.difference + half)
    )


def test_each_pair_or_each_group_against_the_reference_is_tested() -> None:
    p, x = draw(3)
    first, *_ = summarize_uncertain_groups(measure(x), make_groups_means(p))
    assert [(test.a, test.b) for test in first.contrasts] == [
        ("g0", "g1"),
        ("g0", "g2"),
        ("g1", "g2"),
    ]
    first, *_ = summarize_uncertain_groups(measure(x), make_groups_means(p), reference=1)
    assert [(test.a, test.b) for test in first.contrasts] == [("g0", "g1"), ("g2", "g1")]


def test_the_gap_of_two_groups_has_the_interval_of_the_test() -> None:
    p, x = draw()
    gap = compute_uncertain_gap(
        measure(x),
        make_groups_means(p),
        "difference",
        rng=np.random.default_rng(0),
        n_samples=4000,
    )
    (test,) = gap.contrasts
    assert gap.value == pytest.approx(abs(test.difference))
    half = (test.ci_high - test.ci_low) / 2.0
    assert gap.ci_high - gap.value == pytest.approx(half)
    assert gap.df == test.df


def test_ratio_and_std_follow_from_the_means() -> None:
    p, x = draw()
    low, high = sorted(measure_contributions(x, make_groups_means(p)).means)
    for kind, value in (("ratio", low / high), ("std", (high - low) / math.sqrt(2.0))):
        gap = compute_uncertain_gap(
            measure(x),
            make_groups_means(p),
            kind,  # type: ignore[arg-type]
            rng=np.random.default_rng(0),
        )
        assert gap.value == pytest.approx(value)
        assert gap.ci_low < value < gap.ci_high
        assert not gap.contrasts


def test_a_mean_below_zero_has_no_ratio() -> None:
    means = np.array([[-0.2, 0.4], [0.2, 0.4]])
    assert measure_gap(means, "ratio").tolist() == pytest.approx([math.nan, 0.5], nan_ok=True)


def test_samples_leave_undefined_queries_out() -> None:
    p, x = draw()
    x[::2] = np.nan
    gap = compute_uncertain_gap(
        measure(x),
        make_groups_means(p),
        "difference",
        rng=np.random.default_rng(0),
        n_samples=4000,
    )
    assert (gap.n, gap.undefined) == (100, 100)
    assert gap.replicates is not None
    error = gap.replicates.std()
    assert gap.replicates.mean() == pytest.approx(gap.value, abs=5 * error / math.sqrt(4000))
    assert (gap.ci_high - gap.value) / error == pytest.approx(1.98, abs=0.1)


def test_the_gap_of_three_groups_has_no_interval() -> None:
    p, x = draw(3)
    gap = compute_uncertain_gap(
        measure(x), make_groups_means(p), "difference", rng=np.random.default_rng(0)
    )
    means = measure_contributions(x, make_groups_means(p)).means
    assert gap.value == pytest.approx(means.max() - means.min())
    assert math.isnan(gap.ci_low)
    assert not gap.contrasts


def test_equal_values_have_no_test() -> None:
    share = np.random.default_rng(0).random(40)
    p = np.stack([share, 1.0 - share], axis=1)
    groups = make_groups_means(p)
    first, _ = summarize_uncertain_groups(measure(np.full(40, 1.0)), groups)
    assert first.value == pytest.approx(1.0)
    assert math.isnan(first.contrasts[0].p)
    assert first.contrasts[0].difference == 0.0  # not a difference by rounding


def test_groups_over_folds_are_compared_by_the_mean_contribution() -> None:
    p, x = draw()
    noisy = x + np.random.default_rng(2).normal(0.0, 0.1, 200)
    folds = [*summarize_uncertain_groups(measure(x), make_groups_means(p))]
    folds += summarize_uncertain_groups(measure(noisy), make_groups_means(p))
    pooled = pool_groups(folds)
    (test,) = compare_pooled_contributions(pooled)
    mean = measure_contributions((x + noisy) / 2.0, make_groups_means(p)).means
    assert test.difference == pytest.approx(mean[0] - mean[1])
    assert (test.n, test.df, test.test) == (200, 199.0, TEST)
    assert compare_pooled_contributions(pooled, reference="g0")[0].a == "g1"
