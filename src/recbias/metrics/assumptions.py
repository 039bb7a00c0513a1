"""What conclusions from a log of impressions assume: how positions are examined, and propensities.

Position bias is estimated; curves over an assumed one, and over wrong propensities, say where a
conclusion turns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import UnknownName
from recbias.core.evidence import Evidence, Impressions, Policy
from recbias.core.measures import Direction, Measurement
from recbias.core.text import suggest
from recbias.metrics.logged import Weights, measure_ratio, read_rows, require_positions
from recbias.statistics.position_bias import fit_position_bias, tally_positions
from recbias.statistics.sensitivity import bound_ratio, find_turn, weigh_worst

TURNS = "turns"
"""The target of the row with the value at which a conclusion turns."""

_MOST_EXPONENT, _MOST_FACTOR = 5.0, 100.0
_Exponent = Annotated[float, Ge(0)]
_Factor = Annotated[float, Ge(1)]


class _OfLog(InheritsSections):
    """A metric of a log."""

    unit: ClassVar[str] = ""
    direction: ClassVar[Direction] = "none"


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
    ``users`` then. ``random`` is wrong where positions were not drawn at random: better items stand
    higher, so that position bias seems stronger. The interval has the users as units.

    Args:
        within: What is compared at different positions.

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

    needs: ClassVar[frozenset[str]] = frozenset({"log", "shown"})

    within: Literal["random", "items", "users"] = "items"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each position."""
        evidence.need("shown")
        require_positions(evidence, "position_bias")
        policy: Policy = evidence.shown  # type: ignore[assignment]
        read, n = partial(read_rows, evidence, policy.variant), len(evidence.queries)
        keys, n_positions = np.empty(0, dtype=np.int64), 1
        for block, queries in read():
            keys = np.union1d(keys, self._find_keys(evidence, block, queries))
            n_positions = max(n_positions, int(block.positions.max()))
        shape = (max(keys.size, 1), n_positions)
        tallies = np.zeros((2, *shape))
        for block, queries in read():
            strata = np.searchsorted(keys, self._find_keys(evidence, block, queries))
            tallies += tally_positions(strata, block.positions - 1, block.rewards, shape)
        fit = fit_position_bias(*tallies)
        scores = np.zeros((n, n_positions))
        for block, queries in read():
            strata = np.searchsorted(keys, self._find_keys(evidence, block, queries))
            scores += fit.score_users(strata, block.positions - 1, block.rewards, queries, n)
        low, high = fit.find_intervals(scores)
        n_shown = int((tallies[0].sum(axis=0) > 0).sum())
        if n_unknown := n_shown - int(fit.known.sum()):
            reason = "no chain of items with clicks connects them with the first"
            warn(f"{evidence.metric}: {n_unknown} positions are undefined, because {reason}")
        return [
            Measurement(
                value=float(fit.values[at]),
                n=n if fit.known[at] else 0,
                undefined=0 if fit.known[at] else n,
                target=f"position={at + 1}",
                ci_low=float(low[at]),
                ci_high=float(high[at]),
                own_interval=True,
            )
            for at in range(shape[1])
        ]

    def _find_keys(self, evidence: Evidence, block: Impressions, queries: AnyArray) -> AnyArray:
        """Return what identifies the stratum of each row."""
        if self.within == "random":
            return np.zeros(queries.size, dtype=np.int64)
        items: AnyArray = block.items.astype(np.int64)
        return items if self.within == "items" else queries * len(evidence.item_ids) + items


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Two groups of users or of items, whose gap is a - b.

    Args:
        of: Whether ``attribute`` is a label of the users or a column of the items.
        attribute: The label or column: ``gender``.
        a: The value of the first group.
        b: The value of the second group.
    """

    of: Literal["users", "items"]
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


@dataclass(frozen=True, kw_only=True)
class ExaminationSensitivity(_OfLog):
    """The gap of two groups over an assumed position bias, and where its sign turns.

        e_p = p^(-η),    clicks  Σ_a r / Σ_a e_p - Σ_b r / Σ_b e_p
                         exposure  ( Σ_a e_p - Σ_b e_p ) / Σ e_p

    over the impressions of each group: clicks by expected examination, or shares of the exposure.
    There is a row for each exponent η, and the row ``turns`` with the least η at which the gap has
    not the sign that it has at the first one; undefined up to 5.

    Args:
        groups: The groups; of items for ``exposure``.
        count: What is compared.
        exponents: The exponents; 0 is no position bias, 1 is the rank itself.

    Raises:
        MissingEvidence: The log has no positions.
        UnknownName: There is no such group.

    Range:
        any number; undefined for users without impressions of the groups.

    Source:
        Joachims, Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM
        2017 (examination 1 / p^η); Singh and Joachims, KDD 2018 (exposure).
    """

    unit: ClassVar[str] = "query"
    needs: ClassVar[frozenset[str]] = frozenset({"log", "shown"})

    groups: Sides
    count: Literal["clicks", "exposure"] = "clicks"
    exponents: tuple[_Exponent, ...] = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)

    def needs_now(self) -> frozenset[str]:
        """Return the needs, with the table that holds the groups."""
        return frozenset({"log", "shown", self.groups.of})

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the gap at each exponent, and the exponent at which it turns."""
        evidence.need("shown")
        require_positions(evidence, "examination_sensitivity")
        policy: Policy = evidence.shown  # type: ignore[assignment]
        members, n = self.groups.find(evidence), len(evidence.queries)
        totals = np.zeros((len(self.exponents), n, 4 if self.count == "clicks" else 2))
        shown, rewards = np.zeros((3, 1)), np.zeros(2)
        for block, queries in read_rows(evidence, policy.variant):
            sides = members[block.items if self.groups.of == "items" else queries].T
            more = int(block.positions.max()) + 1 - shown.shape[1]
            shown = np.pad(shown, ((0, 0), (0, max(more, 0))))
            for at, side in enumerate((*sides, np.ones(queries.size))):
                shown[at] += np.bincount(block.positions, side, shown.shape[1])
            rewards += sides @ block.rewards
            for total, exponent in zip(totals, self.exponents, strict=True):
                seen = block.positions.astype(np.float64) ** -exponent
                parts = [(sides[0].astype(float) - sides[1]) * seen, seen]
                if self.count == "clicks":
                    parts = [x * side for side in sides[::-1] for x in (block.rewards, seen)]
                for column, part in enumerate(parts):
                    total[:, column] += np.bincount(queries, part, n)

        def find_gap(exponent: float) -> float:
            seen = shown[:, 1:] @ np.arange(1.0, shown.shape[1]) ** -exponent
            if not (seen > 0).all():
                return math.nan
            if self.count == "clicks":
                return float(rewards[0] / seen[0] - rewards[1] / seen[1])
            return float((seen[0] - seen[1]) / seen[2])

        turn = find_turn(find_gap, self.exponents[0], _MOST_EXPONENT)
        return [
            *(
                measure_ratio(evidence, total, f"exponent={exponent:g}")
                for total, exponent in zip(totals, self.exponents, strict=True)
            ),
            _describe_turn(turn, n),
        ]


