"""What conclusions from a log of impressions assume: how positions are examined, and propensities.

Position bias is estimated; curves over an assumed one, and over wrong propensities, say where a
conclusion turns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import Contradiction, UnknownName
from recbias.core.evidence import Evidence, Impressions, Policy
from recbias.core.grouping import group_by
from recbias.core.measures import Direction, Measurement, spread_ratio
from recbias.core.text import suggest
from recbias.metrics.logged import Weights, get_policy, read_rows, require_positions
from recbias.statistics.logs import (
    GapBound,
    bound_gap,
    bound_ratio,
    find_turn,
    fit_position_bias,
    raise_positive,
    tally_positions,
    weigh_worst,
)
from recbias.statistics.logs import PositionBias as ModelOfPositions

_TURNS = "turns"  # the target of the row with the value at which a conclusion turns
_MOST_EXPONENT, _MOST_FACTOR = 5.0, 100.0
_MOST_CELLS = 2**13  # different rows by which the multipliers of bounds are found
_Exponent = Annotated[float, Ge(0)]
_Factor = Annotated[float, Ge(1)]


class _OfLog(InheritsSections):
    """A metric of a log."""

    unit: ClassVar[str] = ""


@dataclass(frozen=True, kw_only=True)
class PositionBias(_OfLog):
    """How often users examine each position, relative to the first.

        p_k / p_1,    P(click) = p_k × relevance

    With ``random`` positions it is the ratio of the click-through rates of the positions. With
    ``items`` it is harvested from variants (or times) that show the same item at different
    positions: ratios of clicks within items, over all pairs of positions. With ``users`` they are
    ratios within pairs of user and item, for variants that are personalised. There is a row for
    each position.

    A harvested value is biased where an item is shown higher to users who like it more; use
    ``users`` then. ``random`` is wrong where positions were not drawn at random: better items are
    higher, so that position bias seems stronger. The interval has the users as units.

    Args:
        within: What is compared at different positions.
        label: A label of the users: each of its values has rows of its own, fitted to its users.

    Raises:
        MissingEvidence: The log has no positions.

    Range:
        0 or more; undefined for a position without a click, or that no chain of items shown at two
        positions connects with the first.

    Source:
        Agarwal, Zaitsev, Wang, Li, Najork and Joachims, "Estimating position bias without
        intrusive interventions", WSDM 2019, all pairs, with the weights of Mantel and Haenszel;
        Joachims, Swaminathan and Schnabel, WSDM 2017 (random positions).
    """

    direction: ClassVar[Direction] = "none"
    needs: ClassVar[frozenset[str]] = frozenset({"log", "shown"})

    within: Literal["random", "items", "users"] = "items"
    label: str | None = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each position."""
        get_policy(evidence, "shown")
        require_positions(evidence, "position_bias")
        parts = {"": np.arange(len(evidence.queries))}
        if self.label is not None:
            groups = group_by(evidence.queries.labels, self.label, split_cells=True)
            parts |= {name: groups.find_rows(at) for at, name in enumerate(groups.names)}
        cohorts = [_Cohort(name, rows, evidence) for name, rows in parts.items()]
        for each, block, queries in _read_cohorts(evidence, cohorts):
            each.find_strata(self._find_keys(evidence, block, queries), block.positions)
        for each, block, queries in _read_cohorts(evidence, cohorts):
            each.tally(self._find_keys(evidence, block, queries), block)
        fits = {each.group: fit_position_bias(*each.tallies) for each in cohorts}
        for each, block, queries in _read_cohorts(evidence, cohorts):
            each.score(fits[each.group], self._find_keys(evidence, block, queries), block, queries)
        return [row for each in cohorts for row in each.measure(fits[each.group])]

    def _find_keys(self, evidence: Evidence, block: Impressions, queries: AnyArray) -> AnyArray:
        """Return what identifies the stratum of each row."""
        if self.within == "random":
            return np.zeros(queries.size, dtype=np.int64)
        items: AnyArray = block.items.astype(np.int64)
        return items if self.within == "items" else queries * len(evidence.item_ids) + items


