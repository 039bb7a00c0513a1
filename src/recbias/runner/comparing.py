"""From measurements to ``significance.csv``: the same figure of all models, on the same units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.config.experiment import Chosen
from recbias.core.arrays import FloatArray, Ids
from recbias.core.columns import SIGNIFICANCE, WHAT
from recbias.core.errors import UnalignedScores
from recbias.runner.figures import Measured
from recbias.statistics.compare import Figure, compare

Which: TypeAlias = tuple[Any, ...]
"""Metric, k, group and target."""


def significance(measured: Sequence[Measured], tests: Sequence[Chosen], seed: int) -> pd.DataFrame:
    """Return every comparison of every test.

    Raises:
        UnalignedScores: Two models were measured on different units.
    """
    figures = [*_by_fold(measured), *_over_folds(measured)]
    tables = [compare(figures, test.plugin, name=test.name, seed=seed) for test in tests]
    found = [each for each in tables if len(each)]
    if not found:
        return pd.DataFrame(columns=list(SIGNIFICANCE))
    return pd.concat(found, ignore_index=True).drop_duplicates(ignore_index=True)


def _by_fold(measured: Sequence[Measured]) -> Iterator[Figure]:
    places: dict[Which, list[Measured]] = defaultdict(list)
    for each in measured:
        places[each.dataset, each.seed, each.fold, *each.what.values()].append(each)
    for (dataset, seed, fold, *which), found in places.items():
        keys = {"dataset": dataset, "seed": seed, "fold": fold, **_named(which)}
        yield _figure(keys, {each.model: [each] for each in found})


def _over_folds(measured: Sequence[Measured]) -> Iterator[Figure]:
    """Yield a figure of each unit's mean over folds and seeds, where there are several."""
    several = {name: len({vars(each)[name] for each in measured}) > 1 for name in ("seed", "fold")}
    if not any(several.values()):
        return
    places: dict[Which, dict[str, list[Measured]]] = defaultdict(lambda: defaultdict(list))
    for each in measured:
        places[each.dataset, *each.what.values()][each.model].append(each)
    for (dataset, *which), models in places.items():
        first = next(iter(models.values()))[0]
        keys = {name: "all" if several[name] else vars(first)[name] for name in several}
        most = max(len(found) for found in models.values())
        whole = {name: found for name, found in models.items() if len(found) == most}
        if _same_units([each for found in whole.values() for each in found]):
            yield _figure({"dataset": dataset, **keys, **_named(which)}, whole)


def _named(which: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(WHAT, which, strict=True))


def _figure(keys: dict[str, Any], models: dict[str, list[Measured]]) -> Figure:
    every = [each for found in models.values() for each in found]
    if not _same_units(every):
        found = f"{keys['metric']} was measured on different units for {', '.join(models)}"
        raise UnalignedScores(found, remedy="measure all models on one split")
    has_units = all(each.measurement.units is not None for each in every)
    has_samples = all(each.measurement.replicates is not None for each in every)
    points = [_mean([each.measurement.value for each in found]) for found in models.values()]
    return Figure(
        systems=tuple(models),
        values=_stacked([_values(found) for found in models.values()]) if has_units else None,
        points=np.array(points, dtype=np.float64),
        replicates=_stacked([_samples(found) for found in models.values()])
        if has_samples
        else None,
        keys=keys,
        n=max(each.measurement.n for each in every) if has_samples else None,
    )


def _stacked(rows: list[FloatArray]) -> FloatArray:
    return np.stack(rows) if rows else np.empty((0, 0))


def _values(found: Sequence[Measured]) -> FloatArray:
    held = [each.measurement.units for each in found]
    return _mean([each.values for each in held if each is not None])


def _samples(found: Sequence[Measured]) -> FloatArray:
    held = [each.measurement.replicates for each in found]
    return _mean([each for each in held if each is not None])


def _mean(values: Sequence[FloatArray | float]) -> FloatArray:
    """Return the mean over the first axis, leaving NaN out; NaN where all are."""
    stacked = np.stack([np.asarray(each, dtype=np.float64) for each in values])
    defined = ~np.isnan(stacked)
    total = np.where(defined, stacked, 0.0).sum(axis=0)
    counts = defined.sum(axis=0)
    mean: FloatArray = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return mean


def _same_units(measured: Sequence[Measured]) -> bool:
    first: Ids | None = None
    for each in measured:
        units = each.measurement.units
        if units is None:
            continue
        if first is None:
            first = units.ids
        elif units.ids is not first and not np.array_equal(units.ids, first):
            return False
    return True
