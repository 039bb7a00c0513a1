"""From measurements to ``significance.csv``: the same figure of all models, on the same units."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core.arrays import FloatArray
from recbias.core.errors import UnalignedScores
from recbias.core.measurements.columns import ALL, METRIC_KEY_COLUMNS, SIGNIFICANCE_COLUMNS
from recbias.core.measurements.scores import Contrast
from recbias.core.stage_context import warn
from recbias.runner.results.metric_rows import Measured
from recbias.runner.results.pooling import defined_mean, same_units, sample_means, unit_means
from recbias.statistics.compare import (
    DefaultLevel,
    ModelContrasts,
    SystemEstimates,
    compare,
    correct_contrasts,
)

Which: TypeAlias = tuple[Any, ...]
"""Metric, k, group and target."""


def significance(
    measured: Sequence[Measured], tests: Sequence[PluginSpec], seed: int
) -> pd.DataFrame:
    """Return every comparison of every test.

    Raises:
        UnalignedScores: Two models were measured on different units.
    """
    figures = [*_by_fold(measured), *_over_folds(measured)]
    inside = _inside(measured)
    tables = [
        compare(figures, test.plugin, name=test.name, seed=seed, model_contrasts=inside)
        for test in tests
    ]
    if not tests:
        tables = [correct_contrasts(inside, DefaultLevel())]
    found = [each for each in tables if len(each)]
    if not found:
        return pd.DataFrame(columns=list(SIGNIFICANCE_COLUMNS))
    return pd.concat(found, ignore_index=True).drop_duplicates(ignore_index=True)


def _by_fold(measured: Sequence[Measured]) -> Iterator[SystemEstimates]:
    places: dict[Which, list[Measured]] = defaultdict(list)
    for each in measured:
        places[each.dataset, each.seed, each.fold, *each.what.values()].append(each)
    for (dataset, seed, fold, *which), found in places.items():
        keys = {"dataset": dataset, "seed": seed, "fold": fold, **_named(which)}
        yield _figure(keys, {each.model: [each] for each in found})


def _inside(measured: Sequence[Measured]) -> list[ModelContrasts]:
    """Return the tests that metrics made inside models, those of one metric and model together."""
    places: dict[Which, list[Measured]] = defaultdict(list)
    for each in measured:
        what = each.what
        places[each.dataset, each.model, each.seed, each.fold, what["metric"], what["k"]].append(
            each
        )
    names = ("dataset", "model", "seed", "fold", "metric", "k")
    return [
        ModelContrasts(
            dict(zip(names, where, strict=True)), [row for each in found for row in _rows(each)]
        )
        for where, found in places.items()
    ]


def _rows(each: Measured) -> Iterator[tuple[str, str, Contrast]]:
    """Yield the tests of a figure; what is compared is no group or target of its own row.

    A group that both sides are parts of stays: ``category=age`` of ``category=age&group=T1``.
    """
    figure = each.measurement
    for contrast in figure.contrasts:
        both = all(side.startswith(f"{figure.group}&") for side in (contrast.a, contrast.b))
        group = figure.group if both or contrast.between != "groups" else ""
        target = "" if contrast.between == "targets" else figure.target
        yield group, target, contrast


def _over_folds(measured: Sequence[Measured]) -> Iterator[SystemEstimates]:
    """Yield a figure of each unit's mean over folds and seeds, where there are several."""
    several = {name: len({vars(each)[name] for each in measured}) > 1 for name in ("seed", "fold")}
    if not any(several.values()):
        return
    places: dict[Which, dict[str, list[Measured]]] = defaultdict(lambda: defaultdict(list))
    for each in measured:
        places[each.dataset, *each.what.values()][each.model].append(each)
    for (dataset, *which), models in places.items():
        first = next(iter(models.values()))[0]
        keys = {name: ALL if several[name] else vars(first)[name] for name in several}
        most = max(len(found) for found in models.values())
        whole = {name: found for name, found in models.items() if len(found) == most}
        if same_units([each.measurement for found in whole.values() for each in found]):
            yield _figure({"dataset": dataset, **keys, **_named(which)}, whole)
        else:
            warn(f"{which[0]} on {dataset}: not every fold asked the same, so means are untested")


def _named(which: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(METRIC_KEY_COLUMNS, which, strict=True))


def _figure(keys: dict[str, Any], models: dict[str, list[Measured]]) -> SystemEstimates:
    figures = [[each.measurement for each in found] for found in models.values()]
    every = [each for found in figures for each in found]
    if not same_units(every):
        found = f"{keys['metric']} was measured on different units for {', '.join(models)}"
        raise UnalignedScores(found, remedy="measure all models on one split")
    samples = _stacked([sample_means(found) for found in figures])
    return SystemEstimates(
        systems=tuple(models),
        values=_stacked([unit_means(found) for found in figures]),
        points=np.array([defined_mean([each.value for each in found]) for found in figures]),
        replicates=samples,
        keys=keys,
        n=max(each.n for each in every) if samples is not None else None,
        df=min((each.df for each in every if not math.isnan(each.df)), default=math.nan),
    )


def _stacked(rows: Sequence[FloatArray | None]) -> FloatArray | None:
    held = [each for each in rows if each is not None]
    return np.stack(held) if len(held) == len(rows) else None
