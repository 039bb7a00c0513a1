"""Tests between the label values of one model: every two of them, or each against the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Contrast
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.prompts.label_units import Design
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.permutation.label_permutation import (
    LabelExchange,
    Statistic,
    permute_labels,
)
from recbias.statistics.permutation.slot_permutation import SlotComparison, permute_slots

MOST_PAIRED = 10
"""With more label values than this, each is compared with the rest and not with each other."""

REST = "rest"
"""What stands for all other label values."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Two sides that are compared.

    Args:
        a: A label value, the first side.
        others: The label values of the second: one, or the rest.
    """

    a: int
    others: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The tests of several comparisons at several targets.

    Args:
        sides: The comparisons.
        statistic: ``float64[s, m]``.
        p: Two-sided, ``float64[s, m]``; NaN where a test cannot be made.
        n: Units of both sides of each, or templates where they are the units, or words where
            those of several slots carry the label, ``int[s]``.
    """

    sides: tuple[Sides, ...]
    statistic: FloatArray
    p: FloatArray
    n: AnyArray


@dataclass(frozen=True, eq=False)
class Gaps:
    """The figures of both sides of each comparison.

    Args:
        a: Of the first side, ``float64[s, m]``.
        b: Of the second.
        samples: Their difference on each bootstrap sample, ``float64[S, b, s, m]``.
    """

    a: FloatArray
    b: FloatArray
    samples: FloatArray

    @classmethod
    def of_sides(cls, values: FloatArray, replicates: FloatArray, sides: Sequence[Sides]) -> Gaps:
        """Return both figures of each comparison; that of the rest is the mean of its own.

        Args:
            values: The figure of each label value, ``float64[g, m]``.
            replicates: On each bootstrap sample, ``float64[S, b, g, m]``.
            sides: What is compared.
        """
        first = [each.a for each in sides]
        mean = np.zeros((len(sides), len(values)))
        for place, each in enumerate(sides):
            mean[place, each.others] = 1.0 / len(each.others)
        samples = replicates[..., first, :] - _means(mean, replicates)
        return cls(values[first], _means(mean, values), samples)

    def take(self, places: Sequence[int]) -> Gaps:
        """Return some of the comparisons."""
        rows = list(places)
        return Gaps(self.a[rows], self.b[rows], self.samples[..., rows, :])


Contrasts: TypeAlias = Mapping[tuple[int, int], tuple[Contrast, ...]]
"""The tests that belong to the figure of a label value and a target."""


@dataclass(frozen=True, eq=False)
class _Table:
    """The units of both sides, by stratum and those of the first side first."""

    place: int
    units: AnyArray
    sizes: AnyArray
    firsts: AnyArray
    observed: FloatArray


def all_sides(n_groups: int, classes: AnyArray | None = None) -> list[Sides]:
    """Return what is compared, within each class of label values.

    Up to ten values of a class: every two; more: each against the rest.

    >>> [(each.a, each.others) for each in all_sides(3)]
    [(0, (1,)), (0, (2,)), (1, (2,))]
    """
    of = np.zeros(n_groups, dtype=np.intp) if classes is None else classes
    found: list[Sides] = []
    for each in np.unique(of):
        members = np.flatnonzero(of == each).tolist()
        if len(members) <= MOST_PAIRED:
            found += [Sides(a, (b,)) for a, b in combinations(members, 2)]
        else:
            found += against_rest(members)
    return found


def against_rest(members: Sequence[int]) -> list[Sides]:
    """Return each label value against all others together.

    >>> [(each.a, each.others) for each in against_rest([0, 1, 2])]
    [(0, (1, 2)), (1, (0, 2)), (2, (0, 1))]
    """
    return [Sides(a, tuple(each for each in members if each != a)) for a in members]


def outcomes_of(
    evidence: Evidence,
    design: Design,
    values: FloatArray,
    sides: Sequence[Sides],
    statistic: Statistic,
    *,
    draws: int,
) -> Outcomes:
    """Return the permutation test of each comparison.

    Labels are exchanged among the units of both sides that stand in the same templates. Strata
    that hold one side only say nothing and are left out. Where the words of several slots carry
    the label, the classes of each slot's words are exchanged among them. A comparison in which
    nothing can be exchanged (a label value of one word, where words are the units) has no p-value,
    and is counted in a warning.

    Args:
        evidence: Whose generator is used: the same draws for every comparison and model.
        design: The units.
        values: ``float64[u, c]``, none NaN.
        sides: What is compared.
        statistic: Of the means of both sides, ``(..., c)``, to ``(..., m)``.
        draws: How many relabellings are drawn.
    """
    if design.words is not None:
        return _of_slots(evidence, design, values, sides, statistic, draws=draws)
    tables = [_table(design, values, each, place, statistic) for place, each in enumerate(sides)]
    shared: dict[bytes, list[_Table]] = defaultdict(list)
    for table in tables:
        shared[table.sizes.tobytes() + table.firsts.tobytes()].append(table)
    observed = np.stack([each.observed for each in tables])
    p = np.full(observed.shape, np.nan)
    for alike in shared.values():
        exchange = LabelExchange(alike[0].sizes, alike[0].firsts)
        for batch in _batches(alike):
            places = np.array([[each.place for each in row] for row in batch])
            units = np.stack([row[0].units for row in batch])
            p[places] = permute_labels(
                values[units],
                observed[places],
                exchange,
                statistic,
                n_permutations=draws,
                rng=evidence.rng(),
            )
        if exchange.n_labellings == 1:
            _say_no_p(evidence, design, len(alike))
    n = [each.sizes.size if design.paired else each.units.size for each in tables]
    return Outcomes(tuple(sides), observed, p, np.array(n))


