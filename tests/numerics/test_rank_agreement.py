from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from recbias.statistics.agreement import kendall_tau, spearman


def test_kendall_matches_hand_computation() -> None:
    # orders of four models: metrics a 1 2 3 4, b 1 3 2 4, c 4 3 2 1, d 1 1 2 2
    table = [[1, 1, 4, 1], [2, 3, 3, 1], [3, 2, 2, 2], [4, 4, 1, 2]]
    agreement = kendall_tau(table)
    # a and b: 5 pairs alike, 1 reversed: 4/6; a and c: -1; b and c: -4/6
    # a and d: of the 4 pairs that d orders all alike: 4 / √(6 x 4)
    # b and d: 3 alike (1-3, 1-4, 2-4), 1 reversed (2-3): 2 / √24
    assert agreement.tau[0] == pytest.approx([1, 4 / 6, -1, 4 / 24**0.5])
    assert agreement.tau[1] == pytest.approx([4 / 6, 1, -4 / 6, 2 / 24**0.5])
    assert agreement.n.tolist() == [[4] * 4] * 4


@given(seed=st.integers(0, 2**32 - 1))
def test_kendall_agrees_with_scipy_on_shared_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 6, (9, 3)).astype(np.float64)  # with ties
    table[rng.random((9, 3)) < 0.15] = np.nan
    agreement = kendall_tau(table)
    for row in range(3):
        for other in range(3):
            both = ~np.isnan(table[:, [row, other]]).any(axis=1)
            assert agreement.n[row, other] == both.sum()
            if both.sum() > 1:
                expected = kendalltau(table[both, row], table[both, other]).statistic
                assert agreement.tau[row, other] == pytest.approx(expected, nan_ok=True)
            else:
                assert np.isnan(agreement.tau[row, other])


@pytest.mark.parametrize(
    "table", [np.empty((0, 2)), [[1.0, 2.0]], [[1.0, 3.0], [1.0, 4.0]], [[np.nan, 1], [2, np.nan]]]
)
def test_kendall_is_undefined_for_constant_metrics(table: object) -> None:
    assert np.isnan(kendall_tau(np.array(table)).tau[0, 1])


def test_kendall_ignores_the_order_of_models() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(size=(8, 4))
    original, shuffled = kendall_tau(table), kendall_tau(table[rng.permutation(8)])
    assert original.tau == pytest.approx(shuffled.tau)
    assert np.diag(original.tau) == pytest.approx(np.ones(4))
    assert original.tau == pytest.approx(original.tau.T)


def test_spearman_matches_hand_computation() -> None:
    # 10 30 20 against 1 2 3: ranks 1 3 2 and 1 2 3: 1 - 6 (0 + 1 + 1) / (3 x 8) = 0.5
    a = np.array([[10.0, 30.0, 20.0, np.nan], [5.0, 5.0, np.nan, 1.0]])
    b = np.array([[1.0, 2.0, 3.0, 0.0], [1.0, 2.0, 9.0, np.nan]])
    # of the second row 5 5 against 1 2 are left: equal values have no order
    assert spearman(a, b) == pytest.approx([0.5, np.nan], nan_ok=True)


@given(seed=st.integers(0, 2**32 - 1))
def test_spearman_agrees_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, (2, 3, 10)).astype(np.float64)
    a[rng.random(a.shape) < 0.2] = np.nan
    correlations = spearman(a, b)
    for row in range(3):
        defined = ~np.isnan(a[row])
        if np.unique(a[row][defined]).size > 1 and np.unique(b[row][defined]).size > 1:
            expected = spearmanr(a[row][defined], b[row][defined]).statistic
            assert correlations[row] == pytest.approx(expected)
        else:
            assert np.isnan(correlations[row])


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (2, 1)])
def test_spearman_is_undefined_for_empty_rows(shape: tuple[int, int]) -> None:
    correlations = spearman(np.ones(shape), np.ones(shape))
    assert correlations.shape == shape[:1]
    assert np.isnan(correlations).all()
