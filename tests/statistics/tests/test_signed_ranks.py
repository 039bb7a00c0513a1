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
    assert ranks.n.tolist() == [0] * shape[0]
    assert compute_p_values(ranks).tolist() == [1] * shape[0]