def contrasts(
    design: Design, tested: Outcomes, gaps: Gaps, effects: FloatArray | None = None
) -> Contrasts:
    """Return the rows of the tests, by the label value and the place of the target.

    There is none where one of the figures is undefined.

    Args:
        design: The units.
        tested: The tests.
        gaps: The figures that they compare.
        effects: The effect size of each, ``float64[s, m]``.
    """
    difference = gaps.a - gaps.b
    samples, df = design.joined(difference, gaps.samples)
    low, high = bootstrap_t_interval(difference, np.moveaxis(samples, 0, -1), df)
    sizes = np.full(difference.shape, np.nan) if effects is None else effects
    found: dict[tuple[int, int], tuple[Contrast, ...]] = defaultdict(tuple)
    for place, side in enumerate(tested.sides):
        for target in range(difference.shape[1]):
            at = (place, target)
            if np.isnan(difference[at]):
                continue
            row = Contrast(
                between="groups",
                a=design.groups.names[side.a],
                b=REST if len(side.others) > 1 else design.groups.names[side.others[0]],
                test="permutation",
                n=int(tested.n[place]),
                mean_a=float(gaps.a[at]),
                mean_b=float(gaps.b[at]),
                difference=float(difference[at]),
                statistic=float(tested.statistic[at]),
                p=float(tested.p[at]),
                ci_low=float(low[at]),
                ci_high=float(high[at]),
                effect_size=float(sizes[at]),
            )
            found[side.a, target] += (row,)
    return found


def _of_slots(
    evidence: Evidence,
    design: Design,
    values: FloatArray,
    sides: Sequence[Sides],
    statistic: Statistic,
    *,
    draws: int,
) -> Outcomes:
    """Return the tests of a label that the words of several slots carry together."""
    labels = np.arange(len(design.groups.names))
    first = np.array([labels == each.a for each in sides])
    second = np.array([np.isin(labels, each.others) for each in sides])
    compared = SlotComparison(first, second, statistic)
    observed, p = permute_slots(
        values, design.crossing, compared, n_permutations=draws, rng=evidence.rng()
    )
    if np.isnan(p[~np.isnan(observed)]).any():
        _say_no_p(evidence, design, len(sides))
    inside = (first | second)[:, design.group].T
    return Outcomes(tuple(sides), observed, p, design.count(inside)[0])


def _say_no_p(evidence: Evidence, design: Design, n: int) -> None:
    what = f"{n:,} comparisons of {design.groups.by} have no p-value"
    warn(f"{evidence.metric}: {what}, since no label can be exchanged")


def _batches(alike: list[_Table]) -> list[list[list[_Table]]]:
    """Return tables of one layout as rows of those of the same units, equally long rows together.

    Each against the rest has the same units throughout, so that one set of draws serves all.
    """
    by_units: dict[bytes, list[_Table]] = defaultdict(list)
    for table in alike:
        by_units[np.sort(table.units).tobytes()].append(table)
    by_length: dict[int, list[list[_Table]]] = defaultdict(list)
    for row in by_units.values():
        by_length[len(row)].append(row)
    return list(by_length.values())


def _table(
    design: Design, values: FloatArray, each: Sides, place: int, statistic: Statistic
) -> _Table:
    is_a = design.group == each.a
    is_b = np.isin(design.group, each.others)
    n_strata = int(design.stratum.max(initial=-1)) + 1
    n_a = np.bincount(design.stratum[is_a], minlength=n_strata)
    n_b = np.bincount(design.stratum[is_b], minlength=n_strata)
    mixed = (n_a > 0) & (n_b > 0)
    units = np.flatnonzero((is_a | is_b) & mixed[design.stratum])
    units = units[np.lexsort([~is_a[units], design.stratum[units]])]
    with np.errstate(invalid="ignore", divide="ignore"):
        first = values[units[is_a[units]]]
        second = values[units[is_b[units]]]
        means = [each.sum(axis=0) / np.float64(len(each)) for each in (first, second)]
        observed = statistic(*means)
    return _Table(place, units, (n_a + n_b)[mixed], n_a[mixed], observed)


def _means(parts: FloatArray, figures: FloatArray) -> FloatArray:
    """Return the means that ``parts`` describes, ``float64[..., s, m]``; NaN where one is."""
    found = parts @ np.nan_to_num(figures)
    undefined = (parts > 0).astype(np.float64) @ np.isnan(figures) > 0
    return np.asarray(np.where(undefined, np.nan, found))