class _Cohort:
    """What is counted of the impressions of a group of users, in three readings of the log."""

    def __init__(self, group: str, rows: AnyArray, evidence: Evidence) -> None:
        self.group, self.n, self.metric = group, rows.size, evidence.metric
        self.place = np.full(len(evidence.queries), -1, dtype=np.int64)
        self.place[rows] = np.arange(rows.size)
        self.keys, self.n_positions = np.empty(0, dtype=np.int64), 1

    def find_strata(self, keys: AnyArray, positions: AnyArray) -> None:
        """Note the strata and positions of some rows."""
        self.keys = np.union1d(self.keys, keys)
        self.n_positions = max(self.n_positions, int(positions.max()))

    @cached_property
    def tallies(self) -> FloatArray:
        """Impressions and rewards by stratum and position, ``float64[2, s, k]``."""
        return np.zeros((2, max(self.keys.size, 1), self.n_positions))

    @cached_property
    def scores(self) -> FloatArray:
        """What each user adds to the score of each position, ``float64[u, k]``."""
        return np.zeros((self.n, self.n_positions))

    def tally(self, keys: AnyArray, block: Impressions) -> None:
        """Add the impressions and rewards of some rows."""
        strata, shape = np.searchsorted(self.keys, keys), self.tallies.shape[1:]
        self.tallies += tally_positions(strata, block.positions - 1, block.rewards, shape)

    def score(
        self, fit: ModelOfPositions, keys: AnyArray, block: Impressions, queries: AnyArray
    ) -> None:
        """Add what some rows add to the scores of their users."""
        strata, users = np.searchsorted(self.keys, keys), self.place[queries]
        self.scores += fit.score_users(strata, block.positions - 1, block.rewards, users, self.n)

    def measure(self, fit: ModelOfPositions) -> Iterator[Measurement]:
        """Yield the value of each position."""
        low, high = fit.find_intervals(self.scores)
        n_shown = int((self.tallies[0].sum(axis=0) > 0).sum())
        if n_unknown := n_shown - int(fit.known.sum()):
            reason = "no chain of items with clicks connects them with the first"
            warn(f"{self.metric}: {n_unknown} positions are undefined, because {reason}")
        for at in range(self.n_positions):
            n = self.n if fit.known[at] else 0
            yield Measurement(
                *(float(fit.values[at]), n, self.n - n),
                group=self.group,
                target=f"position={at + 1}",
                ci_low=float(low[at]),
                ci_high=float(high[at]),
                own_interval=True,
            )


