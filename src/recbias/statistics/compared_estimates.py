"""What is compared: estimates of several systems, and tests within a model; which are the same."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import FloatArray, Ids
from recbias.core.measurements.scores import Contrast
from recbias.core.queries.groups import JOIN

ESTIMATE_KEYS = ("dataset", "seed", "fold", "metric", "k", "group", "target")
"""The columns that identify an estimate."""


@dataclass(frozen=True, eq=False)
class SystemEstimates:
    """The estimates of one quantity for all systems, measured on the same units.

    Args:
        values: The value of each unit, ``float64[s, u]``; None for a metric of the whole set.
        points: The estimates, ``float64[s]``.
        replicates: The estimate on each bootstrap sample of the queries, ``float64[s, b]``, with
            the same samples for all systems; for metrics of the whole set.
        keys: Dataset, seed, fold, metric, k, group and target.
        n: The number of queries, for a metric of the whole set.
        df: Degrees of freedom of the bootstrap standard error; NaN for the normal distribution.
        ids: The units, ``[u]``; None if they are not known.
    """

    systems: tuple[str, ...]
    values: FloatArray | None
    points: FloatArray
    replicates: FloatArray | None
    keys: Mapping[str, object]
    n: int | None = None
    df: float = math.nan
    ids: Ids | None = None

    @property
    def comparable(self) -> bool:
        """Whether there are two systems, and values or replicates to compare them by."""
        return len(self.systems) > 1 and not (self.values is None and self.replicates is None)


@dataclass(frozen=True, eq=False)
class ModelContrasts:
    """The tests that one metric made within one model, each with its group and target: one family.

    ``keys`` are dataset, model, seed, fold, metric and k.
    """

    keys: Mapping[str, object]
    contrasts: Sequence[tuple[str, str, Contrast]]


def find_same_estimates(estimates: Sequence[SystemEstimates]) -> list[int]:
    """Return, for each estimate, the number of the first with the same units and values.

    Two estimates are the same if they differ in the group only, and the groups hold the same
    units: a category that is the only one, beside all units. Then each test of one is that of the
    other. Estimates of which the units are not known are the same as no other.
    """
    firsts, candidates = [], defaultdict[tuple[Hashable, ...], list[int]](list)
    for number, estimate in enumerate(estimates):
        keys = (str(estimate.keys[key]) for key in ESTIMATE_KEYS if key != "group")
        similar = candidates[(*keys, estimate.systems, estimate.points.tobytes())]
        same = (first for first in similar if _have_same_units(estimates[first], estimate))
        first = next(same, number)
        if first == number:
            similar.append(number)
        firsts.append(first)
    return firsts


def _have_same_units(a: SystemEstimates, b: SystemEstimates) -> bool:
    if a.values is None or b.values is None or a.ids is None or b.ids is None:
        return False
    has_same_ids = np.array_equal(a.ids, b.ids)
    return has_same_ids and np.array_equal(a.values, b.values, equal_nan=True)


def find_same_contrasts(contrasts: Sequence[tuple[str, str, Contrast]]) -> list[int]:
    """Return, for each test of a metric within a model, the number of the first that is the same.

    The test of a group is that of the whole if its sides are those of the whole within the group
    (``category=age&group=T1`` and ``group=T1``), with as many units and the same means: then the
    group holds all units.
    """
    wholes: dict[tuple[Hashable, ...], int] = {}
    for number, (group, target, contrast) in enumerate(contrasts):
        if not group:
            wholes.setdefault(_identify_contrast(group, target, contrast), number)
    return [
        wholes.get(_identify_contrast(*contrast), number)
        for number, contrast in enumerate(contrasts)
    ]


def _identify_contrast(group: str, target: str, contrast: Contrast) -> tuple[Hashable, ...]:
    """Return what the test of the whole and that of a group with all its units share."""
    sides = (side.removeprefix(f"{group}{JOIN}") for side in (contrast.a, contrast.b))
    means = (contrast.mean_a, contrast.mean_b, contrast.difference)
    return (target, contrast.test, contrast.between, *sides, contrast.n, *means)
