"""Whether a stated identity changes the list beyond chance, and differently for each group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.errors import NothingLeft
from recbias.core.measurements.scores import Contrast, Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.identity.list_overlap import StatedIdentityMetric
from recbias.metrics.identity.stated_prompts import StatedPrompts, average_groups
from recbias.metrics.prompts.template_design import UnitChoice, build_design
from recbias.statistics.permutation.group_permutation import TestedSpread, permute_groups
from recbias.statistics.permutation.label_permutation import Permutations
from recbias.statistics.tests.paired import PairedT

STATED, CONTROL_SIDE = "all identities", "neutral sampled again"
"""The first side of the comparison for all groups together, and the second side of all."""


@dataclass(frozen=True, kw_only=True)
class IdentityEffect(StatedIdentityMetric):
    """How much a stated identity changes the list, beyond what the model changes by itself.

        effect(t) = gap(neutral, stated) - gap(neutral, neutral again),    gap = 1 - overlap

    ``t`` is a neutral prompt: the first gap is the mean over the prompts of ``t`` that state the
    identity, the second that over the further samples of ``t``. Both compare with the same first
    sample, so without an effect the mean is 0, however random the replies are; at temperature 0
    the second gap measures what the server does not reproduce. Returned are the mean over neutral
    prompts for all prompts with the label, and for each value of the label, with the t interval
    and Student's paired t-test. A neutral prompt is undefined if one of its gaps is.

    A mean above 0 whose interval excludes 0: the model reacts to the identity. The conclusion
    is about further neutral prompts with the same identities and words. The queries need
    ``control_samples``.

    Raises:
        NothingLeft: The neutral prompts are not sampled again.

    Range:
        -1 to 1; 0 without an effect.
    """

    direction: ClassVar[Direction] = "zero"

    def find_prompts(self, evidence: Evidence) -> StatedPrompts:
        """Return the prompts that state an identity."""
        stated = super().find_prompts(evidence)
        if not stated.control_rows.size:
            remedy = "add control_samples: 1 to the queries"
            raise NothingLeft("no neutral prompt is sampled again", where="neutral", remedy=remedy)
        return stated

    def _measure(
        self, stated: StatedPrompts, overlap: FloatArray, control: FloatArray
    ) -> Sequence[Measurement]:
        groups, n_pairs = stated.groups, stated.names.size
        noise = 1.0 - average_groups(control, stated.control_pairs, n_pairs)
        defined = noise[~np.isnan(noise)]
        if defined.size and (defined == 1.0).all():
            cause = "no neutral list shares an item with its control"
            warn(f"identity_effect: {cause}, so no effect of an identity could be seen")
        members = [(name, groups.codes == code) for code, name in enumerate(groups.names)]
        return [
            _measure_effect(
                stated,
                average_groups(1.0 - overlap[rows], stated.pairs[rows], n_pairs),
                noise,
                np.isin(np.arange(n_pairs), stated.pairs[rows]),
                group,
            )
            for group, rows in [("", groups.codes >= 0), *members]
        ]


def _measure_effect(
    stated: StatedPrompts, gaps: FloatArray, noise: FloatArray, rows: BoolArray, group: str
) -> Measurement:
    """Return the mean effect over the neutral prompts of a group, with its paired test."""
    sides = np.stack([gaps, noise])[:, rows]
    units = UnitScores(stated.unit, stated.names[rows], sides[0] - sides[1])
    columns = PairedT().pairs(sides, np.random.default_rng(0))  # the t test uses no randomness
    fields = {name: np.asarray(column).item() for name, column in columns.items()}
    fields |= {"a": group or STATED, "b": CONTROL_SIDE, "n": int(fields["n"])}
    test = Contrast(between="prompts", test="paired_t", **fields)
    return replace(Measurement.from_units(units, group=group), contrasts=(test,))


@dataclass(frozen=True, kw_only=True)
class OverlapSpread(StatedIdentityMetric):
    """How much the overlap with the neutral list differs between the groups.

        range = max_g m_g - min_g m_g,    std = √((1 / G) Σ_g (m_g - mean of m)²)

    m_g is the mean overlap (see ``list_overlap``) of the prompts of group g. ``range`` is SNSR and
    ``std`` SNSV of FaiRLLM, whose groups are the values of one sensitive attribute. Both are
    positive by chance, so there is no interval, but a permutation test over the labels: the
    p-value is the share of relabellings whose spread is at least as large. Where each value of the
    label has several names, labels are exchanged between names that occur in the same templates;
    otherwise between the prompts of one neutral prompt, so that differences between neutral
    prompts do not count. Undefined if a group has no defined overlap.

    Args:
        spread: The measure of spread.
        units: The units that labels are permuted over: ``name`` or ``template``; by default names,
            if each value of the label has several.
        words: The label with the words that carry the identity; by default it is detected.
        permutations: The number of sampled relabellings; fewer possible ones are all enumerated.

    Range:
        0 to 1; 0 if all groups have the same mean.
    """

    direction: ClassVar[Direction] = "lower"

    spread: Literal["range", "std"] = "range"
    units: UnitChoice = "auto"
    words: str | None = None
    permutations: Permutations = 10_000

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings of the tests, which do not change the value."""
        return frozenset({"permutations"})

    def _measure(
        self, stated: StatedPrompts, overlap: FloatArray, control: FloatArray
    ) -> Sequence[Measurement]:
        evidence, names = stated.evidence, stated.groups.names
        design = build_design(evidence, self.label, self.units, self.words)
        known = ~np.isnan(overlap) & (design.queries >= 0)
        columns = [np.where(known, overlap, 0.0), known]
        sums = np.stack(
            [
                np.bincount(design.queries[known], column[known], design.group.size)
                for column in columns
            ],
            axis=-1,
        )
        used = sums[:, 1] > 0
        groups = permute_groups(
            sums[used].astype(np.float64),
            design.group[used],
            design.stratum[used],
            n_groups=len(names),
            n_permutations=self.permutations,
            rng=evidence.rng(),
        )
        value = groups.range if self.spread == "range" else groups.std
        n = int(used.sum())
        return [
            Measurement(
                value=value.value,
                n=0 if math.isnan(value.value) else n,
                undefined=int(used.size) - n,
                contrasts=_build_contrasts(groups.means, value, names, n),
            )
        ]


def _build_contrasts(
    means: FloatArray, spread: TestedSpread, names: Sequence[str], n: int
) -> tuple[Contrast, ...]:
    """Return the permutation test of a spread, named by the groups that are furthest apart."""
    if np.isnan(means).any():
        return ()
    top, bottom = int(means.argmax()), int(means.argmin())
    return (
        Contrast(
            between="groups",
            a=names[top],
            b=names[bottom],
            test="permutation",
            n=n,
            mean_a=float(means[top]),
            mean_b=float(means[bottom]),
            difference=float(means[top] - means[bottom]),
            statistic=spread.value,
            p=spread.p,
        ),
    )
