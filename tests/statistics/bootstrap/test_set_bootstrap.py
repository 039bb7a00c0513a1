from __future__ import annotations

import numpy as np
import pytest

from recbias.statistics.bootstrap import resample_means


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
