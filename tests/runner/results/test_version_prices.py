"""Prices of re-ranked models: intervals from the bootstrap samples of metrics of whole sets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from recbias.core.dataset import FloatArray, Vocabulary
from recbias.runner.stages import derive_bootstrap_seed
from recbias.runner.tradeoffs import (
    VersionDifference,
    average_shared_units,
    measure_price,
    resample_mean,
)
from recbias.statistics.bootstrap import resample_sums
from recbias.statistics.compare import SystemEstimates
from recbias.statistics.intervals import estimate_ratio

N_SAMPLES = 1000


def make_ids(n: int) -> Any:
    return np.array([f"user {number}" for number in range(n)], dtype=object)


def make_accuracy(values: FloatArray) -> VersionDifference:
    """Return the difference of two models with values by unit."""
    points = np.array([np.nanmean(row) if np.isfinite(row).any() else np.nan for row in values])
    estimates = SystemEstimates(
        ("a", "b"), values, points, None, {}, ids=make_ids(values.shape[1])
    )
    return VersionDifference(estimates, (0, 1))


def resample(values: FloatArray, ids: Any) -> FloatArray:
    """Return the mean of each row on the samples of ``estimate_from_totals``."""
    seed = derive_bootstrap_seed(Vocabulary(ids))
    sums = np.concatenate([*resample_sums(csr_array(values.T), N_SAMPLES, seed)])
    return np.asarray(sums.T / values.shape[1])


def make_bias(values: FloatArray, ids: Any) -> VersionDifference:
    """Return the difference of a metric of the whole set, which is a mean here."""
    points, n = values.mean(axis=1), values.shape[1]
    replicates = resample(values, ids)
    return VersionDifference(SystemEstimates(("a", "b"), None, points, replicates, {}, n), (0, 1))


def test_price_of_a_mean_of_the_whole_set_is_that_of_its_values(rng: np.random.Generator) -> None:
    taste = rng.normal(0, 0.3, 500)
    accuracy = np.stack([0.5 + taste, 0.3 + 0.5 * taste + rng.normal(0, 0.1, 500)])
    bias = np.stack([2.0 + taste, 1.0 + rng.normal(0, 0.5, 500)])
    ids = make_ids(500)
    row = measure_price(make_accuracy(accuracy), make_bias(bias, ids), shares_samples=True)
    lost, removed = accuracy[0] - accuracy[1], bias[0] - bias[1]
    assert row["price"] == pytest.approx(lost.mean() / removed.mean())
    ends = (row["price_low"], row["price_high"])
    assert ends == pytest.approx(estimate_ratio(lost, removed)[1:], rel=0.1)
    apart = (0.5 * (ends[1] - ends[0])) / row["price"]
    # without their covariance the interval would be wider: both differences rise with the taste
    unpaired = make_bias(bias[:, ::-1], ids)
    wide = measure_price(make_accuracy(accuracy), unpaired, shares_samples=True)
    assert apart < 0.9 * (0.5 * (wide["price_high"] - wide["price_low"])) / wide["price"]


def test_values_before_and_after_are_of_the_users_of_their_difference() -> None:
    nan = math.nan
    accuracy = make_accuracy(np.array([[0.5, nan, 0.7, 0.1], [0.4, nan, 0.1, 0.3]]))
    bias = make_accuracy(np.array([[1.0, 9.0, 2.0, nan], [0.5, 9.0, 0.5, 0.0]]))
    rows = [(part.estimates, row) for part in (accuracy, bias) for row in (0, 1)]
    before, after, bias_before, bias_after = average_shared_units(rows)
    assert [before, after, bias_before, bias_after] == pytest.approx([0.6, 0.25, 1.5, 0.5])
    columns = measure_price(accuracy, bias, shares_samples=True)
    assert columns["n"] == 2
    assert before - after == pytest.approx(columns["accuracy_lost"])
    assert bias_before - bias_after == pytest.approx(columns["bias_removed"])
    whole = SystemEstimates(("a", "b"), None, np.array([0.3, 0.2]), None, {}, 4)
    both = [*rows[:2], (whole, 0), (whole, 1)]
    assert average_shared_units(both) == [*accuracy.estimates.points, 0.3, 0.2]
    nobody = make_accuracy(np.array([[nan, 1.0], [0.5, nan]]))
    assert np.isnan(average_shared_units([(nobody.estimates, 0), (nobody.estimates, 1)])).all()


def test_accuracy_itself_as_bias_has_the_price_1_without_spread() -> None:
    values = np.stack([np.arange(40.0), np.arange(40.0) ** 0.5])
    row = measure_price(
        make_accuracy(values), make_bias(values, make_ids(40)), shares_samples=True
    )
    assert [row[name] for name in ("price", "price_low", "price_high")] == pytest.approx([1, 1, 1])


def test_samples_are_of_the_defined_values_where_the_metric_is_of_as_many() -> None:
    values = np.array([[3.0, np.nan, 5.0, 9.0], [1.0, np.nan, 1.0, 1.0]])
    lost = make_accuracy(values)
    defined = resample_mean(lost, 3, 200)
    of_all = resample_mean(lost, 4, 200)
    assert defined is not None
    assert of_all is not None
    assert set(np.round(defined * 3, 9)) <= {
        float(a + b + c) for a in (2, 4, 8) for b in (2, 4, 8) for c in (2, 4, 8)
    }
    assert np.nanmin(of_all) >= 2
    assert resample_mean(lost, 2, 200) is None  # another number of queries
    unknown = replace(lost, estimates=replace(lost.estimates, ids=None))
    assert resample_mean(unknown, 4, 200) is None


def test_gaps_between_groups_have_an_interval_but_no_price_interval() -> None:
    values = np.stack([np.arange(40.0), np.arange(40.0) ** 0.5])
    row = measure_price(
        make_accuracy(values), make_bias(values, make_ids(40)), shares_samples=False
    )
    assert row["bias_removed_low"] < row["bias_removed"] < row["bias_removed_high"]
    assert "price_low" not in row


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.integers(0, 5))
def test_prices_scale_with_the_units_of_both(a: float, b: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    accuracy = np.stack([rng.normal(1, 0.2, 50), rng.normal(0, 0.2, 50)])
    bias, ids = accuracy[::-1] * -1 + rng.normal(0, 0.1, 50), make_ids(50)
    plain = measure_price(make_accuracy(accuracy), make_bias(bias, ids), shares_samples=True)
    scaled = measure_price(
        make_accuracy(a * accuracy), make_bias(b * bias, ids), shares_samples=True
    )
    for name in ("price", "price_low", "price_high"):
        assert scaled[name] == pytest.approx(plain[name] * a / b)


def test_where_no_bias_is_removed_the_price_is_undefined() -> None:
    values = np.stack([np.ones(5), np.arange(5.0) + 1])
    row = measure_price(make_accuracy(values), make_bias(values, make_ids(5)), shares_samples=True)
    assert math.isnan(row["price"])
    assert "price_low" not in row
    assert row["bias_removed_high"] > row["bias_removed"]
