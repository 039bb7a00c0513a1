"""The tests within a model: of groups, or of sets of items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from recbias.core.measurements.scores import Contrast
from recbias.core.protocols import ActsAfterTests
from recbias.runner.results.metric_rows import ModelMeasurement
from recbias.statistics.compared_estimates import ModelContrasts


def collect_contrasts(measurements: Sequence[ModelMeasurement]) -> list[ModelContrasts]:
    """Return the tests within each model and metric, each once.

    The tests of a gap between groups are those of the metric by group, and those of a metric with
    another setting ``after_tests`` are those of the first one.
    """
    families: dict[tuple[Any, ...], list[tuple[str, str, Contrast]]] = defaultdict(list)
    by_groups = {key for row in measurements for key in _identify_pairs(row, "groups").values()}
    first_labels: dict[tuple[Any, ...], str] = {}
    for row in measurements:
        if first_labels.setdefault(_identify_tests(row), row.metric.label) != row.metric.label:
            continue
        repeated = {
            contrast
            for contrast, key in _identify_pairs(row, "difference").items()
            if key in by_groups
        }
        metric, k, *_ = row.metric_keys.values()
        families[row.dataset, row.model, row.seed, row.fold, metric, k] += [
            item for item in _label_contrasts(row) if item[-1] not in repeated
        ]
    names = ("dataset", "model", "seed", "fold", "metric", "k")
    return [
        ModelContrasts(dict(zip(names, keys, strict=True)), contrasts)
        for keys, contrasts in families.items()
    ]


def _identify_pairs(row: ModelMeasurement, gap: str) -> dict[Contrast, tuple[Any, ...]]:
    """Return the tests of a metric by group with keys that its groups and its gap share."""
    grouping = row.metric.grouping
    if grouping is None or grouping.gap != gap:
        return {}
    fit_keys = (row.dataset, row.model, row.seed, row.fold)
    metric_keys = (row.metric.name, repr(row.metric.parameters), row.measurement.target)
    return {
        test: (*fit_keys, *metric_keys, grouping.by, test.test, frozenset((test.a, test.b)))
        for test in row.measurement.contrasts
    }


def _identify_tests(row: ModelMeasurement) -> tuple[Any, ...]:
    """Return a key that metrics share if they differ in settings ``after_tests`` only."""
    metric, keys = row.metric, (row.dataset, row.model, row.seed, row.fold)
    if not isinstance(metric.plugin, ActsAfterTests):
        return (*keys, metric.label)
    settings = {
        name: value
        for name, value in metric.parameters.items()
        if name not in metric.plugin.after_tests
    }
    return (*keys, metric.name, repr(settings), row.measurement.group, row.measurement.target)


def _label_contrasts(row: ModelMeasurement) -> Iterator[tuple[str, str, Contrast]]:
    """Yield each test of a measurement with its group and target.

    The compared groups or targets are the sides of the test, so its own group or target is blank.
    A group that contains both sides stays: ``category=age`` for ``category=age&group=T1``.
    """
    group, target = row.measurement.group, row.measurement.target
    for contrast in row.measurement.contrasts:
        sides = (contrast.a, contrast.b)
        contains_both = all(side.startswith(f"{group}&") for side in sides)
        yield (
            group if contains_both or contrast.between != "groups" else "",
            "" if contrast.between == "targets" else target,
            contrast,
        )
