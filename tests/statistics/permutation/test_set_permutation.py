from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from recbias.statistics.permutation import permute_membership, permute_sums, sample_sets


def find_p(first: list[float], second: list[float], draws: int = 10_000, seed: int = 0) -> float:
    rng = np.random.default_rng(seed)
    return permute_membership(np.array(first), np.array(second), n_permutations=draws, rng=rng)


def test_every_relabelling_is_counted_by_hand() -> None:
    # mean 0.172; away from it 1.128, -0.272 | -1.472, 0.688, -0.072; the first two make 0.856
    # pairs: 0.856, -0.344, 1.816, 1.056, -1.744, 0.416, -0.344, -0.784, -1.544, 0.616: 5 of 10
    assert find_p([1.3, -0.1], [-1.3, 0.86, 0.1]) == 0.5
    assert find_p([-1.3, 0.86, 0.1], [1.3, -0.1]) == 0.5


def test_the_observed_relabelling_counts_when_they_are_drawn() -> None:
    # no draw of 99 out of 184,756 is likely to separate the sets: 1 of 100
    first, second = (
        [float(value) for value in range(100, 110)],
        [float(value) for value in range(10)],
    )
    assert find_p(first, second, draws=99, seed=1) == 0.01


def test_a_statistic_of_vectors_by_hand() -> None:
    # less their mean (0.75, 1.5) the vectors are (0.25, -1.5), (2.25, 2.5), (-0.75, 0.5),
    # (-1.75, -1.5); sums of two: ±(2.5, 1), ±(0.5, 1), ±(1.5, 3), their lengths 7.25, 1.25, 11.25
    first, second = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [-1.0, 0.0]])

    def lengths(sums: Any) -> Any:
        return (sums**2).sum(axis=1)

    for left, right in ((first, second), (second, first)):
        rng = np.random.default_rng(0)
        assert permute_sums(left, right, lengths, n_permutations=6, rng=rng) == 4 / 6


def test_an_empty_set_has_no_test() -> None:
    assert math.isnan(find_p([], [1.0]))
    assert math.isnan(find_p([1.0], []))


def test_it_is_that_of_scipy() -> None:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(1)
    first, second = rng.normal(0.5, 1, 6), rng.normal(0, 1, 8)  # 3,003 relabellings

    def gap(x: Any, y: Any, axis: int = -1) -> Any:
        return np.abs(x.mean(axis=axis) - y.mean(axis=axis))

    theirs: Any = permutation_test(
        (first, second), gap, vectorized=True, alternative="greater", n_resamples=9999
    )
    ours = permute_membership(first, second, n_permutations=10_000, rng=rng)
    assert ours == pytest.approx(theirs.pvalue, abs=1e-12)
    sampled = permute_membership(first, second, n_permutations=3000, rng=rng)
    assert sampled == pytest.approx(ours, abs=0.03)


@pytest.mark.parametrize(("n", "size"), [(5, 2), (6, 3), (6, 1)])
def test_every_set_is_as_likely(n: int, size: int, rng: np.random.Generator) -> None:
    from scipy.stats import chisquare

    subsets = sample_sets(20_000, n, size, rng)
    assert (subsets.sum(axis=1) == size).all()
    _, counts = np.unique(subsets @ (1 << np.arange(n)), return_counts=True)
    assert counts.size == math.comb(n, size)
    assert chisquare(counts).pvalue > 0.001


def test_with_nothing_there_5_in_100_are_significant() -> None:
    rng = np.random.default_rng(7)
    worlds = rng.normal(size=(400, 2, 15)).tolist()
    p_values = [find_p(a, b, draws=199, seed=seed) for seed, (a, b) in enumerate(worlds)]
    # 20 of 400 are expected, with a standard deviation of 4.4
    assert 7 <= np.count_nonzero(np.array(p_values) <= 0.05) <= 33
