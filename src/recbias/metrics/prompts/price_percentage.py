"""From which label's queries the recommendations of each attribute value come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import Contradiction
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import JOIN, Groups, group_by, split_crossing
from recbias.metrics.prompts.label_contrasts import Gaps, all_sides, contrasts, outcomes_of
from recbias.metrics.prompts.label_estimates import LabelFigures, bootstrap_means
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.slot_counts import check_attribute, count_slots
from recbias.metrics.prompts.template_design import (
    UnitChoice,
    blaming,
    design_of,
    labelled,
    nothing_asked,
)
from recbias.statistics.bootstrap.cluster_bootstrap import compute_group_means
from recbias.statistics.permutation.label_permutation import Permutations

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None


@dataclass(frozen=True, kw_only=True)
class PricePercentage:
    """Of the recommendations at a price, the share that came from queries with each label.

        P(label = l | attribute = m) = x(l, m) / Σ_l' x(l', m)

    x(l, m) is the number of places of the lists that hold an item of attribute value m, over the
    queries with label value l; repeats count. With L label values 1/L is neutral, and the shares
    at one m sum to 1. With ``rescale``, x(l, m) is the mean over the units (names) of their places
    at m per query, so that every name weighs alike and no label gains by having more of them.
    Undefined (NaN) where no list holds an item of m. Items without the attribute, or outside the
    catalogue, are left out and counted in a warning, and so are queries without the label.

    The unit is the name that carries the label, or the template (see ``units``). Intervals come
    from a bootstrap over units, names within their label, with Student's t for few units. Tests
    exchange labels over the names that stand in the same templates, the same exchange in every
    template, or within each template where templates are the units (which takes the words as they
    are, and says nothing of others like them); the statistic is (x_a - x_b) / (x_a + x_b) of the
    rescaled x. Up to ten label values are compared two by two, more of them each with the mean of
    the rest. ``n`` counts the units, over all labels, whose lists hold m; ``undefined`` those
    whose lists do not.

    Args:
        label: A label of the queries, or a crossing of several: ``race&gender``.
        attribute: A categorical or ordinal column of the items; ``a|b`` counts as both.
        units: What the statistics count: the name where each label value has several, otherwise
            the template.
        words: The column of the words that carry the label; by default it is found.
        rescale: Weigh every name alike; False counts places as they are.
        within: Another label, within each value of which the shares sum to 1.
        permutations: How many relabellings are drawn; also the most that are counted out.
        k: How much of each list is measured; by default all of it.

    Raises:
        UnknownColumn: No query carries the label, or no item the attribute.
        NothingLeft: The label has one value only, or every item lacks the attribute.

    Range:
        0 to 1, neutral 1 / number of label values; undefined where no list holds the
        value.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, equation 1.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    label: str
    attribute: str
    units: UnitChoice = "auto"
    words: str | None = None
    rescale: bool = True
    within: str | None = None
    permutations: Permutations = 10_000
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the labels and attributes alone."""
        check_attribute(evidence, self.attribute)
        self._design(evidence)

    def of_counts(self, counts: FloatArray) -> float:
        """Return the share of places (per query, where rescaled) added up over datasets."""
        return float(counts[0] / counts[1]) if counts[1] else float("nan")

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the share of each label value at each attribute value."""
        evidence.need("lists")
        check_attribute(evidence, self.attribute)
        if nothing := nothing_asked(evidence):
            return nothing
        design, classes = self._design(evidence)
        slots = count_slots(evidence, design, self.attribute, k=self.k)
        rates = slots.counts / design.sentences[:, None]
        values = rates if self.rescale else slots.counts
        sizes = 1 if self.rescale else np.bincount(design.group, minlength=classes.size)[:, None]
        found = sizes * compute_group_means(values, design.group, classes.size)
        samples = sizes * bootstrap_means(evidence, design, values)
        n, undefined = _counted(slots.counts > 0, design, classes)
        figures = LabelFigures(
            values=_shares(found, classes),
            replicates=_shares(samples, classes),
            n=n,
            undefined=undefined,
            counts=np.stack([found, _totals(found, classes)], axis=-1),
        )
        sides = all_sides(classes.size, classes)
        tested = outcomes_of(evidence, design, rates, sides, relative_gap, draws=self.permutations)
        targets = [f"{self.attribute}={each}" for each in slots.values]
        found_tests = contrasts(
            design, tested, Gaps.of_sides(figures.values, figures.replicates, sides)
        )
        return figures.measurements(design, targets, found_tests)

    def _design(self, evidence: Evidence) -> tuple[Design, AnyArray]:
        """Return the units, and the class of each label value within which shares sum to 1."""
        labelled(evidence, self.label)
        if self.within is None:
            design = design_of(evidence, self.label, self.units, self.words)
            return design, np.zeros(len(design.groups.names), dtype=np.intp)
        with blaming("within"):
            group_by(evidence.queries.labels, self.within)
        parts, own = split_crossing(self.label), split_crossing(self.within)
        by = JOIN.join([*parts, *(each for each in own if each not in parts)])
        design = design_of(evidence, by, self.units, self.words)
        classes = _classes(design.groups, own)
        if int(classes.max()) + 1 == classes.size:
            found = f"within a value of {self.within!r} there is one value of {self.label!r} only"
            raise Contradiction(found, where="within", remedy="name another label")
        return design, classes


def relative_gap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return (a - b) / (a + b); NaN where both are 0.

    >>> relative_gap(np.array([3.0]), np.array([1.0])).tolist()
    [0.5]
    """
    with np.errstate(invalid="ignore"):
        return np.asarray((a - b) / (a + b))


def _classes(groups: Groups, within: tuple[str, ...]) -> AnyArray:
    """Return which of the values of ``within`` each label value is of, ``int[g]``."""
    parts = split_crossing(groups.by)
    keys = [tuple(values[parts.index(each)] for each in within) for values in groups.values]
    known = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([known[key] for key in keys], dtype=np.intp)


def _totals(weights: FloatArray, classes: AnyArray) -> FloatArray:
    """Return the sum over the label values of the class of each, ``float64[..., g, m]``."""
    same = (classes[:, None] == classes[None, :]).astype(np.float64)
    return np.asarray(same @ weights)


def _shares(weights: FloatArray, classes: AnyArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(weights / _totals(weights, classes))


def _counted(held: BoolArray, design: Design, classes: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return how many units of the class of each label value hold each value, and do not."""
    units = classes[design.group]
    found = [design.take(units == each).count(held[units == each]) for each in classes]
    return np.stack([n for n, _ in found]), np.stack([rest for _, rest in found])
