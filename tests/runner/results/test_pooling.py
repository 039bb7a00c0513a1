from __future__ import annotations

import math

import numpy as np
import pytest

from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.runner.results.pooling import (
    average_replicates,
    average_units,
    estimate_interval,
    share_units,
    sum_counts,
)


def measure(values: list[float], ids: str = "abc") -> Measurement:
    return Measurement.from_units(
        UnitScores("user", np.array(list(ids), object), np.array(values))
    )


def make_resampled(value: float, replicates: list[float]) -> Measurement:
    return Measurement(value, 3, 0, replicates=np.array(replicates))


def test_the_interval_over_folds_is_that_of_the_users_means() -> None:
    # users' means 0.5, 0.5, 0.5 over two folds: only the folds vary
    low, high = estimate_interval([measure([1.0, 0.0, 0.5]), measure([0.0, 1.0, 0.5])], 0.5)
    assert (low, high) == (0.5, 0.5)
    # users' means 0, 0.5, 1: sd 0.5, se 0.288675, t(2) 4.302653
    low, high = estimate_interval([measure([0.0, 0.5, 1.0]), measure([0.0, 0.5, 1.0])], 0.5)
    assert high - 0.5 == pytest.approx(4.302653 * 0.288675, abs=1e-5)
    assert 0.5 - low == pytest.approx(high - 0.5)


def test_replicates_are_averaged_over_folds_one_by_one() -> None:
    # means of the replicates 2, 3, 4: se 1
    low, high = estimate_interval(
        [make_resampled(5.0, [1, 2, 3]), make_resampled(7.0, [3, 4, 5])], 6.0
    )
    assert (low, high) == pytest.approx((6 - 1.959964, 6 + 1.959964), abs=1e-6)


def test_folds_with_different_users_have_no_interval() -> None:
    folds = [measure([1.0, 0.0, 0.5]), measure([0.0, 1.0, 0.5], "abd")]
    assert not share_units(folds)
    assert all(math.isnan(bound) for bound in estimate_interval(folds, 0.5))


def test_values_without_units_or_replicates_have_no_interval() -> None:
    folds = [Measurement(0.5, 3, 0)]
    assert average_units(folds) is None
    assert average_replicates(folds) is None
    assert all(math.isnan(bound) for bound in estimate_interval(folds, 0.5))


def test_counts_of_one_row_are_added() -> None:
    counts = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
    assert sum_counts(counts, counts).tolist() == [4.0, 6.0]


def test_a_dataset_without_the_target_adds_its_totals() -> None:
    # Bars: 3 of 10 ranks in city a; city b has no bar among its 20 ranks: 3 of 30 in total
    bars = {"a": np.array([[3.0], [10.0]])}
    group = {"a": np.array([[3.0], [10.0]]), "b": np.array([[7.0], [20.0]])}
    assert sum_counts(bars, group).tolist() == [[3.0], [30.0]]
