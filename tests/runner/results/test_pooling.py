from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.measures import Measurement, UnitScores
from recbias.runner.results import (
    can_pool,
    estimate_interval,
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


def test_a_dataset_without_the_target_adds_its_totals() -> None:
    # Bars: 3 of 10 ranks in city a; city b has no bar among its 20 ranks: 3 of 30 in total
    bars = {"a": np.array([[3.0], [10.0]])}
    group = {"a": np.array([[3.0], [10.0]]), "b": np.array([[7.0], [20.0]])}
    assert sum_counts(bars, group).tolist() == [[3.0], [30.0]]


def test_disjoint_samples_have_the_interval_of_their_units_together() -> None:
    folds = [measure([0.0, 0.5, 1.0]), measure([0.5, 1.0, 1.5], "def")]
    assert can_pool(folds)
    # means 0.5 and 1; six values around 0.75: squares 0.5625, 0.0625, 0.0625, 0.0625, 0.0625,
    # 0.5625 sum to 1.375, variance 0.275, se sqrt(0.275 / 6) = 0.214087, t(5) 2.570582
    low, high = estimate_interval(folds, 0.75)
    assert (low, high) == pytest.approx((0.75 - 0.550329, 0.75 + 0.550329), abs=1e-5)


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=12),
    st.integers(1, 5),
)
def test_samples_of_one_size_have_the_interval_of_one_measurement(
    values: list[float], n_folds: int
) -> None:
    ids = [f"u{user}" for user in range(len(values) * n_folds)]
    together = np.tile(values, n_folds)
    folds = [
        Measurement.from_units(UnitScores("user", np.array(part, object), np.array(values)))
        for part in np.split(np.array(ids, object), n_folds)
    ]
    summary = Measurement.from_values(together)
    expected = pytest.approx((summary.ci_low, summary.ci_high), abs=1e-9)
    assert estimate_interval(folds, summary.value) == expected
