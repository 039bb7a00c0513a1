"""Whether a stated identity changes the list of a prompt beyond chance, and for each group.

Each prompt that states an identity is paired with the same prompt without it; their lists are
compared by Jaccard, rank-biased overlap, and the measures of FaiRLLM.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Gt, Lt

from recbias.core.context import warn
from recbias.core.dataset import SAMPLE, AnyArray, Attributes, BoolArray, FloatArray, Ids
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn, at_setting
from recbias.core.evidence import Evidence
from recbias.core.grouping import Groups, group_by, match_rows, split_crossing
from recbias.core.measures import CONTROL, Contrast, Direction, Measurement, UnitScores
from recbias.core.plugins import OnlyWith
from recbias.metrics.base import Cutoff
from recbias.metrics.templates.design import (
    TEMPLATE,
    UnitChoice,
    build_design,
    group_queries,
    warn_unlabelled,
)
from recbias.statistics.paired import compare_sides
from recbias.statistics.permutation import Permutations, permute_groups

OverlapForm: TypeAlias = Literal["jaccard", "rbo", "serp", "prag"]
"""The measures of overlap."""

INVALID = -2
"""An entry that keeps its rank and equals no other; -1 is the end of a list."""

_BLOCK_CELLS = 2**23
"""The number of pairs of ranks that are compared at once."""


@dataclass(frozen=True, eq=False)
class _RankedPairs:
    """Pairs of lists, as the rank in the second list of each entry of the first.

    Args:
        ranks: The rank in the second list, from 0, ``int[q, k]``; k if the entry is not there.
        n_first: The length of the first list, ``int[q]``.
        n_second: The length of the second list, ``int[q]``.
    """

    ranks: AnyArray
    n_first: AnyArray
    n_second: AnyArray

    @classmethod
    def from_lists(cls, first: AnyArray, second: AnyArray) -> _RankedPairs:
        """Return the pairs of the rows of two tables of codes, ``int[q, k]`` both."""
        k = first.shape[1]
        is_same = (first[:, :, None] == second[:, None, :]) & (first >= 0)[:, :, None]
        ranks = np.where(is_same.any(axis=2), is_same.argmax(axis=2), k)
        return cls(ranks, (first != -1).sum(axis=1), (second != -1).sum(axis=1))

    @property
    def is_shared(self) -> BoolArray:
        """Which entries of the first list are in the second, ``bool[q, k]``."""
        return np.asarray(self.ranks < self.ranks.shape[1])

    @property
    def longest(self) -> AnyArray:
        """The length of the longer list, ``int[q]``."""
        return np.asarray(np.maximum(self.n_first, self.n_second))


def measure_overlap(
    first: AnyArray, second: AnyArray, form: OverlapForm, *, p: float = 0.9
) -> FloatArray:
    """Return the overlap of each pair of lists: 1 for identical lists, 0 for disjoint ones.

    NaN if both lists are empty. With n and m the lengths of the lists and K the larger one:

        jaccard = |A ∩ B| / |A ∪ B|
        rbo     = (1 - p) Σ_{d=1..K} p^(d-1) a_d + p^K a_K,    a_d: shared items to depth d, over d
        serp    = Σ_{i in A ∩ B} (K - rank_B(i) + 1) / (K (K + 1) / 2)
        prag    = #{i before j in B: i in A, and j after i in A or not in A} / (K (K - 1) / 2)

    ``rbo`` is the extrapolated form for lists of finite and different length (Webber et al. 2010,
    equation 32). ``serp`` and ``prag`` are SERP* and PRAG* of Zhang et al. 2023 divided by their
    value for identical lists; ``prag`` treats ranks beyond the end of B as items that are not in
    A, so that it is defined for lists of one item. Neither is symmetric: A is the list that
    is compared with.

    Args:
        first: The lists A, ``int[q, k]``: codes from 0; -1 is the end of a list, and ``INVALID``
            an entry that equals no other.
        second: The lists B, of the same shape.
        form: The measure.
        p: The weight of a rank of ``rbo`` relative to the one before it.

    >>> a, b = np.array([[1, 2, 3]]), np.array([[2, 1, 4]])
    >>> forms = ("jaccard", "serp", "prag")
    >>> [round(measure_overlap(a, b, form).item(), 3) for form in forms]  # 2/4, (2+3)/6, 2/3
    [0.5, 0.833, 0.667]
    """
    if form == "prag":
        first, second = second, first  # the pairs are those of B
    measures: dict[str, Callable[[_RankedPairs], FloatArray]] = {
        "jaccard": _measure_jaccard,
        "rbo": partial(_measure_rbo, p=p),
        "serp": _measure_serp,
        "prag": _measure_prag,
    }
    size = max(1, _BLOCK_CELLS // max(first.shape[1] + 1, 1) ** 2)
    starts = range(0, len(first), size)
    blocks = [slice(start, start + size) for start in starts]
    pairs = [_RankedPairs.from_lists(first[block], second[block]) for block in blocks]
    return np.concatenate([np.empty(0), *map(measures[form], pairs)])


def _divide(numerator: AnyArray, denominator: AnyArray, pairs: _RankedPairs) -> FloatArray:
    """Return the quotient; NaN where both lists are empty."""
    undefined = np.full(pairs.longest.shape, np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=pairs.longest > 0))


def _measure_jaccard(pairs: _RankedPairs) -> FloatArray:
    n_shared = pairs.is_shared.sum(axis=1)
    return _divide(n_shared, pairs.n_first + pairs.n_second - n_shared, pairs)


def _measure_serp(pairs: _RankedPairs) -> FloatArray:
    longest = pairs.longest
    gains = np.where(pairs.is_shared, longest[:, None] - pairs.ranks, 0).sum(axis=1)
    return _divide(gains, longest * (longest + 1) / 2, pairs)


def _measure_prag(pairs: _RankedPairs) -> FloatArray:
    k = pairs.ranks.shape[1]
    ranks = np.pad(pairs.ranks, ((0, 0), (0, 1)), constant_values=k)
    n_ranks = np.maximum(pairs.longest, 2)
    is_kept = np.triu(ranks[:, :, None] < ranks[:, None, :], 1)
    is_kept &= np.arange(k + 1) < n_ranks[:, None, None]
    return _divide(is_kept.sum(axis=(1, 2)), n_ranks * (n_ranks - 1) / 2, pairs)


def _measure_rbo(pairs: _RankedPairs, p: float) -> FloatArray:
    k, longest = pairs.ranks.shape[1], pairs.longest
    shortest = np.minimum(pairs.n_first, pairs.n_second)
    depths = np.arange(1, k + 1)
    joined = np.where(pairs.is_shared, np.maximum(pairs.ranks, np.arange(k)), k)
    n_shared = (joined[:, :, None] < depths).sum(axis=1)
    at_end = np.take_along_axis(n_shared, np.maximum(shortest, 1)[:, None] - 1, axis=1)
    beyond = np.maximum(depths - shortest[:, None], 0)
    extrapolated = np.where(shortest > 0, 1 / np.maximum(shortest, 1), 0)[:, None] * at_end
    agreement = (n_shared + beyond * extrapolated) / depths
    weights = np.where(depths <= longest[:, None], (1 - p) * p ** (depths - 1.0), 0.0)
    weights[depths == longest[:, None]] += p ** longest[longest > 0]
    return _divide((weights * agreement).sum(axis=1), weights.sum(axis=1), pairs)


def measure_mean_jaccard(lists: AnyArray) -> FloatArray:
    """Return the mean Jaccard index of each list and all other lists, ``float64[q]``.

        J_u = 1 / (m - 1) Σ_{v ≠ u} |L_u ∩ L_v| / |L_u ∪ L_v|,    m: the number of lists

    Order and repetitions in a list do not count. NaN for an empty list, which is not among the
    others either, and if there is no other list. Pairs are formed in blocks: the time grows with
    the square of the number of lists.

    Args:
        lists: Codes from 0, ``int[q, k]``; -1 is an empty position.

    >>> lists = np.array([[0, 1], [1, 0], [1, 2], [-1, -1]])
    >>> measure_mean_jaccard(lists).round(4).tolist()  # (1 + 1/3) / 2 twice, (1/3 + 1/3) / 2
    [0.6667, 0.6667, 0.3333, nan]
    """
    from scipy.sparse import csr_array

    filled = lists >= 0
    rows = np.flatnonzero(filled.any(axis=1))
    means = np.full(len(lists), np.nan)
    if rows.size < 2:
        return means
    starts = np.concatenate([[0], np.cumsum(filled[rows].sum(axis=1))])
    codes = lists[rows][filled[rows]]
    shape = (rows.size, int(codes.max()) + 1)
    members = csr_array((np.ones(codes.size), codes, starts), shape=shape)
    members.sum_duplicates()
    members.data[:] = 1.0
    sizes, by_item = np.diff(members.indptr), members.T.tocsr()
    step = max(1, _BLOCK_CELLS // rows.size)
    for start in range(0, rows.size, step):
        block = slice(start, start + step)
        shared = (members[block] @ by_item).toarray()
        jaccard = shared / (sizes[block, None] + sizes - shared)
        means[rows[block]] = (jaccard.sum(axis=1) - 1.0) / (rows.size - 1)
    return means


_PAIR_COLUMNS = (TEMPLATE, "name")
"""The labels that a prompt shares with its neutral prompt; the first that the queries have."""

_REMEDY = "give the queries neutral prompts: neutral: true, or the file of FaiRLLM with neutral"


@dataclass(frozen=True, eq=False)
class _StatedPrompts:
    """The prompts that state an identity and have a neutral prompt.

    Args:
        evidence: The evidence, whose queries are these prompts only, with the name of the neutral
            prompt as ``template``.
        groups: The value of the label of each prompt.
        unit: The label that a prompt shares with its neutral prompt.
        names: The name of each neutral prompt, ``object[t]``.
        pairs: The neutral prompt of each prompt, ``int[s]``, from 0.
        rows: The query of each prompt, ``int[s]``.
        neutral: The query of each neutral prompt, ``int[t]``; -1 if a name has none.
        control_rows: The queries that are neutral prompts sampled again, ``int[r]``.
        control_pairs: The neutral prompt of each of them, ``int[r]``.
    """

    evidence: Evidence
    groups: Groups
    unit: str
    names: Ids
    pairs: AnyArray
    rows: AnyArray
    neutral: AnyArray
    control_rows: AnyArray
    control_pairs: AnyArray

    def measure(self, form: OverlapForm, p: float, k: int | None) -> tuple[FloatArray, FloatArray]:
        """Return the overlap with the first sample of the neutral prompt.

        Returns:
            That of each prompt, ``float64[s]``, and that of each further sample, ``float64[r]``.
        """
        items = _read_items(self.evidence, k)
        return (
            measure_overlap(items[self.neutral[self.pairs]], items[self.rows], form, p=p),
            measure_overlap(
                items[self.neutral[self.control_pairs]], items[self.control_rows], form, p=p
            ),
        )


def _average_groups(values: FloatArray, groups: AnyArray, n_groups: int) -> FloatArray:
    """Return the mean of the defined values of each group, ``float64[g]``; NaN without any."""
    known = ~np.isnan(values)
    totals = np.bincount(groups[known], weights=values[known], minlength=n_groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(totals / np.bincount(groups[known], minlength=n_groups))


def _read_items(evidence: Evidence, k: int | None) -> AnyArray:
    """Return the items of the lists; an item outside the catalogue equals no other.

    Without a catalogue all items are outside of it, and are equal if their identifiers are.
    """
    items = evidence.ranked.items
    if len(evidence.item_ids):
        items = np.where(evidence.ranked.filled & ~evidence.in_catalogue, INVALID, items)
    return items[:, :k]


def _find_stated_prompts(
    evidence: Evidence, label: str, neutral: str, pair: str | None
) -> _StatedPrompts:
    """Return the prompts that state an identity.

    Args:
        evidence: The queries.
        label: The label, condition or crossing of several.
        neutral: The condition that neutral prompts meet.
        pair: The label that a prompt shares with its neutral prompt; None for the first of
            ``template`` and ``name`` that the queries have.

    Raises:
        UnknownColumn: The queries lack a label; ``where`` is the setting at fault.
        NothingLeft: There is no neutral prompt, no prompt with one, or a label has one value only.
        Contradiction: Two neutral prompts have the same ``pair``.
    """
    labels = evidence.queries.labels
    with at_setting("neutral"):
        try:
            is_neutral = np.asarray(match_rows(neutral, labels))
        except UnknownColumn as error:
            raise UnknownColumn(error.message, remedy=_REMEDY) from error
        if not is_neutral.any():
            raise NothingLeft(f"no query is neutral ({neutral})", remedy=_REMEDY)
    unit = pair or next((name for name in _PAIR_COLUMNS if name in labels.names), "")
    with at_setting("pair"):
        if not unit:
            message = f"the queries have no label {' or '.join(map(repr, _PAIR_COLUMNS))}"
            raise UnknownColumn(message, remedy="name the label that neutral prompts share")
        pairs = group_by(labels, unit)
    samples = labels.numbers(SAMPLE) if SAMPLE in labels.names else np.zeros(len(evidence.queries))
    neutral_rows = _index_neutral(pairs, np.flatnonzero(is_neutral & (samples == 0)))
    has_neutral = neutral_rows[pairs.codes] >= 0
    is_stated = ~is_neutral & (samples == 0)
    rows = np.flatnonzero(is_stated & has_neutral)
    if not rows.size:
        message = "no prompt that states an identity has a neutral prompt"
        raise NothingLeft(message, where="pair", remedy=_REMEDY)
    if n_excluded := int(np.count_nonzero(is_stated & ~has_neutral)):
        warn(f"{evidence.metric}: {n_excluded:,} prompts without a neutral prompt are excluded")
    control_rows = np.flatnonzero(is_neutral & (samples > 0) & has_neutral)
    names = np.array(pairs.names, dtype=object)
    queries = evidence.queries.take(rows)
    excluded = [*{*split_crossing(unit)} - {*split_crossing(label)}]
    frame = queries.labels.frame.reset_index(drop=True).drop(columns=excluded, errors="ignore")
    frame = frame.assign(**{TEMPLATE: pd.Series(names[pairs.codes[rows]])})
    named = Attributes(queries.ids, frame, queries.labels.kind)
    stated = replace(evidence, queries=replace(queries, labels=named))
    return _StatedPrompts(
        evidence=stated,
        groups=group_queries(stated, label),
        unit=unit,
        names=names,
        pairs=pairs.codes[rows],
        rows=rows,
        neutral=neutral_rows,
        control_rows=control_rows,
        control_pairs=pairs.codes[control_rows],
    )


def _index_neutral(pairs: Groups, rows: AnyArray) -> AnyArray:
    """Return the neutral query of each pair, then -1 for queries without the label; -1 is none."""
    rows = rows[pairs.codes[rows] >= 0]
    counts = np.bincount(pairs.codes[rows], minlength=len(pairs.names))
    if (counts > 1).any():
        name = pairs.names[int(counts.argmax())]
        message = f"{counts.max()} neutral prompts have {name}"
        remedy = "name the labels that a prompt shares with one neutral prompt: template & name"
        raise Contradiction(message, where="pair", remedy=remedy)
    neutral = np.full(len(pairs.names) + 1, -1)
    neutral[pairs.codes[rows]] = rows
    return neutral


_CONTROL = "control"
"""The target of the overlap of two samples of the neutral prompt."""


@dataclass(frozen=True, kw_only=True)
class _StatedIdentityMetric(InheritsSections):
    """A metric of the lists of prompts that state an identity, compared with neutral prompts.

    Args:
        label: A label of the queries (``gender``), or a crossing of several.
        form: ``jaccard``, the share of common items; ``rbo``, rank-biased overlap; ``serp`` or
            ``prag``, the measures of FaiRLLM, normalised.
        p: The weight of a rank relative to the one before it.
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
    p: Annotated[float, Gt(0), Lt(1), OnlyWith("form", "rbo")] = 0.9
    neutral: str = "neutral == 1"
    pair: str | None = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels only."""
        self.find_prompts(evidence)

    def find_prompts(self, evidence: Evidence) -> _StatedPrompts:
        """Return the prompts that state an identity."""
        return _find_stated_prompts(evidence, self.label, self.neutral, self.pair)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimates; one undefined estimate without a query."""
        evidence.need("lists")
        if not len(evidence.queries):
            return [Measurement(math.nan, n=0, undefined=0)]
        stated = self.find_prompts(evidence)
        warn_unlabelled(evidence, self.label, stated.groups.missing)
        return self._measure(stated, *stated.measure(self.form, self.p, self.k))

    def _measure(
        self, stated: _StatedPrompts, overlap: FloatArray, control: FloatArray
    ) -> Sequence[Measurement]:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ListOverlap(_StatedIdentityMetric):
    """The overlap of the list of a prompt that states an identity with that of its neutral prompt.

        jaccard = |A ∩ B| / |A ∪ B|
        rbo     = (1 - p) Σ_{d=1..K} p^(d-1) a_d + p^K a_K,    a_d: shared items to depth d, over d
        serp    = Σ_{i in A ∩ B} (K - rank_B(i) + 1) / (K (K + 1) / 2)
        prag    = #{i before j in B: i in A, and j after i in A or not in A} / (K (K - 1) / 2)

    A is the list of the neutral prompt, B that of the prompt that states the identity, K the
    length of the longer one. All forms give 1 for identical lists and 0 for disjoint ones; SERP*
    and PRAG* as published do not reach 1 (the authors' SERP is 0.27 for identical lists of 20).
    ``rbo`` is extrapolated, for lists of finite and different length. ``prag`` takes
    the pairs of B, as the authors' code does, and asks for their order only, so lists that are not
    identical can have 1.

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
        self, stated: _StatedPrompts, overlap: FloatArray, control: FloatArray
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
            measurements.append(replace(control_rows, target=_CONTROL))
        return measurements


def _measure_prompts(
    stated: _StatedPrompts, values: FloatArray, pairs: AnyArray, group: str
) -> Measurement:
    """Return the mean over the neutral prompts ``pairs`` of the prompts of a group."""
    used = np.unique(pairs)
    means = _average_groups(values, pairs, stated.names.size)[used]
    return Measurement.from_units(UnitScores(stated.unit, stated.names[used], means), group=group)


_STATED = "all identities"
"""The first side of the comparison for all groups together."""


@dataclass(frozen=True, kw_only=True)
class IdentityEffect(_StatedIdentityMetric):
    """How much a stated identity changes the list, beyond what the model changes by itself.

        effect(t) = gap(neutral, stated) - gap(neutral, neutral again),    gap = 1 - overlap

    ``t`` is a neutral prompt: the first gap is the mean over the prompts of ``t`` that state the
    identity, the second that over the further samples of ``t``. Both compare with the same first
    sample, so without an effect the mean is 0, however random the replies are; at temperature 0
    the second gap measures what the server does not reproduce. Returned are the mean over neutral
    prompts for all prompts with the label, and for each value of the label, with the t interval
    and Student's paired t-test; if the effect of all prompts is the same and not 0, p is that of
    their signs, 2 / 2ⁿ. A neutral prompt is undefined if one of its gaps is.

    A mean above 0 whose interval excludes 0: the model reacts to the identity. The conclusion
    is about further neutral prompts with the same identities and words. The queries need
    ``control_samples``.

    Raises:
        NothingLeft: The neutral prompts are not sampled again.

    Range:
        -1 to 1; 0 without an effect.
    """

    direction: ClassVar[Direction] = "zero"

    def find_prompts(self, evidence: Evidence) -> _StatedPrompts:
        """Return the prompts that state an identity."""
        stated = super().find_prompts(evidence)
        if not stated.control_rows.size:
            remedy = "add control_samples: 1 to the queries"
            raise NothingLeft("no neutral prompt is sampled again", where="neutral", remedy=remedy)
        return stated

    def _measure(
        self, stated: _StatedPrompts, overlap: FloatArray, control: FloatArray
    ) -> Sequence[Measurement]:
        groups, n_pairs = stated.groups, stated.names.size
        noise = 1.0 - _average_groups(control, stated.control_pairs, n_pairs)
        defined = noise[~np.isnan(noise)]
        if defined.size and (defined == 1.0).all():
            cause = "no neutral list shares an item with its control"
            warn(f"identity_effect: {cause}, so no effect of an identity could be seen")
        members = [(name, groups.codes == code) for code, name in enumerate(groups.names)]
        return [
            _measure_effect(
                stated,
                _average_groups(1.0 - overlap[rows], stated.pairs[rows], n_pairs),
                noise,
                np.isin(np.arange(n_pairs), stated.pairs[rows]),
                group,
            )
            for group, rows in [("", groups.codes >= 0), *members]
        ]


def _measure_effect(
    stated: _StatedPrompts, gaps: FloatArray, noise: FloatArray, rows: BoolArray, group: str
) -> Measurement:
    """Return the mean effect over the neutral prompts of a group, with its paired test."""
    sides = np.stack([gaps, noise])[:, rows]
    units = UnitScores(stated.unit, stated.names[rows], sides[0] - sides[1])
    test = compare_sides(sides, (group or _STATED, CONTROL), between="prompts")
    return replace(Measurement.from_units(units, group=group), contrasts=(test,))


@dataclass(frozen=True, kw_only=True)
class OverlapSpread(_StatedIdentityMetric):
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
        self, stated: _StatedPrompts, overlap: FloatArray, control: FloatArray
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
        means, spreads, p_values = permute_groups(
            sums[used].astype(np.float64),
            design.group[used],
            design.stratum[used],
            n_groups=len(names),
            n_permutations=self.permutations,
            rng=evidence.rng(),
        )
        at, n = ("range", "std").index(self.spread), int(used.sum())
        value, p = float(spreads[at]), float(p_values[at])
        row = Measurement(value, 0 if math.isnan(value) else n, int(used.size) - n)
        if np.isnan(means).any():
            return [row]
        ends = [int(means.argmax()), int(means.argmin())]  # the groups that are furthest apart
        others = {"test": "permutation", "n": n, "statistic": value, "p": p}
        test = Contrast.of_means("groups", [names[end] for end in ends], means[ends], **others)
        return [replace(row, contrasts=(test,))]
