from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from recbias.numerics.rank_agreement import kendall_tau, spearman


def test_kendall_by_hand() -> None:
    # orders of four models: metrics a 1 2 3 4, b 1 3 2 4, c 4 3 2 1, d 1 1 2 2
    table = [[1, 1, 4, 1], [2, 3, 3, 1], [3, 2, 2, 2], [4, 4, 1, 2]]
    found = kendall_tau(table)
    # a and b: 5 pairs alike, 1 reversed: 4/6; a and c: -1; b and c: -4/6
    # a and d: of the 4 pairs that d orders all alike: 4 / √(6 x 4)
    # b and d: 3 alike (1-3, 1-4, 2-4), 1 reversed (2-3): 2 / √24
    assert found.tau[0] == pytest.approx([1, 4 / 6, -1, 4 / 24**0.5])
    assert found.tau[1] == pytest.approx([4 / 6, 1, -4 / 6, 2 / 24**0.5])
    assert found.n.tolist() == [[4] * 4] * 4


@given(seed=st.integers(0, 2**32 - 1))
def test_kendall_is_scipys_over_the_models_that_have_both(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 6, (9, 3)).astype(np.float64)  # with ties
    table[rng.random((9, 3)) < 0.15] = np.nan
    found = kendall_tau(table)
    for one in range(3):
        for other in range(3):
            both = ~np.isnan(table[:, [one, other]]).any(axis=1)
            assert found.n[one, other] == both.sum()
            if both.sum() > 1:
                expected = kendalltau(table[both, one], table[both, other]).statistic
                assert found.tau[one, other] == pytest.approx(expected, nan_ok=True)
            else:
                assert np.isnan(found.tau[one, other])


@pytest.mark.parametrize(
    "table", [np.empty((0, 2)), [[1.0, 2.0]], [[1.0, 3.0], [1.0, 4.0]], [[np.nan, 1], [2, np.nan]]]
)
def test_kendall_is_undefined_without_an_order(table: object) -> None:
    assert np.isnan(kendall_tau(np.array(table)).tau[0, 1])


def test_the_order_of_the_models_does_not_count() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(size=(8, 4))
    one, other = kendall_tau(table), kendall_tau(table[rng.permutation(8)])
    assert one.tau == pytest.approx(other.tau)
    assert np.diag(one.tau) == pytest.approx(np.ones(4))
    assert one.tau == pytest.approx(one.tau.T)


def test_spearman_by_hand() -> None:
    # 10 30 20 against 1 2 3: ranks 1 3 2 and 1 2 3: 1 - 6 (0 + 1 + 1) / (3 x 8) = 0.5
    one = np.array([[10.0, 30.0, 20.0, np.nan], [5.0, 5.0, np.nan, 1.0]])
    other = np.array([[1.0, 2.0, 3.0, 0.0], [1.0, 2.0, 9.0, np.nan]])
    # of the second row 5 5 against 1 2 are left: equal values have no order
    assert spearman(one, other) == pytest.approx([0.5, np.nan], nan_ok=True)


@given(seed=st.integers(0, 2**32 - 1))
def test_spearman_is_scipys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 5, (2, 3, 10)).astype(np.float64)
    one[rng.random(one.shape) < 0.2] = np.nan
    found = spearman(one, other)
    for row in range(3):
        known = ~np.isnan(one[row])
        if np.unique(one[row][known]).size > 1 and np.unique(other[row][known]).size > 1:
            expected = spearmanr(one[row][known], other[row][known]).statistic
            assert found[row] == pytest.approx(expected)
        else:
            assert np.isnan(found[row])


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (2, 1)])
def test_spearman_of_nothing_is_undefined(shape: tuple[int, int]) -> None:
    found = spearman(np.ones(shape), np.ones(shape))
    assert found.shape == shape[:1]
    assert np.isnan(found).all()
