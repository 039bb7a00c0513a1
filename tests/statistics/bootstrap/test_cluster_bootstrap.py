from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t

from recbias.statistics.bootstrap import (
    arcsine_t_interval,
    bootstrap_t_interval,
    compute_group_means,
    logit_t_interval,
    sample_cluster_weights,
)
from recbias.statistics.intervals import bootstrap_standard_error


def test_one_less_than_the_clusters_of_each_stratum_is_drawn(rng: np.random.Generator) -> None:
    weights = sample_cluster_weights(np.array([0, 1, 0, 1, 1]), 50, rng)
    assert weights.shape == (50, 5)
    assert (weights[:, [0, 2]].sum(axis=1) == 1).all()
    assert (weights[:, [1, 3, 4]].sum(axis=1) == 2).all()


def test_a_single_cluster_says_nothing_of_its_spread(rng: np.random.Generator) -> None:
    weights = sample_cluster_weights(np.array([0, 1, 1]), 3, rng)
    assert np.isnan(weights[:, 0]).all()
    assert not np.isnan(weights[:, 1:]).any()


@pytest.mark.parametrize("n", [3, 10])
def test_the_spread_of_a_mean_is_its_standard_error(n: int, rng: np.random.Generator) -> None:
    values = rng.normal(size=(n, 1))
    weights = sample_cluster_weights(np.zeros(n, dtype=int), 20_000, rng)
    means = compute_group_means(values, np.zeros(n, dtype=int), 1, weights)[:, 0, 0]
    # the standard error of a spread of 20,000 samples is about 0.5% of it
    assert float(bootstrap_standard_error(means)) == pytest.approx(
        values.std(ddof=1) / np.sqrt(n), rel=0.03
    )


def test_weighted_means_by_hand() -> None:
    values, groups = np.array([[1.0, 2.0], [3.0, 2.0], [9.0, 0.0]]), np.array([0, 0, 1])
    # weights 1, 3, 0: (1 + 9)/4 and 2; the second group has no weight
    means = compute_group_means(values, groups, 2, np.array([[1.0, 3.0, 0.0]]))
    assert means[0, 0].tolist() == [2.5, 2.0]
    assert np.isnan(means[0, 1]).all()


def test_the_interval_is_students() -> None:
    low, high = bootstrap_t_interval(5.0, np.array([4.0, 5.0, 6.0]), 4)
    assert float(high) == pytest.approx(5 + t.ppf(0.975, 4))
    assert float(low) == pytest.approx(5 - t.ppf(0.975, 4))
    assert np.isnan(bootstrap_t_interval(5.0, np.array([4.0, 6.0]), 0)).all()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.97])
def test_the_interval_of_a_share_is_that_of_its_logit(share: float) -> None:
    replicates = np.clip(share + np.array([-0.01, 0.0, 0.01, np.nan]), 1e-3, 1.0)
    low, high = logit_t_interval(share, replicates, 9)
    half = 2.2621572 * logit(replicates[:3]).std(ddof=1)  # t(0.975; 9)
    assert (low, high) == pytest.approx((expit(logit(share) - half), expit(logit(share) + half)))
    assert 0 < low < share < high < 1


def test_a_share_with_a_replicate_of_0_has_the_plain_interval_within_0_and_1() -> None:
    replicates = np.array([0.0, 0.02, 0.04])
    low, high = logit_t_interval(0.02, replicates, 9)
    assert (low, high) == pytest.approx((0.0, 0.02 + 2.2621572 * 0.02))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.4, 1.0])
def test_the_interval_of_a_share_is_that_of_its_arcsine(share: float) -> None:
    replicates = np.array([0.0, 0.1, 0.4, np.nan])
    low, high = arcsine_t_interval(share, replicates, 9)
    half = 2.2621572 * np.arcsin(np.sqrt(replicates[:3])).std(ddof=1)  # t(0.975; 9)
    centre = np.arcsin(np.sqrt(share))
    ends = np.clip([centre - half, centre + half], 0.0, np.pi / 2)
    assert (low, high) == pytest.approx(tuple(np.sin(ends) ** 2))
    assert 0 <= low <= share <= high <= 1
