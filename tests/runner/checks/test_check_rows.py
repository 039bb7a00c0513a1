from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from recbias.config.checks import Check, CheckSpec
from recbias.config.specs import PluginSpec
from recbias.core.measures import Measurement, UnitScores
from recbias.runner.gates import CheckRow, evaluate_checks
from recbias.runner.results import ModelMeasurement

METRIC = PluginSpec("metrics", "nDCG", "nDCG", None, {"k": 10}, ("metrics", 0))
OLD, NEW = [0.5, 0.25, 1.0, 0.0], [0.5, 0.5, 1.0, 0.25]


def make_row(model: str, values: list[float], **keys: Any) -> ModelMeasurement:
    ids = np.array([f"u{user}" for user in range(len(values))], dtype=object)
    measurement = Measurement.from_units(UnitScores("user", ids, np.array(values)))
    fit_keys = {"dataset": "d", "seed": 42, "fold": 1, **keys}
    return ModelMeasurement(model=model, metric=METRIC, measurement=measurement, **fit_keys)


def make_set_row(model: str, value: float, replicates: list[float] | None) -> ModelMeasurement:
    """Return a measurement of a whole set of lists, with its bootstrap samples."""
    samples = None if replicates is None else np.array(replicates)
    measurement = Measurement(value, n=4, undefined=0, replicates=samples)
    return ModelMeasurement("d", model, 42, 1, METRIC, measurement)


def check(
    rows: list[ModelMeasurement], models: tuple[str, ...] = ("new",), **settings: Any
) -> list[CheckRow]:
    spec = CheckSpec(metric="nDCG", **settings)
    return evaluate_checks([Check(spec, METRIC, models, spec.baseline)], rows)


def test_value_is_checked_with_the_interval_of_its_row() -> None:
    # mean 0.5625, sd 0.3146, t(3) = 3.1824, half width 3.1824 * 0.3146 / 2 = 0.5006
    (row,) = check([make_row("new", NEW)], at_least=0.05)
    assert (row["value"], row["verdict"], row["basis"]) == (0.5625, "pass", "interval")
    assert row["ci_low"] == pytest.approx(0.5625 - 0.5006, abs=1e-4)
    (row,) = check([make_row("new", NEW)], at_least=0.0625)
    assert (row["verdict"], row["failed"]) == ("undecided", False)
    (row,) = check([make_row("new", NEW)], at_least=0.0625, strict=True)
    assert (row["verdict"], row["failed"]) == ("undecided", True)


def test_difference_from_a_baseline_has_its_paired_interval() -> None:
    # differences 0, 0.25, 0, 0.25: mean 0.125, sd 0.1443, half width 3.1824 * 0.0722 = 0.2297
    expected = stats.ttest_rel(NEW, OLD).confidence_interval()
    rows = [make_row("old", OLD), make_row("new", NEW)]
    (row,) = check(rows, not_below="old", margin=0.11)
    assert (row["value"], row["verdict"], row["baseline"]) == (0.125, "pass", "old")
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([expected.low, expected.high])
    assert check(rows, not_below="old", margin=0.1)[0]["verdict"] == "undecided"
    assert check(rows, not_above="old", margin=0.36)[0]["verdict"] == "pass"
    (worse,) = check(rows, ("old",), not_below="new", margin=0.1)
    assert (worse["value"], worse["verdict"]) == (-0.125, "undecided")


def test_whole_set_metrics_are_compared_by_their_shared_bootstrap_samples() -> None:
    old = make_set_row("old", 0.5, [0.4, 0.5, 0.6])
    new = make_set_row("new", 0.6, [0.6, 0.6, 0.7])
    # differences of the samples 0.2, 0.1, 0.1: sd 0.0577, interval 0.1 ± 1.96 * 0.0577
    (row,) = check([old, new], not_below="old", margin=0.02)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([-0.01316, 0.21316], abs=1e-5)
    assert row["verdict"] == "pass"
    assert check([old, new], not_below="old")[0]["verdict"] == "undecided"


@pytest.mark.parametrize("strict", [False, True])
def test_a_model_without_a_value_is_undecided(strict: bool) -> None:
    undefined = make_row("old", [math.nan, math.nan])
    for rows, models in ([[make_row("x", NEW)], ("new",)], [[undefined], ("old",)]):
        (row,) = check(rows, models, at_least=0.1, strict=strict)  # type: ignore[arg-type]
        assert math.isnan(row["value"])
        assert (row["verdict"], row["basis"], row["failed"]) == ("undecided", "undefined", strict)


def test_a_missing_baseline_is_undecided() -> None:
    (row,) = check([make_row("new", NEW)], not_below="old")
    assert (row["verdict"], row["basis"]) == ("undecided", "undefined")
