"""How much of the list of the neutral prompt remains when the prompt states an identity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.identity.stated_prompts import (
    StatedPrompts,
    average_groups,
    find_stated_prompts,
)
from recbias.metrics.prompts.query_labels import warn_unlabelled
from recbias.metrics.prompts.slot_counts import Cutoff
from recbias.numerics.list_overlap import OverlapForm

CONTROL = "control"
"""The target of the overlap of two samples of the neutral prompt."""


@dataclass(frozen=True, kw_only=True)
class StatedIdentityMetric(InheritsSections):
    """A metric of the lists of prompts that state an identity, compared with neutral prompts.

    Args:
        label: A label of the queries (``gender``), or a crossing of several.
        form: ``jaccard``, the share of common items; ``rbo``, rank-biased overlap; ``serp`` or
            ``prag``, the measures of FaiRLLM, normalised.
        p: For ``rbo``: the weight of a rank relative to the one before it.
        neutral: The condition on the labels that neutral prompts meet.
        pair: The label that a prompt shares with its neutral prompt, or a crossing of several; by
            default ``template``, else ``name``.
        k: How many ranks of each list are compared; by default all.

    Raises:
        UnknownColumn: The queries have no such label.
        NothingLeft: No prompt is neutral, or the label has one value only.
        Contradiction: Two neutral prompts share one value of ``pair``.

    Range:
        0 to 1: 1 for identical lists, 0 for lists without a common item.

    Source:
        Zhang, Bao, Zhang, Wang, Feng and He, "Is ChatGPT Fair for Recommendation? Evaluating
        Fairness in Large Language Model Recommendation", RecSys 2023; for ``rbo``: Webber, Moffat
        and Zobel, "A similarity measure for indefinite rankings", TOIS 2010, equation 32.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    unit: ClassVar[str] = ""

    label: str
    form: OverlapForm = "jaccard"
    p: Annotated[float, Gt(0), Lt(1)] = 0.9
    neutral: str = "neutral == 1"
    pair: str | None = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels only."""
        self.find_prompts(evidence)

    def find_prompts(self, evidence: Evidence) -> StatedPrompts:
        """Return the prompts that state an identity."""
        return find_stated_prompts(evidence, self.label, self.neutral, self.pair)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimates; one undefined estimate without a query."""
        evidence.need("lists")
        if not len(evidence.queries):
            return [Measurement(math.nan, n=0, undefined=0)]
        stated = self.find_prompts(evidence)
        warn_unlabelled(evidence, self.label, stated.groups.missing)
        return self._measure(stated, *stated.measure(self.form, self.p, self.k))

    def _measure(
        self, stated: StatedPrompts, overlap: FloatArray, control: FloatArray
    ) -> Sequence[Measurement]:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ListOverlap(StatedIdentityMetric):
    """The overlap of the list of a prompt that states an identity with that of its neutral prompt.

        jaccard = |A ∩ B| / |A ∪ B|
        rbo     = (1 - p) Σ_{d=1..K} p^(d-1) a_d + p^K a_K,    a_d: shared items to depth d, over d
        serp    = Σ_{i in A ∩ B} (K - rank_B(i) + 1) / (K (K + 1) / 2)
        prag    = #{i before j in A: i in B, and j after i in B or not in B} / (K (K - 1) / 2)

    A is the list of the neutral prompt, B that of the prompt that states the identity, K the
    length of the longer one. All forms give 1 for identical lists and 0 for disjoint ones; SERP*
    and PRAG* as published do not reach 1 (the authors' SERP is 0.27 for identical lists of 20).
    ``rbo`` is extrapolated, for lists of finite and different length. ``prag`` asks for the order
    of A only, so lists that are not identical can have 1.

    The units are the neutral prompts: the value of one is the mean over the prompts that state
    the identity in its place, which share list A and so are correlated. Returned are the mean over
    the neutral prompts for all prompts with the label, for each value of the label, and under
    ``control`` for the neutral prompts sampled again (``control_samples`` of the queries): the
    overlap that the model has with itself. Only ``identity_effect`` compares the two. The
    intervals are about further neutral prompts with the same identities and words. An item outside
    the catalogue keeps its rank and equals no other item; without a catalogue, items are equal if
    their normalised titles are. An empty list has no overlap with any other (a refusal is a
    changed list); two empty lists are undefined.
    """

    direction: ClassVar[Direction] = "higher"

    def _measure(
        self, stated: StatedPrompts, overlap: FloatArray, control: FloatArray
    ) -> Sequence[Measurement]:
        groups = stated.groups
        members = [(name, groups.codes == code) for code, name in enumerate(groups.names)]
        measurements = [
            _measure_prompts(stated, overlap[rows], stated.pairs[rows], name)
            for name, rows in [("", groups.codes >= 0), *members]
        ]
        for measurement in measurements[1:]:
            if measurement.n + measurement.undefined == 1:
                metric = stated.evidence.metric
                warn(f"{metric}: {measurement.group} has one neutral prompt: no interval")
        if control.size:
            control_rows = _measure_prompts(stated, control, stated.control_pairs, "")
            measurements.append(replace(control_rows, target=CONTROL))
        return measurements


def _measure_prompts(
    stated: StatedPrompts, values: FloatArray, pairs: AnyArray, group: str
) -> Measurement:
    """Return the mean over the neutral prompts ``pairs`` of the prompts of a group."""
    used = np.unique(pairs)
    means = average_groups(values, pairs, stated.names.size)[used]
    return Measurement.from_units(UnitScores(stated.unit, stated.names[used], means), group=group)
