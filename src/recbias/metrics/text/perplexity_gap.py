"""The difference in perplexity between sentences about two groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.errors import Contradiction, NothingLeft
from recbias.core.measurements.scores import Contrast, Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.text_outputs import SentenceScores
from recbias.core.queries.groups import JOIN, split_crossing
from recbias.metrics.text.sentence_pairs import (
    SentencePairs,
    build_pairs,
    group_sentences,
    read_sides,
    require_label,
    resolve_groups,
    split_pairs,
    warn_of_missing,
)
from recbias.numerics.perplexity import linearise_means, mark_within_deviations
from recbias.statistics.tests.paired import PairedT
from recbias.statistics.tests.unpaired import compute_moments, welch_contrasts

DEVIATIONS = 3
"""Values further than this from the mean of their group, in standard deviations, are outliers."""

TRIMMED = f"within {DEVIATIONS} sd"
"""The target of the estimate without outliers."""


@dataclass(frozen=True, kw_only=True)
class PerplexityGap:
    """The mean difference in perplexity between sentences about one group and about another.

        gap = (1/n) Σ_pairs ( PPL(x_a) - PPL(x_b) ),    PPL(x) = exp( -(1/m) Σ_i ln p(x_i | x_<i) )

    x_a and x_b are the copies of one sentence about the groups a and b, m the number of tokens
    scored. Above 0, sentences about a are less likely. With ``scale: log`` the difference is
    ln PPL(x_a) - ln PPL(x_b), which is robust to a few very unlikely sentences.

    There are two tests: ``paired_t`` over the pairs (Student's, two-sided) and ``welch_t`` over
    the two sets of sentences as independent samples, including unpaired sentences. The target
    ``within 3 sd`` repeats the measurement without outliers: values further than three population
    standard deviations from the mean of their group. There, the mean is that of the pairs without
    an outlier, and each set excludes its outliers only.

    The limits depend on the sample, so t-tests of the values that remain are liberal: in samples
    of 200 without a gap, 6% of paired tests and 9% of Welch's for independent sets are significant
    at the 5% level. By default the tests and intervals of ``within 3 sd`` are therefore of
    linearised values z_i = T + (influence of pair i on T), T the mean of the pairs that remain.
    Their mean is T and their variance accounts for the limits; ``per_unit.parquet`` holds them,
    also for pairs with an outlier. The differences of the pairs are those of all pairs.
    ``without_outliers: plain`` tests the values that remain, as the scripts of the authors do;
    there, a pair with an outlier is undefined.

    A pair that lacks a copy or a perplexity is undefined and counted in a warning. The paper does
    not specify the t-test; the code of its authors uses the paired test for all pairs, and Welch's
    test for the sets without outliers.

    Args:
        a: The first group; by default the first in natural order of the two that occur.
        b: The second group; by default the other.
        by: A column of the table (``category``), or a crossing of columns: estimates for each of
            its values follow those of all pairs.
        estimate: ``gap``, or ``t`` for the statistic of the paired test as the value, so that its
            mean and standard deviation over seeds stand in the tables. It has no values of pairs
            and no interval, and is undefined if all pairs differ by the same. Beside the same
            metric with ``gap``, the tests stand in ``significance.csv`` once, with the first.
        scale: ``perplexity``, or ``log`` to compare natural logarithms of perplexities.
        without_outliers: ``linearised``, the sound tests and intervals of ``within 3 sd``, or
            ``plain``, those of the authors' scripts, which are liberal. The estimate is the same.
        group_label: The column that ``a`` and ``b`` are values of; by default the group of a
            sentence. Where the groups differ between categories (female and male, old and young),
            name a column that is the same for all: ``group_label: target_set, a: T1, b: T2``.

    Raises:
        Contradiction: ``a`` and ``b`` are the same.
        UnknownIdentifier: No sentence has the named group, or more than two groups occur and
            none is named.
        NothingLeft: Fewer than two groups occur, or no pair is complete.
        UnknownColumn: The sentences have no column ``by`` or ``group_label``.
        BrokenContract: A pair has two copies of one group, or copies with different values of
            ``by``.

    Range:
        Any number; above 0 if sentences about a are less likely; undefined without pairs.

    Source:
        Zhao, Fang, Shi, Li, Chen and Pechenizkiy, "CHBias: Bias Evaluation and Mitigation of
        Chinese Conversational Language Models", ACL 2023, section 4; Barikeri et al.,
        "RedditBias", ACL 2021. Linearised values: Hampel, "The influence curve and its role in
        robust estimation", JASA 1974.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"sentence_scores"})
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "sentence_pair"
    after_tests: ClassVar[frozenset[str]] = frozenset({"estimate"})

    a: str | None = None
    b: str | None = None
    by: str | None = None
    scale: Literal["perplexity", "log"] = "perplexity"
    group_label: str | None = None
    estimate: Literal["gap", "t"] = "gap"
    without_outliers: Literal["linearised", "plain"] = "linearised"

    def __post_init__(self) -> None:
        """Validate the groups and the crossing."""
        if self.a is not None and self.a == self.b:
            message = f"a and b are both {self.a!r}"
            raise Contradiction(message, where="b", remedy="name two different groups")
        if self.by is not None:
            split_crossing(self.by)

    def check_labels(self, labels: Sequence[str]) -> None:
        """Raise an error if the sentences have no label ``by`` or ``group_label``."""
        require_label(self.by, labels, where="by")
        require_label(self.group_label, labels, where="group_label")

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the gap with and without outliers, then both for each value of ``by``."""
        evidence.need("sentence_scores")
        scores: SentenceScores = evidence.sentence_scores  # type: ignore[assignment]  # need() raises on None
        if self.group_label is not None:
            scores = replace(scores, groups=read_sides(scores, self.group_label))
        values = np.log(scores.perplexity) if self.scale == "log" else scores.perplexity
        pairs = build_pairs(scores, resolve_groups(scores, self.a, self.b))
        _require_complete_pair(scores, pairs)
        warn_of_missing(evidence.metric, scores, pairs)
        side_label = self.group_label or "group"
        measurements = self._measure_gaps(pairs, values, side_label, "")
        if self.by is not None:
            groups = group_sentences(scores, self.by, evidence.metric)
            for subset, name in split_pairs(pairs, groups):
                measurements += self._measure_gaps(subset, values, side_label, name)
        if self.estimate == "t":
            return [_replace_by_statistic(measurement) for measurement in measurements]
        return measurements

    def _measure_gaps(
        self, pairs: SentencePairs, values: FloatArray, label: str, group: str
    ) -> list[Measurement]:
        """Return the gap of some pairs with outliers, then without."""
        names = [JOIN.join(filter(None, (group, f"{label}={name}"))) for name in pairs.names]
        sides = (names[0], names[1])
        sets = [values[pairs.sides == side] for side in (0, 1)]
        copies = pairs.of(values)
        copies_within, sets_within = (
            _linearise(copies, sets)
            if self.without_outliers == "linearised"
            else _remove_outliers(pairs, values)
        )
        return [
            _measure_gap(pairs.ids, copies, sets, sides=sides, group=group),
            _measure_gap(
                pairs.ids, copies_within, sets_within, sides=sides, group=group, target=TRIMMED
            ),
        ]


def _replace_by_statistic(measurement: Measurement) -> Measurement:
    """Return the statistic of the paired test, the first contrast, as a value without units."""
    contrasts = measurement.contrasts
    t = contrasts[0].statistic
    return Measurement(
        value=t if math.isfinite(t) else math.nan,
        n=measurement.n,
        undefined=measurement.undefined,
        group=measurement.group,
        target=measurement.target,
        contrasts=contrasts,
    )


def _require_complete_pair(scores: SentenceScores, pairs: SentencePairs) -> None:
    if (pairs.rows >= 0).all(axis=0).any():
        return
    sentences = np.flatnonzero(pairs.sides >= 0)
    a, b = pairs.names
    message = (
        f"none of the {sentences.size:,} sentences of the groups {a!r} and {b!r} has a partner in "
        f"the other, the first is {scores.ids[sentences[0]]!r}"
    )
    raise NothingLeft(message, remedy="give the copies of one sentence the same pair_id")


def _remove_outliers(
    pairs: SentencePairs, values: FloatArray
) -> tuple[FloatArray, list[FloatArray]]:
    """Return the values of the copies and of both sets, NaN where they are outliers."""
    inside = np.full(values.size, np.nan)
    for side in (0, 1):
        sentences = np.flatnonzero(pairs.sides == side)
        kept = sentences[mark_within_deviations(values[sentences], DEVIATIONS)]
        inside[kept] = values[kept]
    return pairs.of(inside), [inside[pairs.sides == side] for side in (0, 1)]


def _linearise(copies: FloatArray, sets: list[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
    """Return the linearised values of the copies and of both sets, without outliers."""
    members = [values[~np.isnan(values)] for values in sets]
    is_complete = ~np.isnan(copies).any(axis=0)
    linear = np.full(copies.shape, np.nan)
    if is_complete.any():
        complete = copies[:, is_complete]
        linear[:, is_complete] = linearise_means(complete, complete, members, DEVIATIONS)
    return linear, [
        linearise_means(values[None], values[None], [values], DEVIATIONS)[0]
        if values.size
        else values
        for values in members
    ]


def _measure_gap(
    ids: AnyArray,
    copies: FloatArray,
    sets: list[FloatArray],
    *,
    sides: tuple[str, str],
    group: str,
    target: str = "",
) -> Measurement:
    """Return the gap of the pairs of which both copies have a value, with both tests."""
    units = UnitScores("sentence_pair", ids, copies[0] - copies[1])
    measurement = Measurement.from_units(units, group=group, target=target)
    codes = np.repeat([0, 1], [values.size for values in sets])
    moments = compute_moments(np.concatenate(sets), codes, 2)
    welch = welch_contrasts(sides, moments, between="groups")
    columns = PairedT().pairs(copies, np.random.default_rng(0))  # the t test uses no randomness
    fields = {name: np.asarray(column).item() for name, column in columns.items()}
    fields |= {"a": sides[0], "b": sides[1], "n": int(fields["n"])}
    paired = Contrast(between="groups", test="paired_t", **fields)
    return replace(measurement, contrasts=(paired, *welch))
