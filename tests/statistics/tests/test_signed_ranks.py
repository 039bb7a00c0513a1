from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.dataset import FloatArray
from recbias.statistics.paired import (
    MAX_EXACT,
    compute_p_values,
    null_distribution,
    rank_differences,
)

wilcoxon: Any = stats.wilcoxon  # its stubs do not know all of its methods


def test_rank_sums_by_hand() -> None:
    # sizes 3 1 1 2 (0 and NaN dropped): ranks 4, 1.5, 1.5, 3; up 4 + 1.5, down 1.5 + 3
    ranks = rank_differences(np.array([[3.0, -1.0, 0.0, 1.0, np.nan, -2.0]]))
    assert (ranks.n[0], ranks.up[0], ranks.down[0]) == (4, 5.5, 4.5)
    assert ranks.ties[0] == 2**3 - 2


@pytest.mark.parametrize("doubled", [(2, 4, 6, 8, 10), (3, 3, 6), (5, 5, 5, 5), (2,)])
def test_null_distribution_is_that_of_all_signings(doubled: tuple[int, ...]) -> None:
    sums = [np.dot(signs, doubled) for signs in product([0, 1], repeat=len(doubled))]
    expected = [np.mean(np.array(sums) <= w) for w in range(sum(doubled) + 1)]
    assert null_distribution(doubled).tolist() == expected


def test_null_distribution_of_the_longest_is_a_distribution() -> None:
    distribution = null_distribution(tuple(range(2, 2 * MAX_EXACT + 1, 2)))
    assert distribution[-1] == 1
    assert (np.diff(distribution) >= 0).all()
    assert distribution[0] == 2.0**-MAX_EXACT


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


@pytest.mark.parametrize("sizes", [[1.0] * 6, [1.0, 1.0, 2.0, 2.0, 2.0, 3.0], [1.0, 1.0, 2.0]])
def test_with_few_ties_no_level_is_exceeded(sizes: list[float]) -> None:
    signs = np.array([*product([-1.0, 1.0], repeat=len(sizes))])  # equally likely
    p_values = compute_p_values(rank_differences(signs * sizes))
    for level in np.unique(p_values):
        assert np.mean(p_values <= level) <= level + 1e-12


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


def test_many_differences_without_ties_are_approximated_too() -> None:
    gaps = random_differences(5, coarse=False, n=MAX_EXACT + 1)
    expected = wilcoxon(gaps, axis=1, correction=False, method="asymptotic").pvalue
    np.testing.assert_allclose(compute_p_values(rank_differences(gaps)), expected, rtol=1e-10)


def test_rows_of_different_lengths_do_not_mix() -> None:
    gaps = random_differences(9, coarse=False, n=12)
    gaps[1, 3:] = np.nan
    gaps[2, :5] = 0.0
    p_values = compute_p_values(rank_differences(gaps))
    for row, p in zip(gaps, p_values, strict=True):
        nonzero = row[~np.isnan(row) & (row != 0)]
        assert p == pytest.approx(wilcoxon(nonzero, method="exact").pvalue, rel=1e-12)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0)])
def test_nothing_to_rank(shape: tuple[int, int]) -> None:
    ranks = rank_differences(np.empty(shape))
    assert ranks.n.tolist() == [0] * shape[0]
    assert compute_p_values(ranks).tolist() == [1] * shape[0]


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), coarse=st.booleans())
def test_turning_all_signs_swaps_the_sums_and_keeps_p(seed: int, n: int, *, coarse: bool) -> None:
    gaps = random_differences(seed, coarse=coarse, n=n)
    ranks, mirrored = rank_differences(gaps), rank_differences(-gaps)
    assert ranks.up.tolist() == mirrored.down.tolist()
    np.testing.assert_allclose(compute_p_values(ranks), compute_p_values(mirrored), rtol=1e-12)
