from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from recbias.statistics import bootstrap
from recbias.statistics.bootstrap import (
    compare_replicates,
    prepare_sums,
    resample_squares,
    resample_sums,
)


def sample_sums(matrix: np.ndarray, n_samples: int, seed: int) -> np.ndarray:
    return np.concatenate(list(resample_sums(csr_array(matrix), n_samples, seed)))


def test_sums_are_those_of_rows_drawn_with_replacement(rng: np.random.Generator) -> None:
    matrix = rng.integers(0, 2, size=(17, 6))
    draws = np.random.default_rng(8)
    expected = [matrix[draws.integers(17, size=17)].sum(axis=0).tolist() for _ in range(50)]
    assert sample_sums(matrix, 50, 8).tolist() == expected


def test_pairs_by_hand() -> None:
    # differences of a and b over four samples: 2, 1, -1, 0: mean 0.5, se sqrt(5 / 3) = 1.290994;
    # the figures differ by 2: z = 1.549193, p = 0.121335; interval 2 +- 1.959964 x 1.290994
    columns = compare_replicates(
        np.array([3.0, 1.0]), np.array([[3.0, 3, 1, 2], [1, 2, 2, 2]]), alpha=0.05
    )
    assert columns["difference"].tolist() == [2]
    assert (columns["mean_a"].tolist(), columns["mean_b"].tolist()) == ([3], [1])
    assert columns["statistic"][0] == pytest.approx(1.549193, abs=1e-6)
    assert columns["p"][0] == pytest.approx(0.121335, abs=1e-6)
    assert columns["ci_low"][0] == pytest.approx(2 - 1.959964 * 1.290994, abs=1e-5)
    assert columns["ci_high"][0] == pytest.approx(2 + 1.959964 * 1.290994, abs=1e-5)
    for name in ("n", "df", "effect_size"):
        assert np.isnan(columns[name]).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_no_sample_changes_has_no_test(sign: int) -> None:
    replicates = np.stack([np.zeros(999), np.full(999, -0.5 * sign)])
    columns = compare_replicates(np.array([0.0, -0.5 * sign]), replicates, 0.05)
    assert columns["difference"].tolist() == [0.5 * sign]
    for name in ("statistic", "p", "ci_low", "ci_high"):
        assert np.isnan(columns[name]).all(), name


def test_systems_that_never_differ_have_a_p_of_one() -> None:
    columns = compare_replicates(np.array([0.3, 0.3]), np.full((2, 10), 0.3), 0.05)
    assert columns["p"].tolist() == [1]


def test_samples_without_a_figure_are_left_out_pair_by_pair() -> None:
    replicates = np.array([[1.0, np.nan, 2, 3], [0, 5, np.nan, 1], [np.nan] * 4])
    columns = compare_replicates(np.array([1.0, 0.5, np.nan]), replicates, 0.05)
    # (0, 1): differences 1 and 2 are left: se sqrt(1 / 2), z = 0.5 / 0.707107
    assert columns["statistic"][0] == pytest.approx(0.707107, abs=1e-6)
    assert np.isnan(columns["p"]).tolist() == [False, True, True]
    assert np.isnan(columns["ci_low"]).tolist() == [False, True, True]


def test_the_interval_holds_the_difference_where_the_samples_lie_beside_it() -> None:
    """Coverage: every sample is lower than the figure, and lower by more for one of the two."""
    rng = np.random.default_rng(2)
    samples = np.stack([0.45 + 0.01 * rng.normal(size=500), 0.48 + 0.01 * rng.normal(size=500)])
    columns = compare_replicates(np.array([0.60, 0.50]), samples, 0.05)
    assert columns["ci_low"][0] < columns["difference"][0] < columns["ci_high"][0]
    assert columns["statistic"][0] > 0


@pytest.mark.slow
def test_the_level_holds_and_a_planted_difference_is_found(rng: np.random.Generator) -> None:
    # the figure is the share of ones among 200 rows; 500 worlds with equal systems, and 100 in
    # which one has a quarter more
    def compute_p_value(share: float, seed: int) -> float:
        rows = np.stack([rng.random(200) < 0.5, rng.random(200) < share], axis=1).astype(int)
        replicates = sample_sums(rows, 199, seed).T / 200
        return float(compare_replicates(rows.mean(axis=0), replicates, 0.05)["p"][0])

    null = np.mean([compute_p_value(0.5, seed) <= 0.05 for seed in range(500)])
    assert 0.02 < null < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 500)
    assert np.mean([compute_p_value(0.75, seed) <= 0.05 for seed in range(100)]) > 0.95


@pytest.mark.parametrize("df", [math.nan, 4.0])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_the_same_lists_added_up_in_another_order_do_not_differ(unit: float, df: float) -> None:
    rng = np.random.default_rng(3)
    values = unit * rng.random(300)
    samples = [rng.permutation(300) for _ in range(200)]
    # the same numbers in every sample, from the front and from the back
    replicates = np.array(
        [
            [sum(values[sample]) / 300 for sample in samples],
            [sum(values[::-1][e]) / 300 for e in samples],
        ]
    )
    points = np.array([sum(values) / 300, sum(values[::-1]) / 300])
    assert points[0] != points[1]
    assert (replicates[0] != replicates[1]).any()
    columns = compare_replicates(points, replicates, 0.05, df=df)
    assert columns["p"].tolist() == [1]
    assert np.isnan(columns["statistic"]).all()
    for name in ("difference", "ci_low", "ci_high"):
        assert columns[name].tolist() == [0]


@pytest.mark.parametrize("unit", [1.0, 1e-30, 1e30])
def test_a_difference_that_is_small_but_no_rounding_is_tested(unit: float) -> None:
    rng = np.random.default_rng(3)
    values = 0.5 + 0.01 * rng.normal(size=500)
    gaps = 1e-10 * rng.normal(size=500)
    gaps /= gaps.std(ddof=1) / 1e-10
    columns = compare_replicates(
        unit * np.array([0.5 + 4e-10, 0.5]), unit * np.stack([values + gaps, values]), 0.05
    )
    # the spread of the gaps is 1e-10: z = 4 and p = 6.334e-05
    assert columns["difference"][0] == pytest.approx(unit * 4e-10, rel=1e-5)
    assert columns["statistic"][0] == pytest.approx(4, rel=1e-4)
    assert columns["p"][0] == pytest.approx(6.334e-05, rel=1e-3)


def test_sums_of_joined_rows_are_exact_in_single_precision(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 500, size=(40, 30))
    weights = np.array(rng.multinomial(40, np.full(40, 1 / 40), 50))
    sums = prepare_sums(counts)(weights)
    assert sums.dtype == np.float32
    np.testing.assert_array_equal(sums, weights @ counts)
    np.testing.assert_array_equal(prepare_sums(csr_array(counts))(weights), weights @ counts)
    assert prepare_sums(counts * 10**6)(weights).dtype == np.float64
    assert prepare_sums(counts * 0.5)(weights).dtype == np.float64


@pytest.mark.parametrize("large", [10, 100])
def test_squares_of_samples_are_those_of_their_sums(
    large: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "LARGE", large)
    monkeypatch.setattr(bootstrap, "N_SETS", 6)
    rows = csr_array(rng.normal(size=(40, 9)) * (rng.random((40, 9)) < 0.5))
    sums = np.concatenate([*resample_sums(rows, 50, 3)])
    squares = resample_squares(rows, 50, 3)
    np.testing.assert_allclose(squares, (sums**2).sum(axis=1), rtol=1e-12)
