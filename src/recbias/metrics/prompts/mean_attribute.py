"""The mean level of an attribute of the items recommended under each label: how expensive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast, Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.prompts.label_contrasts import (
    build_contrasts,
    compute_ratio_gap,
    run_permutation_tests,
)
from recbias.metrics.prompts.label_estimates import (
    Comparison,
    SideEstimates,
    bootstrap_means,
    list_comparisons,
)
from recbias.metrics.prompts.label_metric import UnitMetric
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.query_labels import NEUTRAL, TEMPLATE
from recbias.metrics.prompts.slot_counts import Cutoff, average_levels, read_item_levels
from recbias.metrics.prompts.template_design import (
    UnitChoice,
    build_design,
    find_neutral_templates,
)
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.effect_sizes import cohens_d, cohens_dz
from recbias.statistics.permutation.label_permutation import Permutations, Statistic


@dataclass(frozen=True, kw_only=True)
class MeanAttribute(UnitMetric):
    """The mean level of an attribute (the price, 1 to 4) of the items recommended under a label.

        M(l) = (1 / |U_l|) Σ_{u in U_l} v(u),    v(u) = mean level over the positions of u's lists

    U_l are the units of label value l: the names (or pairs of words) that carry it, or the
    templates if one word carries it (a location). A text of one repeated symbol, ``$`` to
    ``$$$$``, is the number of symbols; other columns must be numeric. Repeats count. Items without
    a level or outside the catalogue, and queries without the label, are excluded and counted in a
    warning. v is undefined (NaN) for a unit whose lists hold no item with a level.

    The interval is Student's t over the units: it holds for other words (or sentences) like these,
    all else fixed. Tests permute labels over the units that occur in the same templates; if
    templates are the units, between the label values of one template, which for two values is the
    sign-flip test. If the words of several slots carry the label together (``orientation``), the
    units are pairs that share words: the words of each slot are resampled separately, within their
    class (gender), and these classes are permuted over the words of each slot; ``n`` counts the
    words of all slots. If not every combination of such words occurs in the same templates, there
    is no interval and no test, and a warning reports it. Up to ten label values are compared in
    pairs, more of them each with the rest. The effect size is the difference divided by the pooled
    standard deviation of the units, or by that of their differences if they are templates.

    If the templates also occur without a word (``neutral: true`` of the templates), the group
    ``neutral`` is the mean over these templates: M over the templates in which the label's words
    occur, a reference for the labels. It is not a label and in no test.

    Args:
        attribute: A numeric column of the items, or one of repeated signs.

    Raises:
        UnknownColumn: No query carries the label, or the items have no such column of levels.

    Range:
        Any number, of the attribute; undefined if no list holds a level.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, figure 7.
    """

    direction: ClassVar[Direction] = "none"
    unit = "name"

    units: UnitChoice = "auto"
    words: str | None = None
    permutations: Permutations = 10_000
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        read_item_levels(evidence, self.attribute)
        build_design(evidence, self.label, self.units, self.words)

    count_names = ("sum_of_units", "units")

    def of_counts(self, counts: FloatArray) -> float:
        """Return the mean over the units of several datasets from their sum and number."""
        return float(counts[0] / counts[1]) if counts[1] else math.nan

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        levels = read_item_levels(evidence, self.attribute)
        design = build_design(evidence, self.label, self.units, self.words)
        units = (design.queries, design.group.size)
        means = average_levels(evidence, units, levels, self.attribute, self.k)
        known = ~np.isnan(means)
        samples = bootstrap_means(
            evidence, design, np.column_stack([np.where(known, means, 0.0), known])
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            replicates = samples[..., :1] / samples[..., 1:]
        measurements = _measure_groups(design, means, replicates)
        points = np.array([[measurement.value] for measurement in measurements])
        comparisons = list_comparisons(len(measurements))
        sides = SideEstimates.from_groups(points, replicates, comparisons)
        contrasts = _test(evidence, design, means, comparisons, sides, self.permutations)
        measurements = [
            replace(measurement, contrasts=contrasts[group])
            for group, measurement in enumerate(measurements)
        ]
        return [*measurements, *self._measure_neutral(evidence, design, levels)]

    def _measure_neutral(
        self, evidence: Evidence, design: Design, levels: FloatArray
    ) -> Iterator[Measurement]:
        """Yield the mean level of the design's templates without a word, if there are any."""
        ids, queries = find_neutral_templates(evidence, design)
        if ids.size:
            means = average_levels(evidence, (queries, ids.size), levels, self.attribute, self.k)
            yield _measure_units(UnitScores(TEMPLATE, ids, means), NEUTRAL)


