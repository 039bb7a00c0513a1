from __future__ import annotations

import math
from typing import Any

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from recbias.statistics.agreement import Level, cohen_kappa, krippendorff_alpha, resample_alpha

NAN = math.nan
LEVELS: tuple[Level, ...] = ("nominal", "interval")


def test_kappa_by_hand() -> None:
    # a: 1 1 0 0, b: 1 0 0 0: agreed 3/4; chance 1/2 * 1/4 + 1/2 * 3/4 = 1/2; (3/4 - 1/2) / (1/2)
    # the error, n se² (1 - chance)²: both say 1: 1/4 (1 - 3/4 * 1/2)² = 0.097656
    #   both say 0: 1/2 (1 - 5/4 * 1/2)² = 0.070313; 1 and 0: 1/4 * 1/4 (1/4 + 1/2)² = 0.035156
    #   less (1/2 - 1/2 * 1/2)² = 0.0625: 0.140625; se = sqrt(0.140625 / 4) / 0.5 = 0.375
    assert cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0]) == pytest.approx((0.5, 0.375))


def test_kappa_of_full_and_of_no_agreement() -> None:
    assert cohen_kappa([0, 1, 2], [0, 1, 2]) == (1.0, 0.0)
    # chance 1/2, agreed 0
    assert cohen_kappa([0, 1], [1, 0])[0] == -1.0
    # as often as chance: 1/2 of 1/2
    assert cohen_kappa([0, 0, 1, 1], [0, 1, 0, 1])[0] == 0.0


@pytest.mark.parametrize(
    ("a", "b"), [([], []), ([1, 1], [1, 1]), ([NAN, 1], [1, NAN]), ([NAN, 0], [0, 0])]
)
def test_kappa_without_two_categories_is_undefined(a: list[float], b: list[float]) -> None:
    assert all(math.isnan(value) for value in cohen_kappa(a, b))


def test_kappa_leaves_out_units_that_one_rater_left_out() -> None:
    assert cohen_kappa([1, 1, 0, 0, NAN, 1], [1, 0, 0, 0, 1, NAN]) == cohen_kappa(
        [1, 1, 0, 0], [1, 0, 0, 0]
    )


def test_kappa_is_that_of_scikit_learn(rng: np.random.Generator) -> None:
    for size in (2, 3, 5):
        a, b = rng.integers(0, size, (2, 60))
        assert cohen_kappa(a, b)[0] == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


def test_the_standard_error_of_kappa_is_its_spread_over_samples(rng: np.random.Generator) -> None:
    a = (rng.random(2_000) < 0.7).astype(float)
    b = np.where(rng.random(2_000) < 0.8, a, 1 - a)
    samples = rng.integers(0, 2_000, (400, 2_000))
    spread = np.std([cohen_kappa(a[sample], b[sample])[0] for sample in samples])
    # the standard error of a standard deviation of 400 samples is 3.5%
    assert cohen_kappa(a, b)[1] == pytest.approx(spread, rel=0.12)


def test_alpha_by_hand() -> None:
    # units (1, 1), (1, 0), (0, 0), and (0) that is left out: n = 6
    # D_o = (0 + 2 + 0) / 6 = 1/3; three 1 and three 0: D_e = 2 * 3 * 3 / 30 = 3/5; 1 - 5/9
    assert krippendorff_alpha([[1.0, 1, 0, 0], [1, 0, 0, NAN]]) == pytest.approx(4 / 9)
    # the same with squares of gaps of 2: both are four times as large
    ratings = np.array([[2, 2, 0, 0], [2, 0, 0, NAN]])
    assert krippendorff_alpha(ratings, "interval") == pytest.approx(4 / 9)
    # units (0, 1), (2, 2): n = 4; D_o = 2/4; squares of gaps 0-1, 0-2, 0-2, 1-2, 1-2, 2-2:
    # 2 (1 + 4 + 4 + 1 + 1) / 12 = 11/6; 1 - 3/11
    assert krippendorff_alpha([[0, 2], [1, 2]], "interval") == pytest.approx(8 / 11)


def sample_missing(rng: np.random.Generator, size: int) -> Any:
    ratings = rng.integers(0, size, (3, 40)).astype(float)
    ratings[rng.random(ratings.shape) < 0.2] = NAN
    return ratings


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [2, 3, 7])
def test_alpha_is_that_of_the_krippendorff_package(
    level: Level, size: int, rng: np.random.Generator
) -> None:
    for _ in range(5):
        ratings = sample_missing(rng, size)
        theirs = krippendorff.alpha(ratings, level_of_measurement=level)
        assert krippendorff_alpha(ratings, level) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "ratings",
    [np.empty((2, 0)), [[0.1, 0.1, 0.1], [0.1, 0.1, 0.1]], [[1, NAN], [NAN, 0]], [[1, 0]]],
)
def test_alpha_without_disagreement_is_undefined(ratings: Any, level: Level) -> None:
    assert math.isnan(krippendorff_alpha(ratings, level))
    alphas = resample_alpha(ratings, level, 5, np.random.default_rng(0))
    assert np.isnan(alphas).all()
    assert alphas.shape == (5,)


@pytest.mark.parametrize("level", LEVELS)
def test_replicates_are_alpha_of_resampled_units(level: Level, rng: np.random.Generator) -> None:
    # a sample gives each unit a weight; the alpha of a sample is that of the units so often
    ratings = sample_missing(rng, 3)
    paired = (~np.isnan(ratings)).sum(axis=0) > 1
    ratings = ratings[:, paired]
    n = ratings.shape[1]
    weights = np.random.default_rng(5).multinomial(n, np.full(n, 1 / n), size=3)
    expected = [
        krippendorff_alpha(np.repeat(ratings, counts, axis=1), level) for counts in weights
    ]
    alphas = resample_alpha(ratings, level, 3, np.random.default_rng(5))
    assert alphas == pytest.approx(np.array(expected), abs=1e-12)
