from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy as scipy_entropy

from recbias.statistics.inequality import entropy, gini, head

COUNTS = st.lists(st.integers(0, 1_000), min_size=1, max_size=30).filter(any)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([5], 0),
        ([2, 2, 2], 0),
        # n = 2: (-1 * 1 + 1 * 3) / (2 * 4)
        ([3, 1], 1 / 4),
        # n = 4: (-3 * 0 - 1 * 1 + 1 * 2 + 3 * 7) / (4 * 10)
        ([7, 0, 2, 1], 22 / 40),
        ([0, 0, 0, 0, 9], 4 / 5),
    ],
)
def test_gini_matches_hand_computation(counts: list[int], expected: float) -> None:
    assert float(gini(counts)) == pytest.approx(expected)


@given(COUNTS)
def test_gini_is_half_the_relative_mean_difference(counts: list[int]) -> None:
    x = np.array(counts, dtype=float)
    differences = np.abs(x[:, None] - x[None]).mean()
    assert float(gini(x)) == pytest.approx(differences / (2 * x.mean()), abs=1e-9)


@given(COUNTS, st.integers(1, 50))
def test_gini_and_entropy_ignore_scale_and_order(counts: list[int], times: int) -> None:
    x = np.array(counts, dtype=float)
    for measure in (gini, entropy):
        assert float(measure(x)) == pytest.approx(float(measure(times * x[::-1])), abs=1e-9)


@given(arrays(np.int64, (3, 5), elements=st.integers(0, 2**15 + 3)))
def test_gini_of_whole_numbers_is_that_of_the_same_numbers_as_fractions(
    counts: npt.NDArray[np.int64],
) -> None:
    np.testing.assert_array_equal(gini(counts), gini(counts.astype(np.float64)))


@given(COUNTS)
def test_entropy_agrees_with_scipy(counts: list[int]) -> None:
    assert float(entropy(counts)) == pytest.approx(float(scipy_entropy(counts)), abs=1e-12)


def test_entropy_matches_hand_computation_in_nats() -> None:
    # shares 1/2, 1/4, 1/4: ln 2 / 2 + 2 ln 4 / 4 = 1.5 ln 2
    assert float(entropy([2, 1, 1, 0])) == pytest.approx(1.5 * math.log(2))
    value = float(entropy([0, 7]))
    assert value == 0
    assert math.copysign(1, value) == 1


def test_rows_are_computed_together_and_zero_counts_are_nan() -> None:
    rows = np.array([[1, 3], [2, 2], [0, 0]])
    np.testing.assert_allclose(gini(rows), [1 / 4, 0, np.nan])
    np.testing.assert_allclose(entropy(rows)[1:], [math.log(2), np.nan])
    assert math.isnan(float(gini([])))


@pytest.mark.parametrize(
    ("share", "of", "expected"),
    [
        # by popularity: item 2 (5), items 0 and 3 (2 each), item 1 (1); 10 in all
        (0.0, "interactions", []),
        (0.5, "interactions", [2]),
        (0.51, "interactions", [0, 2]),
        (0.7, "interactions", [0, 2]),
        (0.9, "interactions", [0, 2, 3]),
        (1.0, "interactions", [0, 1, 2, 3]),
        (0.0, "items", []),
        (0.25, "items", [2]),
        (0.26, "items", [0, 2]),
        (1.0, "items", [0, 1, 2, 3]),
    ],
)
def test_head_matches_hand_computation(
    share: float, of: Literal["interactions", "items"], expected: list[int]
) -> None:
    assert np.flatnonzero(head(np.array([2, 1, 5, 2]), share, of=of)).tolist() == expected


def test_rounding_of_shares_adds_no_item_to_the_head() -> None:
    # 0.1 of ten and 0.7 of ten are 1 and 7 items, though 0.7 * 10 is 7.000000000000001 or 6.99...
    for tenths in range(11):
        assert int(head(np.ones(10), tenths / 10).sum()) == tenths


def test_head_of_no_items_is_empty() -> None:
    assert head(np.zeros(3), 0.8).tolist() == [False, False, False]
    assert head(np.zeros(0), 0.8).tolist() == []