def _measure_groups(
    design: Design, means: FloatArray, replicates: FloatArray
) -> list[Measurement]:
    """Return the estimate of each label value; units that share words have bootstrap samples."""
    masks = [design.group == group for group in range(len(design.groups.names))]
    measurements = [
        _measure_units(UnitScores(design.unit, design.ids[mask], means[mask]), name)
        for mask, name in zip(masks, design.groups.names, strict=True)
    ]
    if design.independent or design.paired:
        return measurements
    points = np.array([[measurement.value] for measurement in measurements])
    combined, df = design.combine_samples(points, replicates)
    low, high = bootstrap_t_interval(points, np.moveaxis(combined, 0, -1), df)
    members = np.array(masks).T
    n, _ = design.count_units(members & ~np.isnan(means)[:, None])
    total, _ = design.count_units(members)
    return [
        replace(
            measurement,
            n=int(n[group]),
            undefined=int(total[group] - n[group]),
            units=None,
            replicates=combined[:, group, 0],
            df=float(df[group, 0]),
            ci_low=float(low[group, 0]),
            ci_high=float(high[group, 0]),
        )
        for group, measurement in enumerate(measurements)
    ]


def _measure_units(units: UnitScores, group: str) -> Measurement:
    measurement = Measurement.from_units(units, group=group)
    counts = np.array([np.nansum(units.values), measurement.n], dtype=np.float64)
    return replace(measurement, counts=counts)


def _test(
    evidence: Evidence,
    design: Design,
    means: FloatArray,
    comparisons: Sequence[Comparison],
    sides: SideEstimates,
    n_permutations: int,
) -> list[tuple[Contrast, ...]]:
    """Return the tests of each label value, over the units that have a mean."""
    known = ~np.isnan(means)
    defined = design.select(known)
    tested, values = defined, means[known][:, None]
    statistic: Statistic = np.subtract
    if design.words is not None:
        values = np.column_stack([np.where(known, means, 0.0), known])
        tested, statistic = design, compute_ratio_gap
    results = run_permutation_tests(
        evidence, tested, values, comparisons, statistic, n_permutations=n_permutations
    )
    effects = np.array(
        [[_compute_effect(defined, means[known], pair)] for pair in results.comparisons]
    )
    contrasts = build_contrasts(design, results, sides, effects)
    return [contrasts.get((group, 0), ()) for group in range(len(design.groups.names))]


def _compute_effect(design: Design, means: FloatArray, comparison: Comparison) -> float:
    """Return Cohen's d, or d_z of the differences in the templates that hold both sides."""
    if not design.paired:
        in_b = np.isin(design.group, comparison.b)
        return cohens_d(means[design.group == comparison.a], means[in_b])
    a = _average_strata(design, means, (comparison.a,))
    gaps = a - _average_strata(design, means, comparison.b)
    gaps = gaps[~np.isnan(gaps)]
    return float(cohens_dz(gaps.mean(), gaps.std(ddof=1))) if gaps.size > 1 else math.nan


def _average_strata(design: Design, means: FloatArray, groups: tuple[int, ...]) -> FloatArray:
    members = np.isin(design.group, groups)
    strata, n = design.stratum[members], int(design.stratum.max()) + 1
    with np.errstate(invalid="ignore"):
        total = np.bincount(strata, weights=means[members], minlength=n)
        return np.asarray(total / np.bincount(strata, minlength=n))
