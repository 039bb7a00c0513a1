from __future__ import annotations

import math

import numpy as np
import pytest

from recbias.statistics.paired import cohens_d, cohens_dz, rank_biserial


@pytest.mark.parametrize(
    ("difference", "std", "expected"), [(1.0, 2.0, 0.5), (-1.0, 2.0, -0.5), (0.0, 1.0, 0.0)]
)
def test_dz_is_the_mean_in_units_of_the_spread(
    difference: float, std: float, expected: float
) -> None:
    assert float(cohens_dz(difference, std)) == expected


@pytest.mark.parametrize("difference", [0.0, 0.5])
def test_dz_of_equal_differences_is_undefined(difference: float) -> None:
    assert math.isnan(cohens_dz(difference, 0.0))


def test_d_by_hand() -> None:
    # means 4 and 7; squares 8 and 2; pooled variance 10 / (3 + 2 - 2) = 3.333; d = -3 / 1.825742
    d = cohens_d(np.array([2.0, 4.0, 6.0, np.nan]), np.array([6.0, 8.0]))
    assert d == pytest.approx(-1.643168, abs=1e-6)


@pytest.mark.parametrize(("a", "b"), [([], [1.0, 2.0]), ([1.0], [2.0]), ([1.0, 1.0], [1.0, 1.0])])
def test_d_is_undefined_without_spread(a: list[float], b: list[float]) -> None:
    assert math.isnan(cohens_d(np.array(a), np.array(b)))


@pytest.mark.parametrize(
    ("up", "down", "expected"), [(15, 6, 9 / 21), (6, 15, -9 / 21), (10, 0, 1.0), (3, 3, 0.0)]
)
def test_rank_biserial(up: float, down: float, expected: float) -> None:
    assert float(rank_biserial(up, down)) == pytest.approx(expected)


def test_rank_biserial_without_differences_is_undefined() -> None:
    assert np.isnan(rank_biserial(np.array([0.0]), np.array([0.0]))).all()
