from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import FloatArray
from recbias.core.measures import (
    Measurement,
    UnitScores,
    limit_ends,
    limit_interval,
    read_bounds,
)

INF = math.inf


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("0 to 1; undefined for an empty list", (0, 1)),
        ("-1 to 1: 1 for identical lists", (-1, 1)),
        ("0 to 100", (0, 100)),
        ("0 to 1, at most 2 / n; undefined without a query", (0, 1)),
        ("0 to 1 - 1/|C|; undefined if no list holds a candidate", (0, 1)),
        ("at most 1, and rarely below 0", (-INF, 1)),
        ("-1 or more; undefined for an empty list", (-1, INF)),
        ("0 to log2 |C| bits", (0, INF)),
        # a multiple of an unknown number is no bound, and neither is a number further on
        ("0 to 2 |C|", (0, INF)),
        ("0 to 2 / n", (0, INF)),
        ("Any number, at most 2", (-INF, INF)),
        ("That of the ratings: 0 to 2 for the scale", (-INF, INF)),
        ("", (-INF, INF)),
    ],
)
def test_bounds_are_the_numbers_at_the_start(text: str, bounds: tuple[float, float]) -> None:
    assert read_bounds(text) == bounds


@given(st.floats(-3, 3), st.floats(0, 3))
def test_an_interval_within_bounds_holds_its_value(value: float, half: float) -> None:
    value = min(max(value, 0.0), 1.0)
    low, high = limit_ends((value - half, value + half), (0.0, 1.0))
    assert 0 <= low <= value <= high <= 1
    assert low in {0.0, value - half}
    assert high in {1.0, value + half}


def make_scores(values: FloatArray) -> UnitScores:
    ids = np.arange(values.size).astype(str).astype(object)
    return UnitScores("query", ids, values)


def test_equal_values_of_few_units_have_an_interval_with_a_width() -> None:
    # q = 1 - 0.025^(1/4) = 0.6024: 0.25 - q 0.25 and 0.25 + q 0.75
    measured = Measurement.from_units(make_scores(np.array([0.25] * 4 + [np.nan])))
    assert (measured.ci_low, measured.ci_high) == (0.25, 0.25)
    limited = limit_interval(measured, (0.0, 1.0))
    assert limited.ci_low == pytest.approx(0.0994, abs=1e-4)
    assert limited.ci_high == pytest.approx(0.7018, abs=1e-4)
    assert (limited.value, limited.std, limited.n) == (0.25, 0.0, 4)


@pytest.mark.parametrize(("n", "rare"), [(3, 0.3), (5, 0.1), (20, 0.04), (60, 0.02)])
def test_coverage_in_a_population_in_which_few_users_have_another_value(
    n: int, rare: float
) -> None:
    """A share of the users has a value between 0 and 1, the others have 0: the mean is half it."""
    rng, n_worlds = np.random.default_rng(1), 4_000
    samples = np.where(rng.random((n_worlds, n)) < rare, rng.random((n_worlds, n)), 0.0)
    measured = [Measurement.from_units(make_scores(values)) for values in samples]
    limited = [limit_interval(each, (0.0, 1.0)) for each in measured]
    students, widened = (
        np.mean([each.ci_low <= rare / 2 <= each.ci_high for each in rows])
        for rows in (measured, limited)
    )
    assert students <= 1 - (1 - rare) ** n + 0.03  # it never holds the mean where all are equal
    assert widened >= 0.9


@pytest.mark.parametrize("half", [0.0, 1e-17])
def test_a_value_that_no_sample_changes_has_no_interval(half: float) -> None:
    row = Measurement(0.3, n=9, undefined=0, ci_low=0.3 - half, ci_high=0.3 + half)
    limited = limit_interval(replace(row, replicates=np.full(99, 0.3)), (0.0, 1.0))
    assert math.isnan(limited.ci_low)
    assert math.isnan(limited.ci_high)
