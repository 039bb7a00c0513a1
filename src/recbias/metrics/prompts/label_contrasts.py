"""Permutation tests between the label values of one model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Contrast
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.prompts.label_estimates import Comparison, Contrasts, SideEstimates
from recbias.metrics.prompts.label_units import Design
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.permutation.label_permutation import (
    LabelExchange,
    Statistic,
    permute_labels,
)
from recbias.statistics.permutation.slot_permutation import SlotComparison, permute_slots

REST = "rest"
"""The name of all other label values together."""


@dataclass(frozen=True, eq=False)
class PermutationResults:
    """The tests of several comparisons at several targets.

    Args:
        comparisons: The comparisons.
        statistic: ``float64[s, m]``.
        p: Two-sided, ``float64[s, m]``; NaN if the test cannot be computed.
        n: The number of units of both sides of each, of templates if they are the units, or of
            words if those of several slots carry the label, ``int[s]``.
    """

    comparisons: tuple[Comparison, ...]
    statistic: FloatArray
    p: FloatArray
    n: AnyArray


@dataclass(frozen=True, eq=False)
class _Layout:
    """The units of both sides of a comparison, by stratum, those of the first side first."""

    row: int
    units: AnyArray
    sizes: AnyArray
    n_first: AnyArray
    observed: FloatArray


def run_permutation_tests(
    evidence: Evidence,
    design: Design,
    values: FloatArray,
    comparisons: Sequence[Comparison],
    statistic: Statistic,
    *,
    n_permutations: int,
) -> PermutationResults:
    """Return the permutation test of each comparison.

    Labels are permuted among the units of both sides that occur in the same templates. Strata with
    one side only carry no information and are excluded. If the words of several slots carry the
    label, the classes of the words of each slot are permuted. A comparison without exchangeable
    labels (a label value of one word, if words are the units) has no p-value and is counted in a
    warning.

    Args:
        evidence: The seed: all comparisons and models have the same permutations.
        design: The units.
        values: ``float64[u, c]``, without NaN.
        comparisons: The comparisons.
        statistic: From the means of both sides, ``(..., c)``, to ``(..., m)``.
        n_permutations: The number of sampled permutations.
    """
    if design.words is not None:
        return _permute_slots(evidence, design, values, comparisons, statistic, n_permutations)
    layouts = [
        _lay_out(design, values, comparison, row, statistic)
        for row, comparison in enumerate(comparisons)
    ]
    by_strata: dict[bytes, list[_Layout]] = defaultdict(list)
    for layout in layouts:
        by_strata[layout.sizes.tobytes() + layout.n_first.tobytes()].append(layout)
    observed = np.stack([layout.observed for layout in layouts])
    p = np.full(observed.shape, np.nan)
    for group in by_strata.values():
        exchange = LabelExchange(group[0].sizes, group[0].n_first)
        for batch in _batch_layouts(group):
            rows = np.array([[layout.row for layout in same_units] for same_units in batch])
            units = np.stack([same_units[0].units for same_units in batch])
            p[rows] = permute_labels(
                values[units],
                observed[rows],
                exchange,
                statistic,
                n_permutations=n_permutations,
                rng=evidence.rng(),
            )
        if exchange.n_labellings == 1:
            _warn_no_p_value(evidence, design, len(group))
    n = [layout.sizes.size if design.paired else layout.units.size for layout in layouts]
    return PermutationResults(tuple(comparisons), observed, p, np.array(n))


def build_contrasts(
    design: Design,
    results: PermutationResults,
    estimates: SideEstimates,
    effects: FloatArray | None = None,
) -> Contrasts:
    """Return the rows of the tests, by label value and column of the target.

    The effect sizes are ``float64[s, m]``. There is no row if one of the estimates is undefined.
    """
    difference = estimates.a - estimates.b
    samples, df = design.combine_samples(difference, estimates.samples)
    low, high = bootstrap_t_interval(difference, np.moveaxis(samples, 0, -1), df)
    sizes = np.full(difference.shape, np.nan) if effects is None else effects
    names = design.groups.names
    contrasts: dict[tuple[int, int], tuple[Contrast, ...]] = defaultdict(tuple)
    for row, column in zip(*np.nonzero(~np.isnan(difference)), strict=True):
        comparison, cell = results.comparisons[row], (row, column)
        contrast = Contrast(
            between="groups",
            a=names[comparison.a],
            b=REST if len(comparison.b) > 1 else names[comparison.b[0]],
            test="permutation",
            n=int(results.n[row]),
            mean_a=float(estimates.a[cell]),
            mean_b=float(estimates.b[cell]),
            difference=float(difference[cell]),
            statistic=float(results.statistic[cell]),
            p=float(results.p[cell]),
            ci_low=float(low[cell]),
            ci_high=float(high[cell]),
            effect_size=float(sizes[cell]),
        )
        contrasts[comparison.a, int(column)] += (contrast,)
    return contrasts


def compute_ratio_gap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the difference of the ratios of all columns but the last to the last."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(a[..., :-1] / a[..., -1:] - b[..., :-1] / b[..., -1:])


def _permute_slots(
    evidence: Evidence,
    design: Design,
    values: FloatArray,
    comparisons: Sequence[Comparison],
    statistic: Statistic,
    n_permutations: int,
) -> PermutationResults:
    """Return the tests of a label that the words of several slots carry together."""
    labels = np.arange(len(design.groups.names))
    a = np.array([labels == comparison.a for comparison in comparisons])
    b = np.array([np.isin(labels, comparison.b) for comparison in comparisons])
    observed, p = permute_slots(
        values,
        design.crossing,
        SlotComparison(a, b, statistic),
        n_permutations=n_permutations,
        rng=evidence.rng(),
    )
    if np.isnan(p[~np.isnan(observed)]).any():
        _warn_no_p_value(evidence, design, len(comparisons))
    compared = (a | b)[:, design.group].T
    return PermutationResults(tuple(comparisons), observed, p, design.count_units(compared)[0])


def _warn_no_p_value(evidence: Evidence, design: Design, n: int) -> None:
    message = f"{n:,} comparisons of {design.groups.by} have no p-value"
    warn(f"{evidence.metric}: {message}, since no labels can be permuted")


def _batch_layouts(layouts: list[_Layout]) -> list[list[list[_Layout]]]:
    """Group layouts with the same strata by their units, and those groups by their length.

    Comparisons with the rest all have the same units, so that they share their permutations.
    """
    by_units: dict[bytes, list[_Layout]] = defaultdict(list)
    for layout in layouts:
        by_units[np.sort(layout.units).tobytes()].append(layout)
    by_length: dict[int, list[list[_Layout]]] = defaultdict(list)
    for same_units in by_units.values():
        by_length[len(same_units)].append(same_units)
    return list(by_length.values())


def _lay_out(
    design: Design, values: FloatArray, comparison: Comparison, row: int, statistic: Statistic
) -> _Layout:
    is_a = design.group == comparison.a
    is_b = np.isin(design.group, comparison.b)
    n_strata = int(design.stratum.max(initial=-1)) + 1
    n_a = np.bincount(design.stratum[is_a], minlength=n_strata)
    n_b = np.bincount(design.stratum[is_b], minlength=n_strata)
    mixed = (n_a > 0) & (n_b > 0)
    units = np.flatnonzero((is_a | is_b) & mixed[design.stratum])
    units = units[np.lexsort([~is_a[units], design.stratum[units]])]
    with np.errstate(invalid="ignore", divide="ignore"):
        sides = (values[units[is_a[units]]], values[units[is_b[units]]])
        observed = statistic(*(side.sum(axis=0) / np.float64(len(side)) for side in sides))
    return _Layout(row, units, (n_a + n_b)[mixed], n_a[mixed], observed)
