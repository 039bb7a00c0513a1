from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from recbias.core.dataset import FloatArray
from recbias.core.measures import Measurement
from recbias.statistics.bootstrap import CountedValues, Slopes, resample_counts


def sample_world(seed: int, n: int = 40) -> tuple[FloatArray, FloatArray]:
    """Return the items of each user, and the weights of the items in the value of each user."""
    rng = np.random.default_rng(seed)
    counts = (rng.random((n, 6)) < np.array([0.9, 0.7, 0.5, 0.4, 0.3, 0.3])).astype(np.float64)
    counts[:3] = 1.0
    return counts, rng.normal(size=(n, 6))


def make_slopes(slopes: FloatArray) -> tuple[Slopes, Slopes]:
    """Return two parts that add up to derivatives, each with factors of its rows and columns."""
    n, m = slopes.shape
    of_query, of_count = np.linspace(1, 2, n), np.linspace(3, 1, m)
    part = slopes / of_query[:, None] / of_count
    return (
        Slopes(csr_array(part * 0.75), of_query, of_count),
        Slopes(csr_array(slopes), np.full(n, 0.5), np.full(m, 0.5)),
    )


def evaluate(weights: FloatArray, counts: FloatArray, of_user: FloatArray) -> FloatArray:
    return np.asarray(weights @ np.log(of_user @ counts))


def test_the_derivatives_are_those_of_small_changes_of_the_weights() -> None:
    counts, weights = sample_world(1)
    n = len(counts)
    ones = np.ones(n)

    def average(of_user: FloatArray) -> float:
        return float(of_user @ evaluate(weights, counts, of_user) / of_user.sum())

    def differentiate(user: int, step: float = 1e-3) -> tuple[float, float]:
        up, down = ones.copy(), ones.copy()
        up[user] += step
        down[user] -= step
        first = (average(up) - average(down)) / (2 * step)
        return first, (average(up) - 2 * average(ones) + average(down)) / step**2

    first, second = map(np.array, zip(*map(differentiate, range(n)), strict=True))
    scaled = (average(1.001 * ones) - 2 * average(ones) + average(0.999 * ones)) / 1e-6
    bias = (second.sum() - scaled / n) / 2
    se = np.sqrt(n) * first.std(ddof=1)
    popularity = counts.sum(axis=0)
    slopes = weights / popularity
    values, users = evaluate(weights, counts, ones), np.arange(n)
    parts = make_slopes(slopes)
    curvatures = [part.scale(of_count=-1.0 / popularity) for part in parts]
    counted = CountedValues(values, users, csr_array(counts), parts, curvatures)
    assert counted.correct().mean() == pytest.approx(average(ones) - bias, abs=1e-5)
    low, high = counted.compute_interval()
    assert (low + high) / 2 == pytest.approx(average(ones))
    assert (high - low) / 2 == pytest.approx(2.022691 * se, rel=1e-4)  # t(39)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30))
def test_values_that_depend_on_no_count_have_students_interval(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n)
    values[0] = np.nan
    counts = csr_array(np.ones((n - 1, 3)))
    users = np.arange(n) - 1  # the query without a value is of no user
    ends = CountedValues(values, users, counts, ()).compute_interval()
    expected = Measurement.from_values(values)
    np.testing.assert_allclose(ends, (expected.ci_low, expected.ci_high))


def test_fewer_than_two_values_have_no_interval() -> None:
    counts = csr_array(np.ones((1, 2)))
    for value in (np.nan, 1.0):
        counted = CountedValues(np.array([value]), np.arange(1), counts, ())
        assert np.isnan(counted.compute_interval()).all()
    rng = np.random.default_rng(0)
    ends = resample_counts(
        np.array([np.nan]), np.arange(1), counts, lambda _rows: np.asarray, rng=rng
    )
    assert np.isnan(ends).all()


def test_the_bootstrap_has_the_error_of_the_derivatives() -> None:
    counts, weights = sample_world(3, n=400)
    popularity = counts.sum(axis=0)
    values, slopes = weights @ np.log(popularity), weights / popularity
    users, matrix = np.arange(400), csr_array(counts)
    low, high = CountedValues(values, users, matrix, make_slopes(slopes)).compute_interval()
    ends = resample_counts(
        values,
        users,
        matrix,
        lambda rows: lambda count: weights[rows] @ np.log(count),
        rng=np.random.default_rng(0),
    )
    assert ends[1] - ends[0] == pytest.approx(high - low, rel=0.2)  # 200 samples: se of 5%
    # on more than 20,000 users, sets of them are sampled, and some of the queries evaluated
    many = np.tile(np.arange(400), 60)
    large = resample_counts(
        values[many],
        np.arange(24_000),
        csr_array(counts[many]),
        lambda rows: lambda count: weights[many[rows]] @ np.log(count / 60),
        rng=np.random.default_rng(0),
    )
    assert large[1] - large[0] == pytest.approx((high - low) / np.sqrt(60), rel=0.25)
