from __future__ import annotations

import numpy as np
import pytest

from recbias.numerics.perplexity import mark_within_deviations


def test_deviation_is_the_population_standard_deviation() -> None:
    # nineteen 0 and one 20: mean 1, variance (19 + 361)/20 = 19, sd 4.3589; 20 lies 4.3589 sd off
    values = np.array([0.0] * 19 + [20.0])
    assert mark_within_deviations(values, 4.35).tolist() == [True] * 19 + [False]
    assert mark_within_deviations(values, 4.36).all()  # by n - 1 it would lie 4.2485 sd off


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
def test_equal_values_are_within(value: float) -> None:
    assert mark_within_deviations(np.full(7, value), 3).all()


def test_missing_values_are_outside_and_excluded_from_the_mean() -> None:
    assert mark_within_deviations(np.array([1.0, np.nan, 3.0]), 1).tolist() == [True, False, True]
    assert not mark_within_deviations(np.full(3, np.nan), 3).any()
    assert mark_within_deviations(np.zeros(0), 3).size == 0