def _read_cohorts(
    evidence: Evidence, cohorts: Sequence[_Cohort]
) -> Iterator[tuple[_Cohort, Impressions, AnyArray]]:
    """Yield the rows of what was shown to each group, block by block."""
    policy = get_policy(evidence, "shown")
    for block, queries in read_rows(evidence, policy.variant):
        for cohort in cohorts:
            kept = cohort.place[queries] >= 0
            if kept.all():
                yield cohort, block, queries
            elif kept.any():
                yield cohort, block.take(kept), queries[kept]


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Two groups of users or of items, whose gap is a - b.

    Args:
        of: Whether ``attribute`` is a label of the users or a column of the items.
        attribute: The label or column: ``gender``.
        a: The value of the first group.
        b: The value of the second group.
    """

    of: Literal["users", "items"] = "users"
    attribute: str
    a: str
    b: str

    def find(self, evidence: Evidence) -> BoolArray:
        """Return whether each query or item is in a and in b, ``bool[n, 2]``.

        Raises:
            UnknownName: There is no such value.
        """
        if self.of == "items":
            evidence.need("items")
            table = evidence.items
        else:
            table = evidence.queries.labels
        membership = table.membership(self.attribute)  # type: ignore[union-attr]
        members = np.zeros((membership.matrix.shape[0], 2), dtype=bool)
        for side, value in enumerate((self.a, self.b)):
            if value not in membership.values:
                message = f"{self.attribute} has no value {value!r}"
                remedy = suggest(value, membership.values)
                raise UnknownName(message, where="groups", remedy=remedy)
            column = list(membership.values).index(value)
            members[:, side] = membership.matrix[:, [column]].toarray()[:, 0] > 0
        return members


def _require_of(groups: Sides | None, of: str) -> None:
    if groups is None or groups.of != of:
        found = "candidates" if groups is None else f"groups of {groups.of}"
        remedy = f"compare groups of {of}"
        raise Contradiction(f"{found} are compared here", where="groups.of", remedy=remedy)


_Rows: TypeAlias = tuple[Impressions, AnyArray, FloatArray]
"""A block, and the query and the weights on both sides of each row."""


class _Compared:
    """The rows of a log, with the weight of each on both sides of the gap of a candidate.

    The other side is what was shown, or another candidate; with groups of users, the candidate is
    compared between them.
    """

    def __init__(
        self, evidence: Evidence, against: str | None, groups: Sides | None, clip: float | None
    ) -> None:
        self.evidence, self.lacks_support = evidence, False
        self._members = None if groups is None else groups.find(evidence)
        self._shown = Policy.of_shown() if against is None else evidence.other_policy
        if self._shown is None:
            evidence.need("other_policy")
        self._sides = [Weights(evidence, clip)]
        if self.has_two_candidates:
            other = replace(evidence, policy=self._shown)
            self._sides.append(Weights(other, clip))

    @property
    def has_two_candidates(self) -> bool:
        """Whether both sides depend on the propensities of the same rows."""
        return self._members is None and not self._shown.is_shown  # type: ignore[union-attr]

    @property
    def has_groups(self) -> bool:
        """Whether the sides are groups of users."""
        return self._members is not None

    def read(self) -> Iterator[_Rows]:
        """Yield blocks with the query and the weights of each row, ``float64[2, n]``."""
        for block, queries in read_rows(self.evidence):
            weights = []
            for side in self._sides:
                contexts, own = side.weigh(block, queries)
                self.lacks_support |= side.lacks_support(block, contexts)
                weights.append(own)
            yield block, queries, self._complete(block, queries, weights)

    def _complete(
        self, block: Impressions, queries: AnyArray, weights: list[FloatArray]
    ) -> FloatArray:
        if self._members is not None:
            return np.asarray(self._members[queries].T * weights[0])
        if len(weights) == 1:
            variant = self._shown.variant  # type: ignore[union-attr]
            is_other = block.variants == variant if variant else np.ones(queries.size)
            weights = [*weights, np.asarray(is_other, dtype=np.float64)]
        return np.stack(weights)

    def warn(self) -> None:
        """Say what is worth knowing of the weights."""
        for side in self._sides:
            side.warn()
        if self.lacks_support:
            message = "undefined, because a candidate shows what was never shown"
            warn(f"{self.evidence.metric}: {message}")


@dataclass(frozen=True, kw_only=True)
class ExaminationSensitivity(_OfLog):
    """A gap over an assumed position bias, and where its sign turns.

        e_p = p^(-η),    clicks  Σ_a r / Σ_a e_p - Σ_b r / Σ_b e_p
                         exposure  ( Σ_a e_p - Σ_b e_p ) / Σ e_p

    over the impressions of each group of users or items: clicks by expected examination, or shares
    of the exposure. Without groups, the clicks of a candidate are compared with those of what was
    shown or of another candidate, where each row counts by its weight of importance π(a | x) / p:

        Σ w r / Σ w e_p - Σ v r / Σ v e_p

    There is a row for each exponent η, and the row ``turns`` with the least η at which the gap has
    not the sign that it has at the first one; undefined up to 5.

    Args:
        groups: The groups; of items for ``exposure``. By default a candidate is compared.
        against: The label of the model with which the candidate is compared; by default all that
            was shown.
        count: What is compared.
        exponents: The exponents; 0 is no position bias, 1 is the rank itself.

    Raises:
        MissingEvidence: The log has no positions, or no propensities for a candidate.
        UnknownName: There is no such group.

    Range:
        any number; undefined for users without impressions of the groups, and where a candidate
        shows what the log never shows.

    Source:
        Joachims, Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM
        2017 (examination 1 / p^η); Singh and Joachims, KDD 2018 (exposure).
    """

    direction: ClassVar[Direction] = "none"
    needs: ClassVar[frozenset[str]] = frozenset({"log", "shown"})

    groups: Sides | None = None
    against: str | None = None
    count: Literal["clicks", "exposure"] = "clicks"
    exponents: tuple[_Exponent, ...] = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)

    def __post_init__(self) -> None:
        """Refuse the exposure of users, who are not shown, and groups of two models."""
        if self.count == "exposure":
            _require_of(self.groups, "items")
        _refuse_both(self.groups, self.against)

    def needs_now(self) -> frozenset[str]:
        """Return the needs, with the items that hold the groups; users have labels."""
        if self.groups is None:
            return frozenset({"log", "policy"})
        return frozenset({"log", "shown", *(["items"] * (self.groups.of == "items"))})

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the gap at each exponent, and the exponent at which it turns."""
        require_positions(evidence, "examination_sensitivity")
        if self.groups is not None:
            return self._measure_sides(evidence, self._read_groups(evidence, self.groups))
        undefined = _leave_undefined(self._targets, len(evidence.queries))
        if get_policy(evidence, "policy").is_shown:
            return undefined
        compared = _Compared(evidence, self.against, None, None)
        rows = self._measure_sides(evidence, compared.read())
        compared.warn()
        return undefined if compared.lacks_support else rows

    @property
    def _targets(self) -> list[str]:
        return [f"exponent={exponent:g}" for exponent in self.exponents]

    def _read_groups(self, evidence: Evidence, groups: Sides) -> Iterator[_Rows]:
        """Yield blocks with the query of each row, and whether it is of a and of b."""
        variant, members = get_policy(evidence, "shown").variant, groups.find(evidence)
        for block, queries in read_rows(evidence, variant):
            sides = members[block.items if groups.of == "items" else queries]
            yield block, queries, sides.T.astype(np.float64)

    def _measure_sides(self, evidence: Evidence, blocks: Iterator[_Rows]) -> list[Measurement]:
        n = len(evidence.queries)
        totals = np.zeros((len(self.exponents), n, 4 if self.count == "clicks" else 2))
        shown, rewards = np.zeros((3, 1)), np.zeros(2)
        for block, queries, sides in blocks:
            more = int(block.positions.max()) + 1 - shown.shape[1]
            shown = np.pad(shown, ((0, 0), (0, max(more, 0))))
            for at, side in enumerate((*sides, np.ones(queries.size))):
                shown[at] += np.bincount(block.positions, side, shown.shape[1])
            rewards += sides @ block.rewards
            for total, exponent in zip(totals, self.exponents, strict=True):
                seen = block.positions.astype(np.float64) ** -exponent
                for column, part in enumerate(self._list_parts(sides, block.rewards, seen)):
                    total[:, column] += np.bincount(queries, part, n)
        find_gap = partial(self._find_gap, shown[:, 1:], rewards)
        turn = find_turn(find_gap, self.exponents[0], _MOST_EXPONENT)
        rows = [
            _measure_gap(evidence, total, target)
            for total, target in zip(totals, self._targets, strict=True)
        ]
        return [*rows, _describe_turn(turn, n)]

    def _list_parts(
        self, sides: FloatArray, rewards: FloatArray, seen: FloatArray
    ) -> list[FloatArray]:
        """Return what each row adds to the totals: of a and of b, or of the difference."""
        if self.count == "clicks":
            return [part * side for side in sides for part in (rewards, seen)]
        return [(sides[0] - sides[1]) * seen, seen]

    def _find_gap(self, shown: FloatArray, rewards: FloatArray, exponent: float) -> float:
        """Return the gap from the impressions of a, b and all by position."""
        a, b, total = (shown @ np.arange(1.0, shown.shape[1] + 1) ** -exponent).tolist()
        if not (a > 0 and b > 0):
            return math.nan
        if self.count == "clicks":
            return float(rewards[0] / a - rewards[1] / b)
        return float((a - b) / total)


