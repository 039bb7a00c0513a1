from __future__ import annotations

import numpy as np
import pytest

from recbias.statistics import bootstrap
from recbias.statistics.bootstrap import resample_mean_rows, resample_means


def test_samples_lie_around_the_mean_with_its_standard_error(rng: np.random.Generator) -> None:
    values = rng.normal(3.0, 2.0, 400)
    means = resample_means(values, 4000, rng)
    assert means.mean() == pytest.approx(values.mean(), abs=0.01)
    assert means.std() == pytest.approx(values.std(ddof=1) / 20, rel=0.05)


def test_the_spread_is_right_for_small_sets() -> None:
    # of 3 values: 1, 2, 6, mean 3, squares 4 + 1 + 9, variance 7: that of their mean is 7/3
    means = resample_means(np.array([1.0, 2.0, 6.0]), 40_000, np.random.default_rng(0))
    assert means.var() == pytest.approx(7 / 3, rel=0.03)
    assert np.isnan(resample_means(np.array([1.0]), 3, np.random.default_rng(0))).all()


def test_two_sets_of_one_size_are_resampled_alike() -> None:
    values = np.arange(5.0)
    first = resample_means(values, 30, np.random.default_rng(1))
    second = resample_means(10 * values, 30, np.random.default_rng(1))
    np.testing.assert_allclose(second, 10 * first)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(6.0)
    whole = resample_means(values, 50, np.random.default_rng(1))
    monkeypatch.setattr(bootstrap, "RESAMPLED_VALUES", 7)
    assert resample_means(values, 50, np.random.default_rng(1)).tolist() == whole.tolist()


def test_vectors_are_resampled_whole() -> None:
    rows = np.array([[1.0, -1.0], [5.0, -5.0], [2.0, -2.0]])
    means = resample_mean_rows(rows, 40, np.random.default_rng(1))
    assert means[:, 0].tolist() == (-means[:, 1]).tolist()
    assert (
        means[:, 0].tolist() == resample_means(rows[:, 0], 40, np.random.default_rng(1)).tolist()
    )


@pytest.mark.parametrize("n", [0, 1])
def test_as_many_as_asked(n: int, rng: np.random.Generator) -> None:
    assert resample_means(np.array([1.0, 2.0]), n, rng).shape == (n,)
