from __future__ import annotations

import math

import numpy as np
import pytest

from recbias.core.measures import (
    METRICS,
    SIGNIFICANCE,
    Measurement,
    UnitScores,
    compute_wilson_interval,
    find_ratio_interval,
    linearize_ratio,
)


def test_the_columns_of_result_files_do_not_change() -> None:
    assert ",".join(METRICS.names) == (
        "dataset,model,seed,fold,metric,k,group,target,value,std,n,undefined,ci_low,ci_high"
    )
    assert ",".join(SIGNIFICANCE.names) == (
        "dataset,model,seed,fold,metric,k,group,target,test,between,a,b,n,mean_a,mean_b,difference,"
        "ci_low,ci_high,statistic,df,p,p_adjusted,correction,family,family_size,alpha,significant,"
        "effect_size"
    )


def measure(totals: np.ndarray, *, positive: bool = False) -> Measurement:
    ids = np.arange(len(totals)).astype(object)
    units = UnitScores("user", ids, linearize_ratio(totals), False, totals, positive=positive)
    return Measurement.from_units(units)


def test_the_interval_of_shares_is_wilsons() -> None:
    values = np.repeat([1.0, 0.0], [3, 37])
    totals = np.stack([values, np.ones(40)], axis=1)
    error = float(values.std(ddof=1)) / math.sqrt(40)
    found = find_ratio_interval(totals, 3 / 40, error, 1.96)
    assert found == pytest.approx(compute_wilson_interval(3 / 40, 39, 1.96))


@pytest.mark.parametrize(("least", "positive"), [(0.0, False), (-0.5, True)])
def test_the_ends_of_what_cannot_be_negative_are_as_far_as_factors(
    rng: np.random.Generator, least: float, positive: bool
) -> None:
    numerators = np.where(rng.random(200) < 0.1, 4.0, least * rng.random(200))
    row = measure(np.stack([numerators, np.ones(200)], axis=1), positive=positive)
    assert row.ci_low * row.ci_high == pytest.approx(row.value**2)
    assert 0 < row.ci_low < row.value < row.ci_high


def test_what_may_be_negative_has_students_interval(rng: np.random.Generator) -> None:
    totals = np.stack([rng.normal(0.1, 1.0, 200), rng.integers(1, 4, 200)], axis=1)
    row = measure(totals)
    assert row.ci_low + row.ci_high == pytest.approx(2 * row.value)


@pytest.mark.parametrize("weight", [1.0, 2.5])  # of ten clicks; a weight above 1 is no share
def test_few_clicks_have_the_coverage_of_many(weight: float) -> None:
    rng, rate, held, of_student = np.random.default_rng(3), 10 / 2400, [], []
    for _ in range(1000):
        clicks = rng.binomial(3, rate, 800) * np.where(rng.random(800) < 0.5, weight, 1.0)
        row = measure(np.stack([clicks, np.full(800, 3.0)], axis=1))
        half = 1.963 * row.std / math.sqrt(row.n)
        truth = rate * (1 + weight) / 2
        held.append(row.ci_low <= truth <= row.ci_high)
        of_student.append(row.value - half <= truth <= row.value + half)
    assert np.mean(of_student) < 0.93
    assert 0.935 < np.mean(held) < 0.97
