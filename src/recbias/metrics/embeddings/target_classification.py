"""Classification of the entities of two target sets into two groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.embeddings.entity_sets import SetPair
from recbias.metrics.embeddings.set_estimates import SetValues, add_interval, measure_sets
from recbias.numerics.linear_svc import Hyperplane
from recbias.statistics.tests.rank_sums import compare_ranks


def build_scores(unit: str, ids: Ids, rows: AnyArray, values: FloatArray) -> UnitScores:
    """Return the values of some rows of ``ids``; the others are undefined."""
    unit_values = np.full(ids.size, np.nan)
    unit_values[rows] = values
    return UnitScores(unit, ids, unit_values)


def concatenate_scores(a: UnitScores, b: UnitScores) -> UnitScores:
    """Return the scores of the units of both."""
    return UnitScores(a.unit, np.concatenate([a.ids, b.ids]), np.concatenate([a.values, b.values]))


def measure_targets(
    separator: Hyperplane, groups: SetPair, targets: SetPair, evidence: Evidence
) -> Iterator[Measurement]:
    """Yield precision, F1 and recall of E as A, of P as B, and the values of both together."""
    e, p = targets
    e_as_a, p_as_a = (separator.predict_a(items.vectors).astype(np.float64) for items in targets)
    if np.unique(np.concatenate([e_as_a, p_as_a])).size == 1:
        reason = f"everything in {e.name} and {p.name} is classified as one group"
        warn(f"{evidence.metric}: {reason}; if vector lengths differ, lengths: unit may help")
    for group, positives, negatives, predicted in (
        (groups[0], e, p, (e_as_a, p_as_a)),
        (groups[1], p, e, (1.0 - p_as_a, 1.0 - e_as_a)),
    ):
        sizes = len(positives), len(negatives)
        hit, false = SetValues((positives, negatives), predicted).resample(evidence)
        for name, score in (("precision", _compute_precision), ("F1", _compute_f1)):
            estimate = measure_sets(
                float(score(predicted[0].mean(), predicted[1].mean(), *sizes)),
                targets,
                group=group.name,
                target=f"{name} of {positives.name}",
            )
            yield add_interval(estimate, score(hit, false, *sizes))
        target = f"recall of {positives.name}"
        yield positives.measure_mean(predicted[0], group=group.name, target=target)
    yield _measure_predictions(groups[0].name, targets, (e_as_a, p_as_a))
    yield _measure_correct(targets, (e_as_a, 1.0 - p_as_a))


def _measure_predictions(
    group: str, targets: SetPair, as_a: tuple[FloatArray, FloatArray]
) -> Measurement:
    """Return the share of the items of E and P that are classified as A, each counted once."""
    scores = [
        build_scores(target.unit, target.ids, np.flatnonzero(target.has_vector), values)
        for target, values in zip(targets, as_a, strict=True)
    ]
    both = concatenate_scores(*scores)
    _, first = np.unique(both.ids.astype(str), return_index=True)
    first = np.sort(first)
    once = UnitScores(both.unit, both.ids[first], both.values[first])
    target = f"predictions for {targets[0].name} and {targets[1].name}"
    return Measurement.from_units(once, group=group, target=target)


def _measure_correct(targets: SetPair, correct: tuple[FloatArray, FloatArray]) -> Measurement:
    """Return the share of correct predictions for E and P, and the test of E against P."""
    e, p = targets
    estimate = Measurement.from_values(np.concatenate(correct))
    return replace(
        estimate,
        target=f"accuracy of {e.name} and {p.name}",
        undefined=e.n_excluded + p.n_excluded,
        contrasts=(compare_ranks((e.name, p.name), *correct, between="targets"),),
    )


def _compute_precision(hit: AnyArray, false: AnyArray, n: int, m: int) -> FloatArray:
    """Return the precision from the shares predicted in a set of n and in another set of m."""
    predicted = np.asarray(n * hit + m * false)
    undefined = np.full(predicted.shape, np.nan)
    return np.asarray(np.divide(n * hit, predicted, out=undefined, where=predicted > 0))


def _compute_f1(hit: AnyArray, false: AnyArray, n: int, m: int) -> FloatArray:
    """Return F1 from the same shares."""
    return np.asarray(2.0 * n * hit / (n * hit + m * false + n))
