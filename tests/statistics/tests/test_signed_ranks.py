from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.arrays import FloatArray
from recbias.statistics.tests.signed_ranks import EXACT, null_distribution, signed_ranks, two_sided

wilcoxon: Any = stats.wilcoxon  # its stubs do not know all of its methods


def test_rank_sums_by_hand() -> None:
    # sizes 3 1 1 2 (0 and NaN dropped): ranks 4, 1.5, 1.5, 3; up 4 + 1.5, down 1.5 + 3
    found = signed_ranks(np.array([[3.0, -1.0, 0.0, 1.0, np.nan, -2.0]]))
    assert (found.n[0], found.up[0], found.down[0]) == (4, 5.5, 4.5)
    assert found.ties[0] == 2**3 - 2


@pytest.mark.parametrize("n", range(1, 9))
def test_null_distribution_is_that_of_all_signings(n: int) -> None:
    sums = [sum(np.flatnonzero(signs) + 1) for signs in product([0, 1], repeat=n)]
    expected = [np.mean(np.array(sums) <= w) for w in range(n * (n + 1) // 2 + 1)]
    assert null_distribution(n).tolist() == expected


def test_null_distribution_of_the_longest_is_a_distribution() -> None:
    found = null_distribution(EXACT)
    assert found[-1] == 1
    assert (np.diff(found) > 0).all()
    assert found[0] == 2.0**-EXACT


def random_differences(seed: int, *, coarse: bool, n: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    found = rng.normal(0.3, 1.0, size=(4, n))
    return np.round(found * 2) / 2 if coarse else found


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, EXACT))
def test_without_ties_the_p_value_is_exact(seed: int, n: int) -> None:
    gaps = random_differences(seed, coarse=False, n=n)
    found = two_sided(signed_ranks(gaps))
    expected = wilcoxon(gaps, axis=1, method="exact").pvalue
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:invalid value")  # scipy's, where all differences are 0
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(20, 80))
def test_with_ties_it_is_the_normal_approximation(seed: int, n: int) -> None:
    gaps = random_differences(seed, coarse=True, n=n)
    found = two_sided(signed_ranks(gaps))
    expected = wilcoxon(
        gaps, axis=1, zero_method="wilcox", correction=False, method="asymptotic"
    ).pvalue
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_many_differences_without_ties_are_approximated_too() -> None:
    gaps = random_differences(5, coarse=False, n=EXACT + 1)
    expected = wilcoxon(gaps, axis=1, correction=False, method="asymptotic").pvalue
    np.testing.assert_allclose(two_sided(signed_ranks(gaps)), expected, rtol=1e-10)


def test_rows_of_different_lengths_do_not_mix() -> None:
    gaps = random_differences(9, coarse=False, n=12)
    gaps[1, 3:] = np.nan
    gaps[2, :5] = 0.0
    found = two_sided(signed_ranks(gaps))
    for row, p in zip(gaps, found, strict=True):
        kept = row[~np.isnan(row) & (row != 0)]
        assert p == pytest.approx(wilcoxon(kept, method="exact").pvalue, rel=1e-12)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0)])
def test_nothing_to_rank(shape: tuple[int, int]) -> None:
    found = signed_ranks(np.empty(shape))
    assert found.n.tolist() == [0] * shape[0]
    assert two_sided(found).tolist() == [1] * shape[0]


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), coarse=st.booleans())
def test_turning_all_signs_swaps_the_sums_and_keeps_p(seed: int, n: int, *, coarse: bool) -> None:
    gaps = random_differences(seed, coarse=coarse, n=n)
    one, two = signed_ranks(gaps), signed_ranks(-gaps)
    assert one.up.tolist() == two.down.tolist()
    np.testing.assert_allclose(two_sided(one), two_sided(two), rtol=1e-12)
