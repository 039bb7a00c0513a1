"""The difference in perplexity between paired sentences about two groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Attributes, FloatArray, Ids, Vocabulary
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    NothingLeft,
    UnknownColumn,
    UnknownIdentifier,
)
from recbias.core.evidence import Evidence, Responses, SentenceScores
from recbias.core.grouping import JOIN, Groups, group_by, split_crossing
from recbias.core.measures import Direction, Measurement, UnitScores
from recbias.core.text import suggest
from recbias.language.likelihood import linearise_means, mark_within_deviations
from recbias.statistics.groups import compute_moments, welch_contrasts
from recbias.statistics.paired import compare_sides


@dataclass(frozen=True, eq=False)
class _SentencePairs:
    """The sentences of two groups, and which of them are copies of each other.

    Args:
        names: The two groups.
        ids: The identifiers of the p pairs.
        rows: The rows of the copies in the table of sentences, ``int[2, p]``; -1 where a copy is
            missing.
        sides: The group of each sentence: 0 for the first, 1 for the second, -1 for any other.
    """

    names: tuple[str, str]
    ids: AnyArray
    rows: AnyArray
    sides: AnyArray

    def of(self, values: FloatArray) -> FloatArray:
        """Return the value of each copy, ``float64[2, p]``; NaN where a copy is missing."""
        return np.where(self.rows >= 0, np.append(values, np.nan)[self.rows], np.nan)


def resolve_groups(scores: SentenceScores, a: str | None, b: str | None) -> tuple[str, str]:
    """Return the two groups to compare: those named, or the two that occur in natural order.

    Raises:
        UnknownIdentifier: No sentence has a named group, or more than two groups occur.
        NothingLeft: Fewer than two groups occur.
    """
    present = [group for group in Vocabulary.of(scores.groups).ids.tolist() if group]
    for name, side in (("a", a), ("b", b)):
        if side is not None and side not in present:
            message = f"{name}: no sentence is of the group {side!r}"
            raise UnknownIdentifier(message, remedy=suggest(side, present))
    if a is not None and b is not None:
        return a, b
    if len(present) < 2:
        message = f"the sentences are of {len(present)} group(s), where a gap needs two"
        raise NothingLeft(message, remedy="set the group of each copy of a sentence")
    if len(present) > 2:
        message = f"the sentences are of {len(present)} groups: {', '.join(present[:12])}"
        remedy = (
            "name the two groups to compare: a: ..., b: ..., or a group_label: with two values"
        )
        raise UnknownIdentifier(message, remedy=remedy)
    first = a if a is not None else next(group for group in present if group != b)
    return first, b if b is not None else next(group for group in present if group != first)


def _read_sides(scores: SentenceScores, label: str) -> Ids:
    """Return a label of the sentences as text, "" where it is missing.

    Raises:
        UnknownColumn: The sentences have no such column.
    """
    names = [str(name) for name in scores.labels.columns]
    if label not in names:
        message = f"the sentences have no column {label!r}"
        raise UnknownColumn(message, where="group_label", remedy=suggest(label, names))
    column = scores.labels[label]
    return column.astype(object).where(column.notna(), "").map(str).to_numpy(dtype=object)


def build_pairs(scores: SentenceScores, names: tuple[str, str]) -> _SentencePairs:
    """Return the pairs of two groups, in the natural order of their identifiers.

    Raises:
        BrokenContract: A pair has two sentences of one group.
    """
    sides = np.where(scores.groups == names[0], 0, np.where(scores.groups == names[1], 1, -1))
    has_pair = np.array([pair_id is not None for pair_id in scores.pairs], dtype=bool)
    paired = np.flatnonzero((sides >= 0) & has_pair)
    pairs, codes = Vocabulary.encode(scores.pairs[paired])
    keys = codes.astype(np.int64) * 2 + sides[paired]
    duplicates = np.flatnonzero(np.bincount(keys, minlength=1) > 1)
    if duplicates.size:
        pair, name = pairs.ids[duplicates[0] // 2], names[duplicates[0] % 2]
        raise BrokenContract(f"pair {pair!r} has two sentences of the group {name!r}")
    rows = np.full(2 * len(pairs), -1, dtype=np.int64)
    rows[keys] = paired
    return _SentencePairs(names, pairs.ids, rows.reshape(-1, 2).T, sides)


def warn_of_missing(metric: str, scores: SentenceScores, pairs: _SentencePairs) -> None:
    """Warn about missing copies, pairs and perplexities, with the number of each."""
    total, incomplete = pairs.ids.size, np.flatnonzero((pairs.rows < 0).any(axis=0))
    if incomplete.size:
        first = pairs.ids[incomplete[0]]
        warn(
            f"{metric}: {incomplete.size:,} of {total:,} pairs lack a copy, the first is {first!r}"
        )
    has_no_pair = np.array([pair_id is None for pair_id in scores.pairs], dtype=bool)
    unpaired = (pairs.sides >= 0) & has_no_pair
    if unpaired.any():
        warn(f"{metric}: {int(unpaired.sum()):,} sentences are of no pair")
    unknown = np.flatnonzero((pairs.sides >= 0) & np.isnan(scores.perplexity))
    if unknown.size:
        first = scores.ids[unknown[0]]
        warn(f"{metric}: {unknown.size:,} sentences have no perplexity, the first is {first!r}")


def require_label(
    by: str | None, names: Sequence[str], noun: str = "sentence", where: str = ""
) -> None:
    """Raise UnknownColumn unless sentences or responses have a label, or those of a crossing."""
    for label in split_crossing(by) if by is not None else ():
        if label.isidentifier() and label not in names:
            message = f"the {noun}s have no column {label!r}"
            remedy = suggest(label, names) if names else f"give their table a column {label!r}"
            raise UnknownColumn(message, where=where, remedy=remedy)


def group_sentences(
    scored: SentenceScores | Responses, by: str, metric: str, noun: str = "sentence"
) -> Groups:
    """Return the group of each sentence or response by a label, or a crossing of labels.

    Raises:
        UnknownColumn: They have no such column.
        NothingLeft: None has the label.
    """
    require_label(by, [str(name) for name in scored.labels.columns], noun)
    groups = group_by(Attributes(Vocabulary(scored.ids), scored.labels, noun), by)
    if groups.missing:
        warn(f"{metric}: {groups.missing:,} {noun}s have no label {by!r}")
    return groups


def split_pairs(pairs: _SentencePairs, groups: Groups) -> Iterator[tuple[_SentencePairs, str]]:
    """Yield the pairs of each group and the name of the group.

    Raises:
        BrokenContract: The copies of a pair are in different groups.
    """
    codes = np.where(pairs.rows >= 0, groups.codes[pairs.rows], -1)
    mixed = np.flatnonzero((codes[0] != codes[1]) & (pairs.rows >= 0).all(axis=0))
    if mixed.size:
        message = f"the copies of pair {pairs.ids[mixed[0]]!r} differ in {groups.by!r}"
        raise BrokenContract(message, remedy="use a label that both copies of a sentence share")
    for code, name in enumerate(groups.names):
        in_group = codes.max(axis=0, initial=-1) == code
        sides = np.where(groups.codes == code, pairs.sides, -1)
        ids, rows = pairs.ids[in_group], pairs.rows[:, in_group]
        yield replace(pairs, ids=ids, rows=rows, sides=sides), name


_DEVIATIONS = 3
"""Values further than this from the mean of their group, in standard deviations, are outliers."""

TRIMMED = f"within {_DEVIATIONS} sd"
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
            scores = replace(scores, groups=_read_sides(scores, self.group_label))
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
        self, pairs: _SentencePairs, values: FloatArray, label: str, group: str
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


def _require_complete_pair(scores: SentenceScores, pairs: _SentencePairs) -> None:
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
    pairs: _SentencePairs, values: FloatArray
) -> tuple[FloatArray, list[FloatArray]]:
    """Return the values of the copies and of both sets, NaN where they are outliers."""
    inside = np.full(values.size, np.nan)
    for side in (0, 1):
        sentences = np.flatnonzero(pairs.sides == side)
        kept = sentences[mark_within_deviations(values[sentences], _DEVIATIONS)]
        inside[kept] = values[kept]
    return pairs.of(inside), [inside[pairs.sides == side] for side in (0, 1)]


def _linearise(copies: FloatArray, sets: list[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
    """Return the linearised values of the copies and of both sets, without outliers."""
    members = [values[~np.isnan(values)] for values in sets]
    is_complete = ~np.isnan(copies).any(axis=0)
    linear = np.full(copies.shape, np.nan)
    if is_complete.any():
        complete = copies[:, is_complete]
        linear[:, is_complete] = linearise_means(complete, complete, members, _DEVIATIONS)
    return linear, [
        linearise_means(values[None], values[None], [values], _DEVIATIONS)[0]
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
    paired = compare_sides(copies, sides, between="groups")
    return replace(measurement, contrasts=(paired, *welch))
