from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import FloatArray
from recbias.core.queries import Assumption, UncertainGroups
from recbias.statistics.groups import compute_moments, welch_contrasts
from recbias.statistics.uncertain import compare_contributions, count_df, measure_contributions

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
