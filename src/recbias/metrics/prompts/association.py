"""How much more often an attribute value is recommended under one label than under the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, MinLen

from recbias.core.arrays import FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import UnknownColumn
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import Groups
from recbias.core.stage_context import warn
from recbias.core.suggestions import find_nearest, suggest
from recbias.metrics.prompts.label_contrasts import (
    build_contrasts,
    compute_ratio_gap,
    run_permutation_tests,
)
from recbias.metrics.prompts.label_estimates import (
    LabelEstimates,
    SideEstimates,
    bootstrap_means,
    list_rest_comparisons,
)
from recbias.metrics.prompts.label_metric import UnitMetric
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.query_labels import group_queries
from recbias.metrics.prompts.slot_counts import Cutoff, SlotCounts, count_attribute_values
from recbias.metrics.prompts.template_design import UnitChoice, build_design
from recbias.statistics.bootstrap.cluster_bootstrap import compute_group_means
from recbias.statistics.permutation.label_permutation import Permutations

Only: TypeAlias = Literal["nightlife"] | Annotated[tuple[str, ...], MinLen(1)] | None
"""Attribute values, or the name of a packaged list of them."""


@dataclass(frozen=True, kw_only=True)
class Association(UnitMetric):
    """How much more often items of an attribute value are recommended under a label than without.

        f(c, D) = |I_c,D| / |I_D|
        B(c, l) = ( f(c, D_l) - f(c, D_l') ) / f(c, D)        difference, 0 is neutral
        B(c, l) = f(c, D_l) / f(c, D_l')                      ratio, 1 is neutral

    I_D are the positions in the lists of the queries D that hold an item with any value of the
    attribute, I_c,D those of value c; repeats count, and an item of several values counts for
    each. D_l are the queries of label value l, D_l' those of the other value (of all others, if
    there are more than two), D both together. Undefined (NaN) if c occurs in fewer than
    ``min_count`` positions, or never; the ratio also if c does not occur under l'.

    Units, intervals and tests are those of ``price_percentage``: the units are names or templates
    (or the words of each slot, if those of several carry the label together), labels are permuted
    among units of the same templates, and both forms test f(c, D_l) - f(c, D_l'). Of two label
    values only the first is tested, since the second gives the same test. ``n`` counts the units
    whose lists hold an item with the attribute, ``undefined`` the others.

    Args:
        attribute: A column of the items, usually with several values in a cell: ``a|b``.
        form: The difference or the ratio.
        positive: The label value l that is reported; by default all are.
        only: The attribute values that are reported and tested, in upper or lower case; by default
            all. f remains the share of all positions, so that the estimates do not change; fewer
            tests are corrected for. ``nightlife`` is the paper's list of Yelp's categories of
            nightlife.
        min_count: Values in fewer positions, under all labels together, are undefined.

    Raises:
        UnknownColumn: No query carries the label or its value ``positive``, or no item the
            attribute or any value of ``only``.

    Range:
        Any number, neutral 0 (ratio: 1); undefined if c is not recommended.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, equations 2 and 3.
    """

    direction: ClassVar[Direction] = "zero"

    form: Literal["difference", "ratio"] = "difference"
    positive: str | None = None
    only: Only = None
    min_count: Annotated[int, Ge(1)] = 1
    units: UnitChoice = "auto"
    words: str | None = None
    permutations: Permutations = 10_000
    k: Cutoff = None

    def __post_init__(self) -> None:
        """Set the direction of a ratio, whose neutral value is 1, to ``none``."""
        if self.form == "ratio":
            object.__setattr__(self, "direction", "none")

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        super().check(evidence)
        if self.only is not None:
            items: Attributes = evidence.items  # type: ignore[assignment]  # checked above
            match_values(self.only, self.attribute, items.membership(self.attribute).values)
        self._find_reported(group_queries(evidence, self.label))
        build_design(evidence, self.label, self.units, self.words)

    count_names = ("positions", "elsewhere", "of_all", "of_all_elsewhere")
    """The positions of value c under l and under other labels, then those of any value."""

    def of_counts(self, counts: FloatArray) -> float:
        """Return the score from counts summed over datasets, ``float64[2, 2]``."""
        return float(self._score(counts[0, 0], counts[0, 1], counts[1, 0], counts[1, 1]))

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        design = build_design(evidence, self.label, self.units, self.words)
        reported = self._find_reported(design.groups)
        slots = count_attribute_values(evidence, design, self.attribute, k=self.k)
        slots = self._restrict(evidence, slots)
        values = np.column_stack([slots.counts, slots.positions])
        estimates, sides = self._estimate(evidence, design, values)
        if n_rare := int(np.count_nonzero(slots.counts.sum(axis=0) < self.min_count)):
            limit = "no" if self.min_count == 1 else f"fewer than {self.min_count:,}"
            is_one = n_rare == 1
            message = f"{'value occurs' if is_one else 'values occur'} in {limit} positions"
            message += f" and {'has' if is_one else 'have'} no score"
            warn(f"{evidence.metric}: {n_rare:,} {self.attribute} {message}")
        n_groups = len(design.groups.names)
        comparisons = [
            pair for pair in list_rest_comparisons(range(n_groups)) if pair.a in reported
        ][: 1 if n_groups == 2 else None]
        results = run_permutation_tests(
            evidence,
            design,
            values,
            comparisons,
            compute_ratio_gap,
            n_permutations=self.permutations,
        )
        targets = [f"{self.attribute}={value}" for value in slots.values]
        contrasts = build_contrasts(
            design, results, sides.select([pair.a for pair in comparisons])
        )
        measurements = estimates.to_measurements(design, targets, contrasts)
        names = {design.groups.names[group] for group in reported}
        return [measurement for measurement in measurements if measurement.group in names]

    def _estimate(
        self, evidence: Evidence, design: Design, values: FloatArray
    ) -> tuple[LabelEstimates, SideEstimates]:
        """Return the scores of all label values, and the shares f that determine them."""
        n_groups = len(design.groups.names)
        sizes = np.bincount(design.group, minlength=n_groups)[:, None]
        sums = sizes * compute_group_means(values, design.group, n_groups)
        samples = sizes * bootstrap_means(evidence, design, values)
        counts = _split(sums)
        scores = self._score(*counts)
        n_with, n_without = design.count_units(values[:, -1:] > 0)
        n = np.where(np.isnan(scores), 0, n_with)
        estimates = LabelEstimates(
            values=scores,
            replicates=self._score(*_split(samples)),
            n=n,
            undefined=n_with + n_without - n,
            counts=np.stack([np.stack(counts[:2], -1), np.stack(counts[2:], -1)], axis=-2),
        )
        a, b = _compute_shares(sums)
        gap = np.subtract(*_compute_shares(samples))
        return estimates, SideEstimates(np.where(np.isnan(scores), np.nan, a), b, gap)

    def _score(self, *counts: FloatArray) -> FloatArray:
        """Return B from the counts of value c under l and l', and of any value under both."""
        at, at_rest, total, total_rest = (np.asarray(count) for count in counts)
        with np.errstate(invalid="ignore", divide="ignore"):
            share, rest = at / total, at_rest / total_rest
            overall = (at + at_rest) / (total + total_rest)
            scores = share / rest if self.form == "ratio" else (share - rest) / overall
        return np.where((at + at_rest < self.min_count) | np.isinf(scores), np.nan, scores)

    def _find_reported(self, groups: Groups) -> list[int]:
        """Return the label values that are reported."""
        if self.positive is None:
            return list(range(len(groups.names)))
        values = ["&".join(labels) for labels in groups.values]
        for group, names in enumerate(zip(values, groups.names, strict=True)):
            if self.positive in names:
                return [group]
        message = f"no query has the {self.label} {self.positive!r}"
        raise UnknownColumn(message, where="positive", remedy=suggest(self.positive, values))

    def _restrict(self, evidence: Evidence, slots: SlotCounts) -> SlotCounts:
        """Return the counts of the reported values; the number of all positions stays."""
        if self.only is None:
            return slots
        columns, unknown = match_values(self.only, self.attribute, slots.values)
        if unknown and not isinstance(self.only, str):  # data has few values of a packaged list
            message = f"no item has these {self.attribute} of only: {', '.join(unknown)}"
            warn(f"{evidence.metric}: {message}")
        values = tuple(slots.values[column] for column in columns)
        return replace(slots, values=values, counts=slots.counts[:, columns])


def _split(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the counts of each value under l and l', and of any value: ``[..., g, m]`` each."""
    at, total = sums[..., :-1], np.broadcast_to(sums[..., -1:], sums[..., :-1].shape)
    at_rest = at.sum(axis=-2, keepdims=True) - at
    return at, at_rest, total, total.sum(axis=-2, keepdims=True) - total


def _compute_shares(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    at, at_rest, total, total_rest = _split(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        return at / total, at_rest / total_rest


@cache
def load_packaged_values(name: str) -> tuple[str, ...]:
    """Return the attribute values of a packaged list, such as ``nightlife``."""
    text = files("recbias.metrics.prompts").joinpath("packaged", f"{name}.txt").read_text("utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def match_values(
    only: str | tuple[str, ...], attribute: str, values: Sequence[str]
) -> tuple[list[int], list[str]]:
    """Return the indices of the values named by ``only``, and the names without a value.

    Upper and lower case are equal.

    Raises:
        UnknownColumn: No value is named; ``where`` is ``only``.
    """
    names = load_packaged_values(only) if isinstance(only, str) else only
    folded = {name.casefold() for name in names}
    matches = [index for index, value in enumerate(values) if value.casefold() in folded]
    if not matches:
        nearest = dict.fromkeys(
            value for name in names for value in find_nearest(name, values, limit=1)
        )
        remedy = f"did you mean {' or '.join(list(nearest)[:3])}?"
        remedy = remedy if nearest else suggest(" ".join(names), values)
        message = f"no item has any {attribute} listed in only"
        raise UnknownColumn(message, where="only", remedy=remedy)
    known = {values[index].casefold() for index in matches}
    return matches, [name for name in names if name.casefold() not in known]
