"""Warnings about values: lists of other tools without any hit, and units of one value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from recbias.config.experiment import PluginSpec
from recbias.core.protocols import ChecksFiles
from recbias.core.stage_context import warn
from recbias.runner.results.metric_rows import ModelMeasurement

_NEEDS = frozenset({"lists", "test"})
"""What the metrics of accuracy need."""


def warn_about_zero_accuracy(
    models: Sequence[PluginSpec], measurements: Sequence[ModelMeasurement]
) -> None:
    """Warn about each model with given lists whose metrics of accuracy are all exactly 0.

    Undefined values do not count: the ratio of two groups whose means are 0 is undefined.

    This happens to lists that were made for another split: they leave out the items that were
    training items there, and these may be the test items here.
    """
    for model in models:
        values = [
            measured.measurement.value
            for measured in measurements
            if measured.model == model.label
            and measured.metric.needs >= _NEEDS
            and not math.isnan(measured.measurement.value)
        ]
        if isinstance(model.plugin, ChecksFiles) and values and not any(values):
            warn(
                f"{model.label}: every accuracy metric is exactly 0. Were these lists made for "
                "this split? Give the one they were made for: "
                "split: {name: given, train: train.csv, test: test.csv}"
            )


def warn_about_equal_values(measurements: Sequence[ModelMeasurement]) -> None:
    """Warn about the values without an interval whose units all have one value, and count them.

    A metric with bounds has an interval nevertheless; see ``widen_ends``.
    """
    names = Counter(
        measured.metric.label
        for measured in measurements
        if measured.measurement.std == 0 and math.isnan(measured.measurement.ci_low)
    )
    if names:
        warn(
            f"{names.total():,} values have no interval ({', '.join(names)}): all units have one "
            "value, and the metric has no bounds"
        )