def _refuse_both(groups: Sides | None, against: str | None) -> None:
    if groups is not None and against is not None:
        message = "either groups of one model are compared or two models"
        raise Contradiction(message, where="against", remedy="leave out groups or against")


def _leave_undefined(targets: Sequence[str], n: int) -> list[Measurement]:
    return [Measurement(math.nan, 0, n, target=target) for target in (*targets, _TURNS)]


def _measure_gap(
    evidence: Evidence, totals: FloatArray, target: str = "", shift: float = 0.0
) -> Measurement:
    """Return the ratio of the first two columns of ``float64[q, 2 or 4]``, minus the others'.

    A user may add to both ratios: with one kind of rows only, its part of the other is its mean.
    """
    is_defined = totals[:, 1::2].any(axis=1)
    first, *others = np.hsplit(totals[is_defined], totals.shape[1] // 2)
    values = np.full(len(totals), np.nan)
    values[is_defined] = spread_ratio(first) - sum(map(spread_ratio, others)) + shift
    return replace(evidence.measure_queries(values), target=target, units=None)


def _describe_turn(turn: float, n: int) -> Measurement:
    """Return the row of the value at which a conclusion turns; NaN if it does not."""
    known = 0 if math.isnan(turn) else n
    return Measurement(value=turn, n=known, undefined=n - known, target=_TURNS)


@dataclass(frozen=True, kw_only=True)
class PropensitySensitivity(_OfLog):
    """Bounds of a candidate's gap if propensities are wrong by a factor, and where its sign turns.

        value(Γ) = [ min, max ] of  Σ λ w r / Σ λ w   over all  1/Γ ≤ λ_i ≤ Γ,    w = π(a | x) / p

    The gap is that of the candidate's value (``snips``) to the mean reward of what was shown, to
    another candidate, or between two groups of users. Each true propensity may be anywhere from
    p / Γ to p Γ. There is a row for each factor Γ: the value is the bound of the gap on the side
    of the other sign, and the interval holds both bounds and the sampling of users. The row
    ``turns`` is the least Γ at which the bounds, without the sampling, hold 0; undefined above
    100. It is undefined of the model ``shown``.

    Two candidates are paired: a row has the same λ for both, and Σ λ w = Σ w for each, because
    under the true propensities, too, the probabilities of a candidate add up to 1. Bounds are the
    smallest that hold for every λ (of two candidates, nearly so with over 8,192 different rows).

    Args:
        groups: The groups of users; by default the candidate is compared with what was shown.
        against: The label of the model with which the candidate is compared, another candidate or
            a variant; by default all that was shown.
        factors: The factors.
        clip: The largest weight; larger ones are cut.

    Raises:
        MissingEvidence: The log has no propensities.
        UnknownName: There is no such group.

    Range:
        any number; undefined where a candidate shows what the log never shows.

    Source:
        Tan, JASA 2006 (the marginal sensitivity model); Zhao, Small and Bhattacharya, "Sensitivity
        analysis for inverse probability weighting estimators via the percentile bootstrap", JRSS B
        2019 (the bounds, by sorting); Dorn and Guo, "Sharp sensitivity analysis for inverse
        propensity weighting via quantile balancing", JASA 2023 (weights that keep their sums).
    """

    direction: ClassVar[Direction] = "none"
    needs: ClassVar[frozenset[str]] = frozenset({"log", "policy"})

    groups: Sides | None = None
    against: str | None = None
    factors: tuple[_Factor, ...] = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
    clip: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        """Refuse groups of items, of which a candidate has no value, and groups of two models."""
        if self.groups is not None:
            _require_of(self.groups, "users")
        _refuse_both(self.groups, self.against)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the gap with its bounds at each factor, and the factor at which it turns."""
        n, targets = len(evidence.queries), [f"factor={factor:g}" for factor in self.factors]
        if get_policy(evidence, "policy").is_shown:
            return _leave_undefined(targets, n)
        compared = _Compared(evidence, self.against, self.groups, self.clip)
        gap = _GapOfTwo(compared) if compared.has_two_candidates else _Gap(compared)
        compared.warn()
        if compared.lacks_support:
            return _leave_undefined(targets, n)
        rows = [
            replace(row, target=target)
            for row, target in zip(gap.measure(self.factors), targets, strict=True)
        ]
        turn = find_turn(gap.find_worst, 0.0, math.log(_MOST_FACTOR), n_steps=1)
        return [*rows, _describe_turn(math.exp(turn), n)]


class _Gap:
    """The value of a candidate minus what was shown, or in one group minus another."""

    def __init__(self, compared: _Compared) -> None:
        self._compared = compared
        self._tables = _Rewards(), _Rewards()
        for block, _, sides in compared.read():
            for table, side in zip(self._tables, sides, strict=True):
                table.add(block.rewards, side)

    def find_worst(self, log_factor: float) -> float:
        """Return the bound of the gap that is nearest to the other sign."""
        (a_low, a_high), (b_low, b_high) = self._bound(math.exp(log_factor))
        (a, _), (b, _) = self._bound(1.0)
        return a_low - b_high if a > b else a_high - b_low

    def measure(self, factors: Sequence[float]) -> list[Measurement]:
        """Return the gap, with the interval of its bounds at each factor."""
        evidence = self._compared.evidence
        totals = np.zeros((len(factors), 2, len(evidence.queries), 4))
        bounds = [self._bound(factor) for factor in factors]
        for block, queries, sides in self._compared.read():
            for at, end, side in itertools.product(range(len(factors)), (0, 1), (0, 1)):
                highest = end != side  # the gap is lowest with a lowest and b highest
                bound = bounds[at][side][int(highest)]
                factor = self._limit(side, factors[at])
                terms = weigh_worst(block.rewards, bound, factor, highest=highest) * sides[side]
                for column, part in ((2 * side, terms * block.rewards), (2 * side + 1, terms)):
                    totals[at, end, :, column] += np.bincount(queries, part, len(totals[at, end]))
        rows = []
        for factor, ends in zip(factors, totals, strict=True):
            least, most = (_measure_gap(evidence, total) for total in ends)
            rows.append(_join_ends(least, most, self.find_worst(math.log(factor))))
        return rows

    def _limit(self, side: int, factor: float) -> float:
        """Return the factor of a side; what was shown needs no propensities."""
        return factor if self._compared.has_groups or not side else 1.0

    def _bound(self, factor: float) -> tuple[tuple[float, float], ...]:
        return tuple(
            table.bound(self._limit(side, factor)) for side, table in enumerate(self._tables)
        )


def _join_ends(least: Measurement, most: Measurement, worst: float) -> Measurement:
    """Return the row of a factor from the lowest and the highest gap."""
    row = Measurement(worst, least.n, least.undefined, own_interval=True)
    return replace(row, ci_low=least.ci_low, ci_high=most.ci_high)


class _Rewards:
    """The sum of the weights of the rows with each reward."""

    def __init__(self) -> None:
        self._rewards: FloatArray = np.empty(0)
        self._weights: FloatArray = np.empty(0)

    def add(self, rewards: FloatArray, weights: FloatArray) -> None:
        """Add rows."""
        values, codes = np.unique(np.append(self._rewards, rewards), return_inverse=True)
        sums = np.bincount(codes, np.append(self._weights, weights), values.size)
        self._rewards, self._weights = values, sums.astype(np.float64)

    def bound(self, factor: float) -> tuple[float, float]:
        """Return the least and the largest mean."""
        return bound_ratio(self._weights, self._rewards, factor)


class _GapOfTwo:
    """The value of a candidate minus that of another one, by the same propensities.

    The multipliers of the bounds are found on some thousands of rows; the bounds at the factors
    are over all rows, and hold with any multipliers.
    """

    def __init__(self, compared: _Compared) -> None:
        self._compared = compared
        self._sums, every = np.zeros(2), 1
        cells: FloatArray = np.empty((4, 0))  # both weights, the reward, and how many rows
        for block, _, sides in compared.read():
            self._sums += sides.sum(axis=1)
            rows = np.stack([*sides, block.rewards, np.full(block.rewards.size, float(every))])
            rows = rows[:, sides.any(axis=0)][:, ::every]
            distinct, codes = np.unique(
                np.hstack([cells[:3], rows[:3]]), axis=1, return_inverse=True
            )
            counts = np.bincount(codes.ravel(), np.append(cells[3], rows[3]))
            cells = np.vstack([distinct, counts])
            while cells.shape[1] > _MOST_CELLS:
                cells, every = cells[:, ::2] * [[1.0], [1.0], [1.0], [2.0]], 2 * every
        self._cells = cells
        low, _ = self._bound(1.0)
        self._is_positive = low.value > 0

    def _bound(self, factor: float) -> tuple[GapBound, GapBound]:
        return bound_gap(self._cells[:2], self._cells[2], factor, self._cells[3])

    def find_worst(self, log_factor: float) -> float:
        """Return the bound of the gap that is nearest to the other sign."""
        low, high = self._bound(math.exp(log_factor))
        return low.value if self._is_positive else high.value

    def measure(self, factors: Sequence[float]) -> list[Measurement]:
        """Return the gap, with the interval of its bounds at each factor."""
        evidence, bounds = self._compared.evidence, [self._bound(factor) for factor in factors]
        totals = np.zeros((len(factors), 2, len(evidence.queries), 4))
        for block, queries, sides in self._compared.read():
            for (at, factor), end in itertools.product(enumerate(factors), (0, 1)):
                _, *multipliers = bounds[at][end]
                terms = sides * (block.rewards - np.array(multipliers)[:, None])
                gap = (terms / self._sums[:, None])[0] - (terms / self._sums[:, None])[1]
                raised = raise_positive(gap if end else -gap, factor)
                parts = (raised * terms[0], sides[0], raised * terms[1], sides[1])
                for column, part in enumerate(parts):
                    totals[at, end, :, column] += np.bincount(queries, part, len(totals[at, end]))
        rows = []
        for ends, found in zip(totals, bounds, strict=True):
            least, most = (
                _measure_gap(evidence, total, shift=bound.a - bound.b)
                for total, bound in zip(ends, found, strict=True)
            )
            worst = least if self._is_positive else most
            rows.append(_join_ends(least, most, worst.value))
        return rows
