from __future__ import annotations

import math

import pytest

from recbias.config.specs import Range
from recbias.runner.tuning import Trial, estimate_importances, sample_settings
from support.models.searches import PLACE, SPACE, make_search


def make_trials(values: list[float], samples: list[dict[str, float | str | int]]) -> list[Trial]:
    pairs = zip(samples, values, strict=True)
    return [Trial(n, settings, value) for n, (settings, value) in enumerate(pairs, 1)]


def test_the_only_setting_with_an_effect_has_nearly_all_importance() -> None:
    samples = [sample_settings(make_search(), (), seed) for seed in range(30)]
    trials = make_trials([settings["neighbors"] / 20 for settings in samples], samples)
    importances = estimate_importances(SPACE, trials, "higher", 1)
    assert list(importances) == ["neighbors", "shrink", "similarity"]
    assert sum(importances.values()) == pytest.approx(1.0)
    assert importances["neighbors"] > 0.9
    assert estimate_importances(SPACE, trials, "higher", 1) == importances
    assert estimate_importances(SPACE, trials, "lower", 1)["neighbors"] > 0.9


def test_log_scaled_settings_are_analysed_on_the_log_scale() -> None:
    """A step at 0.01, the middle of 0.0001 to 1 by logarithm, is 1 % of the way by value."""
    space = (
        Range("rate", 1e-4, 1.0, log=True, integer=False),
        Range("other", 0.0, 1.0, log=False, integer=False),
    )
    samples = [sample_settings(make_search(space), (), seed) for seed in range(40)]
    # the step is 1, the slope of the other at most 0.2: variances 1/4 and 0.04 / 12 = 0.0033
    trials = make_trials(
        [(settings["rate"] > 0.01) + 0.2 * settings["other"] for settings in samples], samples
    )
    assert estimate_importances(space, trials, "higher", 1)["rate"] > 0.9


def test_importances_of_a_metric_best_at_zero_use_the_distance_from_zero() -> None:
    samples = [sample_settings(make_search(PLACE), (), seed) for seed in range(10)]
    trials = make_trials([0.5 if n % 2 else -0.5 for n in range(10)], samples)
    assert math.isnan(estimate_importances(PLACE, trials, "zero", 1)["place"])
    assert estimate_importances(PLACE, trials, "higher", 1) == {"place": 1.0}


def test_importances_include_pruned_trials() -> None:
    """Below 0.5 a trial is pruned; among complete trials ``place`` explains nothing."""
    space = (*PLACE, Range("other", 0.0, 1.0, log=False, integer=False))
    samples = [sample_settings(make_search(space), (), seed) for seed in range(40)]
    trials = [
        Trial(n, settings, 0.8 + 0.05 * settings["other"], curve=(0.8 + 0.05 * settings["other"],))
        if settings["place"] > 0.5
        else Trial(n, settings, 0.1, curve=(0.2, 0.1), pruned=True)
        for n, settings in enumerate(samples, 1)
    ]
    # the step is 0.6 high, the slope 0.05: variances 0.09 and at most 0.0002
    assert estimate_importances(space, trials, "higher", 1)["place"] > 0.9
