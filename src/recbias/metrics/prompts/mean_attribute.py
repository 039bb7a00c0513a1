"""The mean level of an attribute in what is recommended under each label: how expensive it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Contrast, Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.prompts.filled_words import NEUTRAL, TEMPLATE
from recbias.metrics.prompts.label_contrasts import (
    Gaps,
    Outcomes,
    Sides,
    all_sides,
    contrasts,
    outcomes_of,
)
from recbias.metrics.prompts.label_estimates import bootstrap_means
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.slot_counts import item_levels, items_of_units, say_without
from recbias.metrics.prompts.template_design import (
    UnitChoice,
    design_of,
    labelled,
    neutral_templates,
    nothing_asked,
)
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.effect_sizes import cohens_d, cohens_dz
from recbias.statistics.permutation.label_permutation import Permutations

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None


@dataclass(frozen=True, kw_only=True)
class MeanAttribute:
    """The mean level of an attribute (the price, 1 to 4) of the items recommended under a label.

        M(l) = (1 / |U_l|) Σ_{u in U_l} v(u),    v(u) = mean level over the places of u's lists

    U_l are the units of label value l: the names (or pairs of words) that carry it, or the
    templates where a value is carried by one word (a location). Text that repeats a sign, ``$`` to
    ``$$$$``, is the number of signs; other columns must be numbers. Repeats count. Items without a
    level, or outside the catalogue, are left out and counted in a warning, and so are queries
    without the label. v is undefined (NaN) for a unit whose lists hold no item with a level.

    The interval is Student's t over the units: over words (or sentences) like these, all else as
    it is. Tests exchange labels over the units that stand in the same templates; where templates
    are the units, between the label values of one template, which for two values is the sign-flip
    test. Where the words of several slots carry the label together (``orientation``), the units
    are pairs that share words: the words of each slot are resampled by themselves, within their
    class (gender), and these classes are exchanged over each slot's words; ``n`` counts the words
    of all slots. If not every combination of such words stands in the same templates, there is no
    interval and no test, and a warning says so. Up to ten label values are compared two by two,
    more of them each with the rest. The effect size is the difference in units of the pooled
    standard deviation of the units, or of that of their differences where they are templates.

    Where the templates were asked without any word too (``neutral: true`` of the templates), the
    group ``neutral`` is their mean: M over the templates that the label's words stand in, the zero
    line of the labels. It is no label and in no test.

    Args:
        label: A label of the queries, or a crossing of several.
        attribute: A numeric column of the items, or one of repeated signs.
        units: What the statistics count: the name where each label value has several, otherwise
            the template.
        words: The column of the words that carry the label; by default it is found.
        permutations: How many relabellings are drawn; also the most that are counted out.
        k: How much of each list is measured; by default all of it.

    Raises:
        UnknownColumn: No query carries the label, or the items have no such column of levels.
        NothingLeft: The label has one value only, or every item lacks the attribute.

    Range:
        Any number, of the attribute; undefined where no list holds a level.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, figure 7.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = "name"

    label: str
    attribute: str
    units: UnitChoice = "auto"
    words: str | None = None
    permutations: Permutations = 10_000
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the labels and attributes alone."""
        item_levels(evidence, self.attribute)
        labelled(evidence, self.label)
        design_of(evidence, self.label, self.units, self.words)

    def of_counts(self, counts: FloatArray) -> float:
        """Return the mean over the units of several datasets, from their sum and number."""
        return float(counts[0] / counts[1]) if counts[1] else math.nan

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean level under each label value, with the value of each unit."""
        evidence.need("lists")
        levels = item_levels(evidence, self.attribute)
        if nothing := nothing_asked(evidence):
            return nothing
        design = design_of(evidence, self.label, self.units, self.words)
        means = _unit_means(evidence, (design.queries, design.group.size), levels, self)
        known = ~np.isnan(means)
        samples = bootstrap_means(
            evidence, design, np.column_stack([np.where(known, means, 0.0), known])
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            replicates = samples[..., :1] / samples[..., 1:]
        figures = _figures(design, means, replicates)
        tests = _tests(evidence, design, means, figures, replicates, self.permutations)
        found = [replace(each, contrasts=own) for each, own in zip(figures, tests, strict=True)]
        return [*found, *self._neutral(evidence, design, levels)]

    def _neutral(
        self, evidence: Evidence, design: Design, levels: FloatArray
    ) -> Iterator[Measurement]:
        """Yield the mean level of the design's templates without any word, where they have it."""
        ids, queries = neutral_templates(evidence, design)
        if ids.size:
            means = _unit_means(evidence, (queries, ids.size), levels, self)
            yield _of_units(UnitScores(TEMPLATE, ids, means), NEUTRAL)


def _unit_means(
    evidence: Evidence, units: tuple[AnyArray, int], levels: FloatArray, metric: MeanAttribute
) -> FloatArray:
    """Return the mean level over the places of each unit, ``float64[u]``.

    Args:
        evidence: The lists.
        units: The unit of each query, and how many there are.
        levels: The level of each item.
        metric: How much of each list counts.
    """
    held = items_of_units(evidence, *units, k=metric.k)
    known = ~np.isnan(levels)
    say_without(evidence, held, known, metric.attribute)
    places = held @ known.astype(np.float64)
    totals = held @ np.nan_to_num(levels)
    with np.errstate(invalid="ignore"):
        return np.asarray(totals / places)


def _figures(design: Design, means: FloatArray, replicates: FloatArray) -> list[Measurement]:
    """Return the figure of each label value; units that share words have samples instead."""
    known, labels = ~np.isnan(means), range(len(design.groups.names))
    found = [_figure(design, means, group) for group in labels]
    if design.independent or design.paired:
        return found
    point = np.array([[each.value] for each in found])
    joined, df = design.joined(point, replicates)
    low, high = bootstrap_t_interval(point, np.moveaxis(joined, 0, -1), df)
    inside = np.array([design.group == group for group in labels]).T
    n, _ = design.count(inside & known[:, None])
    every, _ = design.count(inside)
    return [
        replace(
            each,
            n=int(n[group]),
            undefined=int(every[group] - n[group]),
            units=None,
            replicates=joined[:, group, 0],
            df=float(df[group, 0]),
            ci_low=float(low[group, 0]),
            ci_high=float(high[group, 0]),
        )
        for group, each in enumerate(found)
    ]


def _figure(design: Design, means: FloatArray, group: int) -> Measurement:
    inside = design.group == group
    units = UnitScores(design.unit, design.ids[inside], means[inside])
    return _of_units(units, design.groups.names[group])


def _of_units(units: UnitScores, group: str) -> Measurement:
    found = Measurement.from_units(units, group=group)
    counts = np.array([np.nansum(units.values), found.n], dtype=np.float64)
    return replace(found, counts=counts)


def _tests(
    evidence: Evidence,
    design: Design,
    means: FloatArray,
    figures: Sequence[Measurement],
    replicates: FloatArray,
    draws: int,
) -> list[tuple[Contrast, ...]]:
    """Return the tests of each label value, over the units that have a mean."""
    known, sides = ~np.isnan(means), all_sides(len(figures))
    inside = design.take(known)
    if design.words is None:
        values = means[known][:, None]
        tested = outcomes_of(evidence, inside, values, sides, np.subtract, draws=draws)
    else:
        values = np.column_stack([np.where(known, means, 0.0), known])
        tested = outcomes_of(evidence, design, values, sides, _mean_gap, draws=draws)
    points = np.array([[each.value] for each in figures])
    gaps = Gaps.of_sides(points, replicates, sides)
    found = contrasts(design, tested, gaps, _effects(inside, means[known], tested))
    return [found.get((group, 0), ()) for group in range(len(figures))]


def _mean_gap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the difference of means from means of (level or 0, whether there is a level)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(a[..., :1] / a[..., 1:] - b[..., :1] / b[..., 1:])


def _effects(design: Design, means: FloatArray, tested: Outcomes) -> FloatArray:
    """Return the effect size of each comparison, ``float64[s, 1]``."""
    effect = _paired_effect if design.paired else _effect
    return np.array([[effect(design, means, each)] for each in tested.sides])


def _effect(design: Design, means: FloatArray, sides: Sides) -> float:
    return cohens_d(means[design.group == sides.a], means[np.isin(design.group, sides.others)])


def _paired_effect(design: Design, means: FloatArray, sides: Sides) -> float:
    """Return d_z of the differences between both sides in the templates that hold both."""
    first = _by_stratum(design, means, (sides.a,))
    gaps = first - _by_stratum(design, means, sides.others)
    gaps = gaps[~np.isnan(gaps)]
    return float(cohens_dz(gaps.mean(), gaps.std(ddof=1))) if gaps.size > 1 else math.nan


def _by_stratum(design: Design, means: FloatArray, groups: tuple[int, ...]) -> FloatArray:
    inside = np.isin(design.group, groups)
    of, n = design.stratum[inside], int(design.stratum.max()) + 1
    with np.errstate(invalid="ignore"):
        total = np.bincount(of, weights=means[inside], minlength=n)
        return np.asarray(total / np.bincount(of, minlength=n))
