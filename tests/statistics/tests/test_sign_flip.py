from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recbias.core.dataset import FloatArray
from recbias.statistics import paired as module
from recbias.statistics.paired import SignFlip


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
