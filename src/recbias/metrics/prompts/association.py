"""How much more often an attribute value is recommended under one label than under the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, MinLen

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.errors import UnknownColumn
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import Groups
from recbias.core.stage_context import warn
from recbias.core.suggestions import find_nearest, suggest
from recbias.metrics.prompts.label_contrasts import Gaps, against_rest, contrasts, outcomes_of
from recbias.metrics.prompts.label_estimates import LabelFigures, bootstrap_means
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.slot_counts import (
    SlotCounts,
    check_attribute,
    count_slots,
    known_items,
)
from recbias.metrics.prompts.template_design import (
    UnitChoice,
    design_of,
    labelled,
    nothing_asked,
)
from recbias.statistics.bootstrap.cluster_bootstrap import compute_group_means
from recbias.statistics.permutation.label_permutation import Permutations

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None

Only: TypeAlias = Literal["nightlife"] | Annotated[tuple[str, ...], MinLen(1)] | None
"""Attribute values, or the name of a packaged list of them."""


@dataclass(frozen=True, kw_only=True)
class Association:
    """How much more often items of an attribute value are recommended under a label than without.

        f(c, D) = |I_c,D| / |I_D|
        B(c, l) = ( f(c, D_l) - f(c, D_l') ) / f(c, D)        difference, 0 is neutral
        B(c, l) = f(c, D_l) / f(c, D_l')                      ratio, 1 is neutral

    I_D are the places of the lists of the queries D that hold an item with any value of the
    attribute, I_c,D those of value c; repeats count, and an item of several values counts for
    each. D_l are the queries of label value l, D_l' those of the other value (of all others, where
    there are more than two), D both together. Undefined (NaN) where c stands in fewer than
    ``min_count`` places, or nowhere; the ratio also where c does not stand under l'.

    Units, intervals and tests are those of ``price_percentage``: the name or the template is the
    unit (or the words of each slot, where those of several carry the label together), labels are
    exchanged among units of the same templates, and the test, whatever the form,
    is of f(c, D_l) - f(c, D_l'). With two label values one says all: it alone is tested. ``n``
    counts the units whose lists hold any item with the attribute, ``undefined`` the others.

    Args:
        label: A label of the queries, or a crossing of several.
        attribute: A column of the items, usually with several values in a cell: ``a|b``.
        form: The difference or the ratio.
        positive: The one label value l that is reported; by default each.
        only: The values of the attribute that are reported and tested, whatever their case; by
            default all. f stays the share of all places, so their figures are those that they have
            among all, and fewer tests are corrected for. ``nightlife`` is the paper's list of
            Yelp's categories of nightlife.
        min_count: Values that stand in fewer places, under all labels together, are undefined.
        units: What the statistics count: the name where each label value has several, otherwise
            the template.
        words: The column of the words that carry the label; by default it is found.
        permutations: How many relabellings are drawn; also the most that are counted out.
        k: How much of each list is measured; by default all of it.

    Raises:
        UnknownColumn: No query carries the label or its value ``positive``, or no item the
            attribute or any value of ``only``.
        NothingLeft: The label has one value only, or every item lacks the attribute.

    Range:
        Any number, neutral 0 (ratio: 1); undefined where c is not recommended.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, equations 2 and 3.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""

    label: str
    attribute: str
    form: Literal["difference", "ratio"] = "difference"
    positive: str | None = None
    only: Only = None
    min_count: Annotated[int, Ge(1)] = 1
    units: UnitChoice = "auto"
    words: str | None = None
    permutations: Permutations = 10_000
    k: Cutoff = None

    def __post_init__(self) -> None:
        """Say that a ratio is best nowhere: 1 is neutral."""
        if self.form == "ratio":
            object.__setattr__(self, "direction", "none")

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the labels and attributes alone."""
        check_attribute(evidence, self.attribute)
        if self.only is not None:
            self._asked(known_items(evidence).membership(self.attribute).values)
        self._reported(labelled(evidence, self.label))
        design_of(evidence, self.label, self.units, self.words)

    def of_counts(self, counts: FloatArray) -> float:
        """Return the score of places added up over datasets, ``float64[2, 2]``.

        The first row has the places at c under l and under the other label, the second those with
        any value.
        """
        return float(self._scores(counts[0, 0], counts[0, 1], counts[1, 0], counts[1, 1]))

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the score of each label value at each attribute value."""
        evidence.need("lists")
        check_attribute(evidence, self.attribute)
        if nothing := nothing_asked(evidence):
            return nothing
        design = design_of(evidence, self.label, self.units, self.words)
        reported = self._reported(design.groups)
        slots = self._chosen(evidence, count_slots(evidence, design, self.attribute, k=self.k))
        values = np.column_stack([slots.counts, slots.places])
        figures, gaps = self._figures(evidence, design, values)
        self._say_rare(evidence, slots.counts.sum(axis=0))
        members = range(len(design.groups.names))
        sides = [each for each in against_rest(members) if each.a in reported]
        tested_sides = sides[:1] if len(members) == 2 else sides
        tested = outcomes_of(
            evidence, design, values, tested_sides, _share_gap, draws=self.permutations
        )
        tests = contrasts(design, tested, gaps.take([each.a for each in tested_sides]))
        targets = [f"{self.attribute}={each}" for each in slots.values]
        names = {design.groups.names[each] for each in reported}
        found = figures.measurements(design, targets, tests)
        return [each for each in found if each.group in names]

    def _figures(
        self, evidence: Evidence, design: Design, values: FloatArray
    ) -> tuple[LabelFigures, Gaps]:
        """Return the scores of all label values, and the shares f that they are made of."""
        n_groups = len(design.groups.names)
        sizes = np.bincount(design.group, minlength=n_groups)[:, None]
        own = sizes * compute_group_means(values, design.group, n_groups)
        samples = sizes * bootstrap_means(evidence, design, values)
        scores = self._scored(own)
        held, without = design.count(values[:, -1:] > 0)
        n = np.where(np.isnan(scores), 0, held)
        counts = _split(own)
        figures = LabelFigures(
            values=scores,
            replicates=self._scored(samples),
            n=n,
            undefined=held + without - n,
            counts=np.stack([np.stack(counts[:2], -1), np.stack(counts[2:], -1)], axis=-2),
        )
        first, second = _shares(own)
        rare = np.isnan(scores)
        gap = np.subtract(*_shares(samples))
        return figures, Gaps(np.where(rare, np.nan, first), second, gap)

    def _scored(self, sums: FloatArray) -> FloatArray:
        return self._scores(*_split(sums))

    def _scores(self, *counts: FloatArray) -> FloatArray:
        """Return B from places at c under l and l', and places of any value under both."""
        at, at_other, places, places_other = (np.asarray(each) for each in counts)
        with np.errstate(invalid="ignore", divide="ignore"):
            share, other = at / places, at_other / places_other
            both = (at + at_other) / (places + places_other)
            ratio = self.form == "ratio"
            found = share / other if ratio else (share - other) / both
        rare = at + at_other < self.min_count
        return np.where(rare | np.isinf(found), np.nan, found)

    def _reported(self, groups: Groups) -> list[int]:
        """Return the label values that are reported."""
        if self.positive is None:
            return list(range(len(groups.names)))
        values = ["&".join(each) for each in groups.values]
        for place, names in enumerate(zip(values, groups.names, strict=True)):
            if self.positive in names:
                return [place]
        found = f"no query has the {self.label} {self.positive!r}"
        raise UnknownColumn(found, where="positive", remedy=suggest(self.positive, values))

    def _chosen(self, evidence: Evidence, slots: SlotCounts) -> SlotCounts:
        """Return the counts of the values that are reported, beside the places of all."""
        if self.only is None:
            return slots
        kept, unknown = self._asked(slots.values)
        if unknown and not isinstance(self.only, str):  # of a packaged list few are in any data
            what = f"no item has these {self.attribute} of only: {', '.join(unknown)}"
            warn(f"{evidence.metric}: {what}")
        return replace(
            slots,
            values=tuple(slots.values[each] for each in kept),
            counts=slots.counts[:, kept],
        )

    def _asked(self, values: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return which of the values are reported, and what ``only`` names beside them."""
        asked = packaged_values(self.only) if isinstance(self.only, str) else self.only or ()
        wanted = {each.casefold() for each in asked}
        kept = [place for place, each in enumerate(values) if each.casefold() in wanted]
        if not kept:
            close = dict.fromkeys(
                near for each in asked for near in find_nearest(each, values, limit=1)
            )
            remedy = f"did you mean {' or '.join(list(close)[:3])}?"
            remedy = remedy if close else suggest(" ".join(asked), values)
            found = f"no item has any of the {self.attribute} that only names"
            raise UnknownColumn(found, where="only", remedy=remedy)
        known = {values[each].casefold() for each in kept}
        return kept, [each for each in asked if each.casefold() not in known]

    def _say_rare(self, evidence: Evidence, totals: AnyArray) -> None:
        rare = int(np.count_nonzero(totals < self.min_count))
        if rare:
            what = f"stand in fewer than {self.min_count:,} places, and have no score"
            warn(f"{evidence.metric}: {rare:,} values of {self.attribute} {what}")


@cache
def packaged_values(name: str) -> tuple[str, ...]:
    """Return the attribute values of a packaged list, such as ``nightlife``."""
    text = files("recbias.metrics.prompts").joinpath("packaged", f"{name}.txt").read_text("utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def _split(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return places at each value under l and l', and of any value under both: ``[..., g, m]``."""
    at, places = sums[..., :-1], np.broadcast_to(sums[..., -1:], sums[..., :-1].shape)
    return (
        at,
        at.sum(axis=-2, keepdims=True) - at,
        places,
        places.sum(axis=-2, keepdims=True) - places,
    )


def _shares(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    at, at_other, places, places_other = _split(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        return at / places, at_other / places_other


def _share_gap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the difference of shares from means of (places at each value..., places)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(a[..., :-1] / a[..., -1:] - b[..., :-1] / b[..., -1:])