def _describe_turn(turn: float, n: int) -> Measurement:
    """Return the row of the value at which a conclusion turns; NaN if it does not."""
    known = 0 if math.isnan(turn) else n
    return Measurement(value=turn, n=known, undefined=n - known, target=TURNS)


@dataclass(frozen=True, kw_only=True)
class PropensitySensitivity(_OfLog):
    """Bounds of a candidate's gap if propensities are wrong by a factor, and where its sign turns.

        value(Γ) = [ min, max ] of  Σ λ w r / Σ λ w   over all  1/Γ ≤ λ_i ≤ Γ,    w = π(a | x) / p

    The gap is that of the candidate's value (``snips``) to the mean reward of what was shown, or
    between two groups of users. Each true propensity may be anywhere from p / Γ to p Γ. There is a
    row for each factor Γ, in which the value is the gap at Γ = 1 and the interval holds the bounds
    and the sampling of users. The row ``turns`` is the least Γ at which the bounds, without the
    sampling, hold 0; undefined above 100. It is undefined of the model ``shown``.

    Args:
        groups: The groups of users; by default the candidate is compared with what was shown.
        factors: The factors.
        clip: The largest weight; larger ones are cut.

    Raises:
        MissingEvidence: The log has no propensities.
        UnknownName: There is no such group.

    Range:
        any number; undefined where the candidate shows what the log never shows.

    Source:
        Tan, JASA 2006 (the marginal sensitivity model); Zhao, Small and Bhattacharya, "Sensitivity
        analysis for inverse probability weighting estimators via the percentile bootstrap", JRSS B
        2019 (the bounds, by sorting).
    """

    needs: ClassVar[frozenset[str]] = frozenset({"log", "policy"})

    groups: Sides | None = None
    factors: tuple[_Factor, ...] = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
    clip: Annotated[float, Gt(0)] | None = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the gap with its bounds at each factor, and the factor at which it turns."""
        evidence.need("policy")
        policy: Policy = evidence.policy  # type: ignore[assignment]
        n = len(evidence.queries)
        targets = [f"factor={factor:g}" for factor in self.factors]
        undefined = [Measurement(math.nan, 0, n, target=target) for target in (*targets, TURNS)]
        if policy.is_shown:
            return undefined
        weights = Weights(evidence, self.clip)
        members = None if self.groups is None else self.groups.find(evidence)

        def read_sides() -> Iterator[tuple[AnyArray, FloatArray, FloatArray]]:
            for block, queries, _, weight in weights.read():
                ones = np.ones(queries.size)
                of_sides = np.stack(
                    [weight, ones] if members is None else members[queries].T * weight
                )
                yield queries, block.rewards, of_sides

        _, missing = weights.find_support()
        if any(missing[contexts].any() for _, _, contexts, _ in weights.read()):
            warn(f"{evidence.metric}: undefined, because the candidate shows what was never shown")
            return undefined
        tables: tuple[_Rewards, _Rewards] = _Rewards(), _Rewards()
        for _, rewards, of_sides in read_sides():
            for table, weight in zip(tables, of_sides, strict=True):
                table.add(rewards, weight)

        def bound(factor: float) -> tuple[tuple[float, float], tuple[float, float]]:
            return tables[0].bound(factor), tables[1].bound(factor if members is not None else 1.0)

        ends = [bound(factor) for factor in self.factors]
        totals = np.zeros((len(ends), 2, n, 4))
        for queries, rewards, of_sides in read_sides():
            for at, (factor, bounds) in enumerate(zip(self.factors, ends, strict=True)):
                for end, side in itertools.product((0, 1), (0, 1)):  # low or high; a or b
                    is_fixed = side and members is None
                    highest = bool(end) != bool(side)
                    ratio = weigh_worst(
                        rewards,
                        bounds[side][highest],
                        1.0 if is_fixed else factor,
                        highest=highest,
                    )
                    for column, part in enumerate((rewards, 1.0)):
                        terms = part * ratio * of_sides[side]
                        total = np.bincount(queries, terms, n)
                        totals[at, end, :, column + 2 * (1 - side)] += total
        if weights.n_clipped:
            share = weights.n_clipped / weights.n_rows
            warn(f"{evidence.metric}: {share:.2%} of the weights were above {self.clip:g} and cut")
        a, b = bound(1.0)
        gap = a[0] - b[0]

        def find_worst(log_factor: float) -> float:
            (a_low, a_high), (b_low, b_high) = bound(math.exp(log_factor))
            return a_low - b_high if gap > 0 else a_high - b_low

        turn = math.exp(find_turn(find_worst, 0.0, math.log(_MOST_FACTOR)))
        rows = []
        for target, of_ends in zip(targets, totals, strict=True):
            low, high = (measure_ratio(evidence, total) for total in of_ends)
            row = Measurement(gap, low.n, low.undefined, target=target)
            rows.append(replace(row, ci_low=low.ci_low, ci_high=high.ci_high, own_interval=True))
        return [*rows, _describe_turn(turn, n)]


class _Rewards:
    """The sum of the weights of the rows with each reward."""

    def __init__(self) -> None:
        self._rewards, self._weights = np.empty(0), np.empty(0)

    def add(self, rewards: FloatArray, weights: FloatArray) -> None:
        """Add rows."""
        values, codes = np.unique(np.append(self._rewards, rewards), return_inverse=True)
        self._rewards = values
        self._weights = np.bincount(codes, np.append(self._weights, weights), values.size)

    def bound(self, factor: float) -> tuple[float, float]:
        """Return the least and the largest mean."""
        return bound_ratio(self._weights, self._rewards, factor)
