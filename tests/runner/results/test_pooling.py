from __future__ import annotations

import math

import numpy as np
import pytest

from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.runner.results.pooling import pooled_interval, same_units, sample_means, unit_means


def of(values: list[float], ids: str = "abc") -> Measurement:
    return Measurement.from_units(
        UnitScores("user", np.array(list(ids), object), np.array(values))
    )


def sampled(value: float, samples: list[float]) -> Measurement:
    return Measurement(value, 3, 0, replicates=np.array(samples))


def test_the_interval_over_folds_is_that_of_the_users_own_means() -> None:
    # users' means 0.5, 0.5, 0.5 over two folds: nothing is uncertain but the folds
    low, high = pooled_interval([of([1.0, 0.0, 0.5]), of([0.0, 1.0, 0.5])], 0.5)
    assert (low, high) == (0.5, 0.5)
    # users' means 0, 0.5, 1: sd 0.5, se 0.288675, t(2) 4.302653
    low, high = pooled_interval([of([0.0, 0.5, 1.0]), of([0.0, 0.5, 1.0])], 0.5)
    assert high - 0.5 == pytest.approx(4.302653 * 0.288675, abs=1e-5)
    assert 0.5 - low == pytest.approx(high - 0.5)


def test_samples_of_the_same_users_are_averaged_sample_by_sample() -> None:
    # means 2, 3, 4 of the samples: se 1
    low, high = pooled_interval([sampled(5.0, [1, 2, 3]), sampled(7.0, [3, 4, 5])], 6.0)
    assert (low, high) == pytest.approx((6 - 1.959964, 6 + 1.959964), abs=1e-6)


def test_other_users_in_another_fold_give_no_interval() -> None:
    found = [of([1.0, 0.0, 0.5]), of([0.0, 1.0, 0.5], "abd")]
    assert not same_units(found)
    assert all(math.isnan(each) for each in pooled_interval(found, 0.5))


def test_a_figure_without_units_or_samples_has_no_interval() -> None:
    bare = [Measurement(0.5, 3, 0)]
    assert unit_means(bare) is None
    assert sample_means(bare) is None
    assert all(math.isnan(each) for each in pooled_interval(bare, 0.5))
