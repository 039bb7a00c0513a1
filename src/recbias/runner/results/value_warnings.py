"""Warnings about values: lists of other tools without any hit, and values without a spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from recbias.config.experiment import PluginSpec
from recbias.core.measurements.ranges import ROUNDING
from recbias.core.measurements.scores import Measurement
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
    """Warn about the values without an interval whose units or samples are equal, and count them.

    A metric of units with bounds has an interval nevertheless; see ``widen_ends``.
    """
    without = [row for row in measurements if math.isnan(row.measurement.ci_low)]
    of_units = [row for row in without if row.measurement.std == 0]
    of_samples = [row for row in without if _has_equal_samples(row.measurement)]
    for rows, reason in (
        (of_units, "all units have one value, and the metric has no bounds"),
        (of_samples, "all bootstrap samples of the queries have one value"),
    ):
        names = Counter(row.metric.label for row in rows)
        if names:
            counts = "1 value has" if names.total() == 1 else f"{names.total():,} values have"
            warn(f"{counts} no interval ({', '.join(names)}): {reason}")


def _has_equal_samples(measurement: Measurement) -> bool:
    samples = measurement.replicates
    if measurement.units is not None or samples is None or np.isnan(samples).any():
        return False
    return bool(np.ptp(samples) <= ROUNDING * np.abs(samples).max(initial=0.0))
