from __future__ import annotations

import numpy as np
import pytest

from recbias.statistics.bootstrap import resample_means, sample_jackknife


def test_of_a_mean_they_are_its_bootstrap_samples(rng: np.random.Generator) -> None:
    values = rng.standard_normal(7)
    without = (values.sum() - values) / 6
    samples = sample_jackknife(values.mean(), without, 50, np.random.default_rng(3))
    assert samples == pytest.approx(resample_means(values, 50, np.random.default_rng(3)))


def test_their_spread_is_that_of_the_jackknife() -> None:
    # without 1.0, 2.0, 4.5: mean 2.5, squares 2.25 + 0.25 + 4 = 6.5; se = sqrt(2/3 x 6.5) = 2.0817
    samples = sample_jackknife(9.0, np.array([1.0, 2.0, 4.5]), 40_000, np.random.default_rng(0))
    assert samples.std() == pytest.approx(2.0817, rel=0.01)
    assert samples.mean() == pytest.approx(9.0, abs=0.03)


@pytest.mark.parametrize("without", [[], [1.0], [np.nan, 1.0, 2.0]])
def test_without_what_it_needs_they_are_nan(
    without: list[float], rng: np.random.Generator
) -> None:
    samples = sample_jackknife(1.0, np.array(without), 3, rng)
    assert samples.shape == (3,)
    assert np.isnan(samples).all()
