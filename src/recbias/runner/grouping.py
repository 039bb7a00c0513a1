"""Metrics by group of queries, certain or known as probabilities: ``by:`` in a spec."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recbias.config.specs import Grouping
from recbias.core.context import record_fact, warn
from recbias.core.dataset import AnyArray, BoolArray, Queries
from recbias.core.errors import BrokenContract, Contradiction, NothingLeft, OutOfRange, UnknownName
from recbias.core.grouping import (
    NAMED,
    Groups,
    UncertainGroups,
    describe_quantiles,
    group_by,
    parse_uncertain_label,
    read_uncertain_groups,
)
from recbias.core.measures import Direction, Measurement
from recbias.runner.stages import derive_bootstrap_seed
from recbias.statistics.groups import (
    LEAST_VALUES,
    MAX_PAIRS,
    GapKind,
    Members,
    compute_gap_of,
    list_group_pairs,
    mark_few_beside_many,
    pool_groups,
    summarize_groups,
)
from recbias.statistics.inequality import GroupInequality, InequalityKind
from recbias.statistics.uncertain import (
    compute_pooled_uncertain_gap,
    compute_uncertain_gap,
    summarize_uncertain_groups,
)

_LOW_INFORMATION = 0.1
"""Below this share of explained variance, intervals are more than three times as wide."""

_MAX_SHOWN = 5
"""The number of small groups that a warning names."""

_EXAMPLE = "'age < 25'"
"""A condition, for the remedy of a warning."""


# ---- the groups ----


def form_groups(queries: Queries, grouping: Grouping) -> Groups | UncertainGroups:
    """Return the groups of queries that a metric is reported for.

    Raises:
        NothingLeft: Fewer than two groups can be compared; see also ``group_by``.
        UnknownName: There is no such reference group.
        OutOfRange: The reference group is too small to be compared.
        Contradiction: ``ugf`` is asked for other than two groups.
    """
    if parse_uncertain_label(grouping.by) is not None:
        uncertain = read_uncertain_groups(queries.labels, grouping.by)
        _require_two_for_ugf(grouping, len(uncertain.names), "difference")
        _find_reference(uncertain, grouping)
        return uncertain
    groups = group_by(queries.labels, grouping.by, split_cells=True)
    for name, text in describe_quantiles(queries.labels, grouping.by).items():
        record_fact(f"{NAMED}{name}", text)
    if len(groups.names) < 2:
        message = f"all queries with the label {grouping.by!r} are in one group, {groups.names[0]}"
        raise NothingLeft(message, remedy="group by a label with at least two values")
    counts, least = groups.counts, grouping.min_group
    reference, pairs = _find_reference(groups, grouping), _find_pairs(groups, grouping)
    n_compared = int(np.count_nonzero(counts >= least))
    _require_two_for_ugf(grouping, n_compared, f"mad, or group by a condition such as {_EXAMPLE}")
    if n_compared < 2:
        message = f"fewer than two groups of {grouping.by!r} have {least:,} queries"
        remedy = (
            f"min_group: {np.sort(counts)[-2]} is the largest with which two groups are compared"
        )
        raise NothingLeft(message, where="min_group", remedy=remedy)
    named = [("reference_group", reference)] * (reference >= 0)
    named += [("pairs", code) for pair in pairs for code in pair]
    for key, code in named:
        if counts[code] < least:
            found = f"{groups.names[code]} has {counts[code]:,} queries"
            message = f"{found}, fewer than min_group: {least}"
            remedy = "name a larger group, or lower min_group"
            raise OutOfRange(message, where=key, remedy=remedy)
    return groups


def _require_two_for_ugf(grouping: Grouping, n: int, other: str) -> None:
    if grouping.gap == "ugf" and n > 2:
        message = f"ugf compares two groups, and {grouping.by!r} has {n:,}"
        raise Contradiction(message, where="gap", remedy=f"choose gap: {other}")


def _find_reference(groups: Groups | UncertainGroups, grouping: Grouping) -> int:
    """Return the code of the reference group, -1 if there is none."""
    name = str(grouping.reference_group)
    return _find_code(groups, name, "reference_group") if name else -1


def _find_pairs(groups: Groups, grouping: Grouping) -> list[tuple[int, int]]:
    """Return the codes of the named pairs of groups, each once."""
    pairs = [
        tuple(_find_code(groups, str(name), "pairs") for name in pair) for pair in grouping.pairs
    ]
    if same := [pair for pair, (a, b) in zip(grouping.pairs, pairs, strict=True) if a == b]:
        message = f"{same[0][0]!r} is paired with itself"
        raise Contradiction(message, where="pairs", remedy="name two groups: [[18-24, 50+]]")
    return [(a, b) for a, b in {frozenset(pair): pair for pair in pairs}.values()]


def _find_code(groups: Groups | UncertainGroups, name: str, key: str) -> int:
    try:
        return groups.find_code(name)
    except UnknownName as error:
        raise UnknownName(error.message, where=key, remedy=error.remedy) from error


# ---- the values ----


@dataclass(frozen=True)
class GroupMeasurements:
    """Group the stored values of a metric, so that the metric is computed once for all groups.

    Args:
        direction: Which values of the metric are better.
    """

    name: str
    grouping: Grouping
    direction: Direction = "none"

    def __call__(
        self, queries: Queries, measurements: Sequence[Measurement]
    ) -> tuple[Measurement, ...]:
        """Return the values of the groups, or their gap."""
        for units in (measurement.units for measurement in measurements):
            if units is None or not np.array_equal(units.ids, queries.ids.ids):
                message = f"{self.name} has no value for each query, so it cannot be grouped"
                raise BrokenContract(message, remedy="remove `by`")
        groups, seed = form_groups(queries, self.grouping), derive_bootstrap_seed(queries.ids)
        for text in _list_warnings(groups, self.grouping, measurements):
            warn(f"{self.name}: {text}")
        rng = np.random.default_rng(seed)
        if isinstance(groups, UncertainGroups):
            return self._measure_by_probability(measurements, groups, rng)
        if self.grouping.gap in {None, "groups"}:
            reference, least = _find_reference(groups, self.grouping), self.grouping.min_group
            named = _find_pairs(groups, self.grouping)
            return tuple(
                group
                for measurement in measurements
                for group in summarize_groups(
                    measurement, groups, min_group=least, reference=reference, named=named
                )
            )
        members = [Members.of_queries(measurement, groups) for measurement in measurements]
        gaps = tuple(self._measure_gap(each, np.random.default_rng(seed)) for each in members)
        if not all(np.isnan(gap.ci_low) for gap in gaps):
            for text in _list_small_groups(members, self.grouping.min_group):
                warn(f"{self.name}: {text}")
        return gaps

    def pool(self, folds: Sequence[Measurement], seed: int) -> Measurement:
        """Return the gap over seeds and folds: that of the groups' means over them.

        Args:
            folds: The groups of all seeds and folds, of one target.
            seed: That of the bootstrap, the same for all models.
        """
        groups, rng = pool_groups(folds), np.random.default_rng(seed)
        if parse_uncertain_label(self.grouping.by) is not None:
            return compute_pooled_uncertain_gap(groups, _get_gap_kind(self.grouping), rng=rng)
        return self._measure_gap(Members.of_pooled(groups), rng)

    def _measure_by_probability(
        self,
        measurements: Sequence[Measurement],
        groups: UncertainGroups,
        rng: np.random.Generator,
    ) -> tuple[Measurement, ...]:
        """Return the means of the groups, or their gap, of each target of a metric."""
        kind, reference = _get_gap_kind(self.grouping), _find_reference(groups, self.grouping)
        if self.grouping.gap not in {None, "groups"}:
            return tuple(
                compute_uncertain_gap(each, groups, kind, rng=rng) for each in measurements
            )
        return tuple(
            group
            for measurement in measurements
            for group in summarize_uncertain_groups(measurement, groups, reference=reference)
        )

    def _measure_gap(self, members: Members, rng: np.random.Generator) -> Measurement:
        gap, least = self.grouping.gap, self.grouping.min_group
        if gap in {"difference", "ratio", "std", "ugf"}:
            kind = _get_gap_kind(self.grouping)
            of_two = compute_gap_of(members, kind, rng=rng, min_group=least)
            if members.corrected is not None and len(members.names) == 2 and kind == "difference":
                for name, value in members.corrected.describe(0, 1).items():
                    record_fact(f"correction.{name}", value)
            # the test of ugf belongs to the groups
            return replace(of_two, contrasts=()) if gap == "ugf" else of_two
        if members.audit is not None:
            warn(f"{self.name}: {gap} is not defined for corrected values; gap: difference is")
            return Measurement(math.nan, 0, members.n_units, target=members.target)
        kind_of_index: InequalityKind = gap  # type: ignore[assignment]  # the others are above
        index = GroupInequality(kind=kind_of_index, direction=self.direction, min_group=least)
        return index.measure_members(members, rng)


def _get_gap_kind(grouping: Grouping) -> GapKind:
    """Return the kind of a gap: ``ugf`` is the difference of two groups."""
    return grouping.gap if grouping.gap in {"ratio", "std"} else "difference"


# ---- warnings ----


def _list_warnings(
    groups: Groups | UncertainGroups, grouping: Grouping, measurements: Sequence[Measurement]
) -> Iterator[str]:
    """Yield what is worth knowing of the groups; of all of them once, with their means."""
    if grouping.gap == "groups" and groups.missing:
        yield f"{groups.missing:,} queries have no label {groups.by!r}"
    if isinstance(groups, UncertainGroups):
        if grouping.gap == "groups":
            yield from _list_low_information(groups)
        return
    if grouping.gap == "groups":
        yield from _list_uncompared(groups, grouping)
    if not grouping.min_group and grouping.gap not in {"ratio", "std"}:
        yield from _list_empty_groups(groups, measurements)
    singles = [name for name, n in zip(groups.names, groups.counts, strict=True) if n == 1]
    if singles and grouping.gap:
        subject, left = f"{singles[0]} has", ("it is", "counts", "it")
        if len(singles) > 1:
            subject = f"{len(singles):,} groups, such as {singles[0]}, have"
            left = ("they are", "count", "them")
        verb, count, pronoun = left
        rest = f" but {count} in gaps; min_group: 2 removes {pronoun} from both"
        rest = rest if grouping.min_group < 2 else ""
        yield f"{subject} only one query: no interval, and {verb} left out of tests{rest}"


def _list_low_information(groups: UncertainGroups) -> Iterator[str]:
    """Yield the group whose probability tells least about its label, if that is little."""
    least = int(groups.information.argmin())
    share = float(groups.information[least])
    if share < _LOW_INFORMATION:
        cost = "a difference that does not show in the probability is not seen"
        if groups.assumption == "probability":
            factor = 1.0 / np.sqrt(share)
            cost = f"the interval is about {factor:.1f} times as wide as with certain labels"
        yield f"{groups.names[least]} tells {share:.1%} of the variance of its label, so {cost}"


def _list_uncompared(groups: Groups, grouping: Grouping) -> Iterator[str]:
    """Yield the groups that are not compared, too many pairs, and queries in several groups."""
    counts, least = groups.counts, grouping.min_group
    if text := _name_groups(groups.names, counts, counts < least):
        message = f"fewer than {least:,} queries and are shown, but not compared"
        yield f"{text[0]} have {message}: {text[1]}"
    reference, named = _find_reference(groups, grouping), _find_pairs(groups, grouping)
    pairs = list_group_pairs(counts, least, reference, named)[0].size
    if pairs > MAX_PAIRS:
        message = f"the {pairs:,} pairs of groups are not tested, because they are more than"
        remedy = f"set min_group or reference_group, or group by conditions such as {_EXAMPLE}"
        if _are_shares(groups):
            remedy += f"; if these are probabilities, write by: probability of {groups.by}"
        yield f"{message} {MAX_PAIRS:,}; {remedy}"
    if groups.overlap and groups.rows is not None:
        n = int(np.count_nonzero(np.bincount(groups.rows) > 1))
        message = f"{n:,} queries have several values of {groups.by!r} and count in each group"
        tests = "the tests allow for shared queries, and there is no analysis of variance"
        yield f"{message}; {tests}"


def _are_shares(groups: Groups) -> bool:
    """Return whether the groups are of one label whose values are numbers from 0 to 1."""
    try:
        values = [float(value) for (value,) in groups.values]
    except ValueError:
        return False
    return all(0.0 <= value <= 1.0 for value in values)


def _list_empty_groups(groups: Groups, measurements: Sequence[Measurement]) -> Iterator[str]:
    """Yield the groups in which no query has a value, which make every gap undefined."""
    is_known = groups.codes >= 0
    rows = np.flatnonzero(is_known) if groups.rows is None else groups.rows[is_known]
    empty = np.zeros(len(groups.names), dtype=bool)
    for units in (measurement.units for measurement in measurements if measurement.units):
        has_value = ~np.isnan(units.values)[rows]
        empty |= np.bincount(groups.codes[is_known], has_value, empty.size) == 0
    if empty.any() and not empty.all():
        first, n = groups.names[int(empty.argmax())], int(np.count_nonzero(empty))
        subject = first if n == 1 else f"{n:,} groups, such as {first},"
        remedy = "min_group: 1 leaves such groups out"
        yield f"no query of {subject} has a value, so no gap is defined; {remedy}"


def _list_small_groups(members: Sequence[Members], least: int) -> Iterator[str]:
    """Yield the groups of fewer values than the interval of a gap needs."""
    sizes = np.min([each.moments.n for each in members], axis=0)
    is_compared, names = sizes >= least, members[0].names
    if text := _name_groups(names, sizes, is_compared & (sizes < LEAST_VALUES)):
        reason = "the intervals of their gaps, and checks by them, are approximate"
        yield f"{text[0]} have fewer than {LEAST_VALUES} values, so {reason}: {text[1]}"
    is_skewed = not all(each.share for each in members)
    if text := _name_groups(names, sizes, is_compared & mark_few_beside_many(sizes) & is_skewed):
        message = "have fewer than 20 values beside 5 times as many"
        reason = "if values are skewed, fewer than 93 of 100 intervals of the gap hold the truth"
        yield f"{text[0]} {message}; {reason}: {text[1]}"


def _name_groups(
    names: Sequence[str], sizes: AnyArray, is_named: BoolArray
) -> tuple[str, str] | None:
    """Return how many groups are named, and the first of them with their sizes; None if none."""
    codes = np.flatnonzero(is_named)
    shown = ", ".join(f"{names[code]} ({sizes[code]:,})" for code in codes[:_MAX_SHOWN])
    more = ", ..." if codes.size > _MAX_SHOWN else ""
    return (f"{codes.size:,} group(s)", shown + more) if codes.size else None
