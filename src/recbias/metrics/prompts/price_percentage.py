"""Which label values the recommendations of each attribute value come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import Contradiction
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import JOIN, Groups, group_by, split_crossing
from recbias.metrics.prompts.label_contrasts import build_contrasts, run_permutation_tests
from recbias.metrics.prompts.label_estimates import (
    LabelEstimates,
    SideEstimates,
    bootstrap_means,
    list_comparisons,
)
from recbias.metrics.prompts.label_metric import UnitMetric
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.query_labels import group_queries, locate_errors
from recbias.metrics.prompts.slot_counts import (
    Cutoff,
    count_attribute_values,
)
from recbias.metrics.prompts.template_design import UnitChoice, build_design
from recbias.statistics.bootstrap.cluster_bootstrap import compute_group_means
from recbias.statistics.permutation.label_permutation import Permutations


@dataclass(frozen=True, kw_only=True)
class PricePercentage(UnitMetric):
    """The share of the recommendations at a price that comes from queries with each label.

        P(label = l | attribute = m) = x(l, m) / Σ_l' x(l', m)

    x(l, m) is the number of list positions with an item of attribute value m, over the queries
    with label value l; repeats count. With L label values 1/L is neutral, and the shares at one m
    sum to 1. With ``rescale``, x(l, m) is the mean over the units (names) of their positions at m
    per query, so that every name has the same weight and a label with more names gains nothing.
    Undefined (NaN) if no list holds an item of m. Items without the attribute or outside the
    catalogue, and queries without the label, are excluded and counted in a warning.

    The unit is the name that carries the label, or the template (see ``units``). Intervals come
    from a bootstrap over units, names within their label, with Student's t for few units. Tests
    permute labels over the names that occur in the same templates, with the same permutation in
    every template; if templates are the units, labels are permuted within each template, and the
    result holds for these words only, not for others like them. The statistic is
    (x_a - x_b) / (x_a + x_b) of the rescaled x. Up to ten label values are compared in pairs, more
    of them each with the mean of the rest. ``n`` counts the units, over all labels, whose lists
    hold m; ``undefined`` those whose lists do not.

    Args:
        label: A label of the queries, or a crossing of several: ``race&gender``.
        attribute: A categorical or ordinal column of the items; ``a|b`` counts as both.
        rescale: Give every name the same weight; False counts positions.
        within: Another label; the shares sum to 1 within each of its values.

    Raises:
        UnknownColumn: No query carries the label, or no item the attribute.

    Range:
        0 to 1, neutral 1 / number of label values; undefined if no list holds the value.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, equation 1.
    """

    direction: ClassVar[Direction] = "none"

    units: UnitChoice = "auto"
    words: str | None = None
    rescale: bool = True
    within: str | None = None
    permutations: Permutations = 10_000
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        super().check(evidence)
        self._design(evidence)

    count_names = ("weight", "weight_of_all", "positions", "positions_of_all")

    def of_counts(self, counts: FloatArray) -> float:
        """Return the share from weights (rates, if rescaled) summed over datasets."""
        return float(counts[0] / counts[1]) if counts[1] else float("nan")

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        design, classes = self._design(evidence)
        slots = count_attribute_values(evidence, design, self.attribute, k=self.k)
        rates = slots.counts / design.sentences[:, None]
        values = rates if self.rescale else slots.counts
        sizes = 1 if self.rescale else np.bincount(design.group, minlength=classes.size)[:, None]
        weights = sizes * compute_group_means(values, design.group, classes.size)
        samples = sizes * bootstrap_means(evidence, design, values)
        positions = np.zeros((classes.size, slots.counts.shape[1]))
        np.add.at(positions, design.group, slots.counts)
        n, undefined = _count_units(slots.counts > 0, design, classes)
        estimates = LabelEstimates(
            values=_compute_shares(weights, classes),
            replicates=_compute_shares(samples, classes),
            n=n,
            undefined=undefined,
            counts=np.stack(
                [
                    *(weights, _sum_classes(weights, classes)),
                    *(positions, _sum_classes(positions, classes)),
                ],
                axis=-1,
            ),
        )
        comparisons = list_comparisons(classes.size, classes)
        results = run_permutation_tests(
            evidence, design, rates, comparisons, relative_gap, n_permutations=self.permutations
        )
        sides = SideEstimates.from_groups(estimates.values, estimates.replicates, comparisons)
        targets = [f"{self.attribute}={value}" for value in slots.values]
        contrasts = build_contrasts(design, results, sides)
        return estimates.to_measurements(design, targets, contrasts)

    def _design(self, evidence: Evidence) -> tuple[Design, AnyArray]:
        """Return the units, and the class of each label value within which shares sum to 1."""
        if self.within is None:
            design = build_design(evidence, self.label, self.units, self.words)
            return design, np.zeros(len(design.groups.names), dtype=np.intp)
        group_queries(evidence, self.label)
        with locate_errors("within"):
            group_by(evidence.queries.labels, self.within)
        parts, within = split_crossing(self.label), split_crossing(self.within)
        by = JOIN.join([*parts, *(part for part in within if part not in parts)])
        design = build_design(evidence, by, self.units, self.words)
        classes = _classify(design.groups, within)
        if int(classes.max()) + 1 == classes.size:
            message = f"each value of {self.within!r} has only one value of {self.label!r}"
            raise Contradiction(message, where="within", remedy="choose another label")
        return design, classes


def relative_gap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return (a - b) / (a + b); NaN if both are 0.

    >>> relative_gap(np.array([3.0]), np.array([1.0])).tolist()
    [0.5]
    """
    with np.errstate(invalid="ignore"):
        return np.asarray((a - b) / (a + b))


def _classify(groups: Groups, within: tuple[str, ...]) -> AnyArray:
    """Return the class of each label value, which is its values of ``within``, ``int[g]``."""
    parts = split_crossing(groups.by)
    keys = [tuple(values[parts.index(part)] for part in within) for values in groups.values]
    classes = {key: code for code, key in enumerate(sorted(set(keys)))}
    return np.array([classes[key] for key in keys], dtype=np.intp)


def _sum_classes(weights: FloatArray, classes: AnyArray) -> FloatArray:
    """Return for each label value the sum over its class, ``float64[..., g, m]``."""
    same = (classes[:, None] == classes[None, :]).astype(np.float64)
    return np.asarray(same @ weights)


def _compute_shares(weights: FloatArray, classes: AnyArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(weights / _sum_classes(weights, classes))


def _count_units(holds: BoolArray, design: Design, classes: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return how many units of the class of each label value hold each value, and do not."""
    units = classes[design.group]
    counts = [design.select(units == code).count_units(holds[units == code]) for code in classes]
    return np.stack([n for n, _ in counts]), np.stack([undefined for _, undefined in counts])
