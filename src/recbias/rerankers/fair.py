"""Re-rankers that are fair to groups of items: CPFair, DetGreedy and FA*IR."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Gt, Lt

from recbias.core.context import record_fact, warn
from recbias.core.dataset import AnyArray, BoolArray, Codes, FloatArray, TrainingData
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn
from recbias.core.plugins import Candidates
from recbias.core.text import suggest
from recbias.kernels.sparse import block_size, map_blocks
from recbias.rerankers.relevance import (
    ItemValues,
    NumberOfCandidates,
    Share,
    Strength,
    read_values,
    select_greedily,
)
from recbias.statistics.inequality import head

_SLACK = 1e-9
"""Tolerance with which the product of a share and a rank counts as an integer."""


class _QuotaLists:
    """The rank of a candidate, after those of the groups that lack places so far.

    Args:
        groups: The group of each candidate, ``[b, n]``.
        quotas: The places that each group should have at each rank, ``[levels, k, groups]``: first
            come the groups that lack a place of the most levels.
    """

    def __init__(self, groups: AnyArray, quotas: AnyArray) -> None:
        self.groups, self.quotas = groups, quotas
        self.order = -np.arange(groups.shape[1], dtype=np.float64)
        self.counts = np.zeros((len(groups), quotas.shape[2]), dtype=np.int64)
        self.rank = 0

    def compute_gains(self) -> FloatArray:
        urgency = (self.counts < self.quotas[:, self.rank, None]).sum(axis=0)
        order, n = self.order, self.order.size
        return np.asarray(order + n * np.take_along_axis(urgency, self.groups, axis=1))

    def add(self, rows: AnyArray, columns: AnyArray) -> None:
        self.counts[rows, self.groups[rows, columns]] += 1
        self.rank += 1


_USERS, _ITEMS = 0, 1
"""The places of both differences, and of their multipliers."""


@dataclass(frozen=True, eq=False)
class _TwoSidedProblem:
    """The lists of all queries, their utility, and both differences between groups.

    Args:
        scores: Those of the candidates, ``float64[q, n]``; -inf in empty positions.
        is_tail: Which candidates are of the long tail, ``bool[q, n]``.
        signs: 1 / n of the group of each query, negative for those that are not active.
        k: The length of a list.
        target: The share of the positions that items of the tail should have.
        accuracy: The weight of the mean utility.
        user_limit: The weight of the difference of the users, which bounds its multiplier.
        item_limit: The weight of the difference of the items.
    """

    scores: FloatArray
    is_tail: BoolArray
    signs: FloatArray
    k: int
    target: float
    accuracy: float
    user_limit: float
    item_limit: float

    @cached_property
    def n_positions(self) -> int:
        """The number of positions of all lists that can be filled."""
        return int(np.minimum(np.isfinite(self.scores).sum(axis=1), self.k).sum())

    def select(self, user: float, item: float) -> Codes:
        """Return the best lists for multipliers of the differences, ``int32[q, k]``."""
        n = len(self.scores)
        weights = self.accuracy - user * self.signs * n
        # the objective of a query times n k
        cost = item * n * self.k / max(self.n_positions, 1)
        blocks = map_blocks(
            lambda start, stop: self._select_block(slice(start, stop), weights, cost),
            n,
            block_size(8 * 6 * self.scores.shape[1]),
        )
        return np.concatenate([np.empty((0, self.k), dtype=np.int32), *blocks])

    def _select_block(self, rows: slice, weights: FloatArray, cost: float) -> Codes:
        scores = self.scores[rows]
        filled = np.isfinite(scores)
        gains = weights[rows, None] * np.where(filled, scores, 0.0) - cost * self.is_tail[rows]
        order = np.argsort(np.where(filled, -gains, np.inf), axis=1, kind="stable")[:, : self.k]
        is_item = np.take_along_axis(filled, order, axis=1)
        positions = np.full((len(scores), self.k), -1, dtype=np.int32)
        positions[:, : order.shape[1]] = _sort_positions(np.where(is_item, order, -1))
        return positions

    def measure(self, positions: Codes) -> tuple[float, FloatArray]:
        """Return the objective of lists, and their differences of users and of items."""
        utilities = self._take(self.scores, positions).sum(axis=1) / self.k
        share = self._take(self.is_tail, positions).sum() / max(self.n_positions, 1)
        gaps = np.array([float(utilities @ self.signs), float(share) - self.target])
        utility = float(utilities.sum()) / max(len(utilities), 1)
        return self.accuracy * utility - self.penalize(gaps), gaps

    def penalize(self, gaps: FloatArray) -> float:
        """Return the weighted sum of the differences."""
        return self.user_limit * abs(float(gaps[_USERS])) + self.item_limit * abs(
            float(gaps[_ITEMS])
        )

    def mix(self, lower: Codes, upper: Codes, side: int) -> Codes:
        """Return lists with items of two lists of each query, whose difference is nearest to 0.

        Both lists of a query have as many items. The items that only one of them has are exchanged
        one by one, the last of ``lower`` for the first of ``upper``, one in every list before a
        second in any.
        """
        n = self.scores.shape[1]
        removed = -np.sort(-_keep_apart(lower, upper, n), axis=1)
        added = _sort_positions(_keep_apart(upper, lower, n))
        steps = self._weigh(added, side) - self._weigh(removed, side)
        path = np.concatenate([[self.measure(lower)[1][side]], steps.T.ravel()])
        n_rounds, rest = divmod(int(np.abs(np.cumsum(path)).argmin()), max(len(lower), 1))
        n_exchanged = n_rounds + (np.arange(len(lower)) < rest)
        is_exchanged = np.arange(self.k) < n_exchanged[:, None]
        kept = _keep_apart(lower, np.where(is_exchanged, removed, -1), n)
        mixed = np.concatenate([kept, np.where(is_exchanged, added, -1)], axis=1)
        return _sort_positions(mixed)[:, : self.k]

    def _weigh(self, positions: Codes, side: int) -> FloatArray:
        """Return what each item adds to a difference, ``float64[q, k]``."""
        if side == _ITEMS:
            return self._take(self.is_tail, positions) / max(self.n_positions, 1)
        return self._take(self.scores, positions) * self.signs[:, None] / self.k

    def _take(self, values: AnyArray, positions: Codes) -> FloatArray:
        """Return the values of the candidates at positions, 0 where there is none."""
        taken = np.take_along_axis(values, np.maximum(positions, 0), axis=1)
        return np.where(positions >= 0, taken, 0.0)


def _sort_positions(positions: AnyArray) -> Codes:
    """Return each row in ascending order, with -1 at its end."""
    highest = np.iinfo(np.int32).max
    ordered = np.sort(np.where(positions < 0, highest, positions), axis=1)
    return np.where(ordered == highest, -1, ordered).astype(np.int32)


def _keep_apart(positions: Codes, without: Codes, n: int) -> Codes:
    """Return the positions, -1 where the same row of ``without`` has them too."""
    rows = np.arange(len(positions), dtype=np.int64)[:, None] * n
    is_shared = np.isin(rows + positions, (rows + without)[without >= 0])
    return np.where(is_shared, -1, positions)


_ROUNDS, _HALVINGS = 4, 24
"""How often both multipliers are adjusted in turn, and how often the interval of one is halved."""


@dataclass(frozen=True, kw_only=True)
class CPFair:
    """Trade scores for equal exposure of head and tail, and equal utility of groups of users.

        maximise  (1 - λ) mean_u U_u - λ [(1 - w) |x - t| + w |mean_active U_u - mean_others U_u|]

    over all lists of k of the candidates at once. λ is the strength, U_u the mean score of the
    list of query u, scaled to 0 to 1 over its candidates, x the share of all positions that hold
    an item of the long tail, and t the share that they should hold, by default that of the items
    that are in the tail, with which an item of the tail is shown as often as one of the head. The
    tail is all but the ``head`` most popular items; the active users are the ``active`` share of
    the queries with the most training items. With the strength 0 the lists are those of the model,
    and selected items keep the order of the model.

    For given multipliers of the two differences the best lists are the k highest of
    a_u s_ui - b [i in the tail], with a_u of the group of u. The multipliers that minimise the
    Lagrangian bound are searched by bisection in turn. Between the lists just below and just above
    a multiplier, items are exchanged one by one, the last of each list first, until the difference
    is closed. Of all lists on the way those with the highest objective are taken. The fact
    ``distance_to_bound`` is how much better an exact solution could be at most.

    The difference of the users may be closed by worse lists of the group that has the better ones:
    the objective does not tell this from better lists of the other group.

    Args:
        strength: The weight λ; a list of weights makes one version each.
        user_weight: The weight w of the users; 0 is fairness to items only, 1 to users only.
        head: The share of the items that are the head.
        active: The share of the queries that are the active users.
        tail_share: The share t; None for that of the items in the tail.
        candidates: How many of the model's best items a list is selected from.

    Raises:
        NothingLeft: All queries are in one group of users.

    Source:
        Naghiaei, Rahmani and Deldjoo, "CPFair: Personalized consumer and producer fairness
        re-ranking for recommender systems", SIGIR 2022. The paper weights the two differences by
        λ1 and λ2, here λ w / (1 - λ) and λ (1 - w) / (1 - λ). It leaves open from which relevance
        the utility of a list is computed before the test; here it is the scores. Its difference of
        exposure per item of head and tail is |x - t| divided by the shares of both.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = "strength"

    strength: Strength = 0.5
    user_weight: Share = 0.5
    head: Annotated[float, Gt(0), Lt(1)] = 0.2
    active: Annotated[float, Gt(0), Lt(1)] = 0.05
    tail_share: Share | None = None
    candidates: NumberOfCandidates = 100

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        search = _Search(self._state_problem(candidates, k))
        search.run()
        record_fact("distance_to_bound", round(max(search.bound - search.best, 0.0), 9))
        return search.positions

    def _state_problem(self, candidates: Candidates, k: int) -> _TwoSidedProblem:
        lengths = np.diff(candidates.histories.indptr)
        is_active = head(lengths, self.active, of="items")
        n_active = int(is_active.sum())
        if not 0 < n_active < lengths.size and self.user_weight > 0:
            message = f"{n_active:,} of {lengths.size:,} queries are active: there is one group"
            remedy = "set another share active, or user_weight: 0"
            raise NothingLeft(message, where="active", remedy=remedy)
        is_head = head(candidates.data.train.item_counts(), self.head, of="items")
        items = candidates.items
        return _TwoSidedProblem(
            np.where(candidates.filled, candidates.scores, -np.inf),
            (items >= 0) & ~is_head[items],
            np.where(is_active, 1 / max(n_active, 1), -1 / max(lengths.size - n_active, 1)),
            k,
            float(np.mean(~is_head)) if self.tail_share is None else self.tail_share,
            accuracy=1 - self.strength,
            user_limit=self.strength * self.user_weight,
            item_limit=self.strength * (1 - self.user_weight),
        )


@dataclass(eq=False)
class _Search:
    """The search of the multipliers: the best lists so far, and a bound of every objective."""

    problem: _TwoSidedProblem
    best: float = -np.inf
    bound: float = np.inf
    positions: Codes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))

    def run(self) -> None:
        """Find the multiplier of one difference for that of the other, in turn."""
        limits = np.array([self.problem.user_limit, self.problem.item_limit])
        sides = [side for side in (_ITEMS, _USERS) if limits[side] > 0]
        multipliers = np.zeros(2)
        self._evaluate(multipliers)
        for _ in range(_ROUNDS if len(sides) > 1 else 1):
            before = multipliers.copy()
            for side in sides:
                multipliers[side] = self._find_root(multipliers, side, limits[side])
            if np.allclose(before, multipliers, rtol=0, atol=1e-9):
                break

    def _find_root(self, multipliers: FloatArray, side: int, limit: float) -> float:
        """Return where a difference that falls with its multiplier is 0, or an end of ±limit."""

        def evaluate(value: float) -> tuple[float, Codes]:
            changed = multipliers.copy()
            changed[side] = value
            gaps, positions = self._evaluate(changed)
            return float(gaps[side]), positions

        (above, lower), (below, upper) = evaluate(-limit), evaluate(limit)
        if below >= 0:
            return limit
        if above <= 0:
            return -limit
        low, high = -limit, limit
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            gap, positions = evaluate(middle)
            if gap > 0:
                low, lower = middle, positions
            else:
                high, upper = middle, positions
        self._keep(self.problem.mix(lower, upper, side))
        return (low + high) / 2

    def _evaluate(self, multipliers: FloatArray) -> tuple[FloatArray, Codes]:
        """Return both differences under multipliers, and the lists."""
        positions = self.problem.select(*multipliers)
        value, gaps = self._keep(positions)
        penalty = self.problem.penalize(gaps)
        self.bound = min(self.bound, value + penalty - float(multipliers @ gaps))
        return gaps, positions

    def _keep(self, positions: Codes) -> tuple[float, FloatArray]:
        """Keep lists if they are the best so far; return their objective and differences."""
        value, gaps = self.problem.measure(positions)
        if value > self.best + 1e-12:
            self.best, self.positions = value, positions
        return value, gaps


_TOLERANCE = 1e-6
"""The largest deviation from 1 of shares that add up to 1."""


@dataclass(frozen=True, kw_only=True)
class DetGreedy:
    """Fill each list so that the values of an item attribute reach target shares.

        at each rank r: the best item of the values a with n_a < ⌊p_a r⌋,
        else of those with n_a < ⌈p_a r⌉, else the best item

    p_a is the target share of the value a, and n_a the number of its items in the list so far. The
    best item is the first of the model's list. Items without a value, and those outside the
    catalogue, are a group of their own.

    Args:
        attribute: A column of the items with one value per item, such as ``price_level``.
        target: ``catalogue`` gives each value its share of the items with training interactions. A
            mapping gives the share of each value by name, ``{"1": 0.3, "2": 0.7}``; the remainder
            to 1 is divided among the other values in proportion to their number of items.
        candidates: How many of the model's best items a list is selected from.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column, an item has several values in it, or no item
            has a value that the target names.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in the column.
        OutOfRange: The shares add up to more than 1, or to less although they name every value.

    Source:
        Geyik, Ambler and Kenthapadi, "Fairness-aware ranking in search and recommendation systems
        with application to LinkedIn talent search", KDD 2019, algorithm 1.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = ""

    attribute: str
    target: Literal["catalogue"] | Mapping[str, Share] = "catalogue"
    candidates: NumberOfCandidates = 100

    def __post_init__(self) -> None:
        """Refuse shares that add up to more than 1."""
        if not isinstance(self.target, str) and math.fsum(self.target.values()) > 1 + _TOLERANCE:
            problem = f"the shares add up to {math.fsum(self.target.values()):g}"
            raise OutOfRange(problem, where="target", remedy="give shares that add up to 1")

    def check_data(self, data: TrainingData) -> None:
        """Refuse an attribute with several values per item, and targets that cannot be reached."""
        self._compute_shares(self._read_values(data), data)

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        values = self._read_values(candidates.data)
        shares = self._compute_shares(values, candidates.data)
        places = shares * np.arange(1, k + 1)[:, None]
        quotas = np.stack([np.floor(places + _SLACK), np.ceil(places - _SLACK)])

        def create(block: Candidates) -> _QuotaLists:
            return _QuotaLists(values.codes[block.items, 0], quotas)

        bytes_per_query = 8 * (4 * candidates.lists.k + 4 * shares.size)
        return select_greedily(candidates, k, create, bytes_per_query=bytes_per_query)

    def _read_values(self, data: TrainingData) -> ItemValues:
        values = read_values(data, self.attribute)
        if (n_values := int(values.counts.max())) > 1:
            problem = f"an item has {n_values} values of {self.attribute!r}"
            remedy = "name a column with one value per item"
            raise UnknownColumn(problem, where="attribute", remedy=remedy)
        return values

    def _compute_shares(self, values: ItemValues, data: TrainingData) -> FloatArray:
        """Return the target share of each value, and of the items without one."""
        groups = values.codes[:-1, 0][data.candidates]
        counts: AnyArray = np.bincount(groups, minlength=values.n_values + 1)
        if isinstance(self.target, str):
            return np.asarray(counts / counts.sum())
        for name in self.target:
            if name not in values.names:
                problem = f"no item has the value {name!r}"
                remedy = suggest(name, values.names)
                raise UnknownColumn(problem, where="target", remedy=remedy)
        targets = np.array([*(self.target.get(name, 0.0) for name in values.names), 0.0])
        is_named = np.array([*(name in self.target for name in values.names), False])
        free_counts = np.where(is_named, 0, counts)
        remainder = max(1 - targets.sum(), 0.0)
        if remainder > _TOLERANCE and not free_counts.any():
            problem = f"the shares add up to {targets.sum():g}, and every value is named"
            remedy = "give shares that add up to 1"
            raise OutOfRange(problem, where="target", remedy=remedy)
        return np.asarray(targets + remainder * free_counts / max(free_counts.sum(), 1))


_Minimum = npt.NDArray[np.int64]


def compute_minimum(k: int, share: float, alpha: float) -> _Minimum:
    """Return the least number of protected items in the first r items, ``int64[k]``.

    It is the smallest m with ``F(m; r, p) > alpha``, where F is the cumulative distribution
    function of the binomial distribution of r draws with probability p: with fewer, the test
    rejects at the level alpha that the items were drawn so.

    >>> compute_minimum(10, 0.5, 0.1).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    """
    from scipy.stats import binom

    counts = np.arange(k + 1)
    below = binom.cdf(counts[None, :], np.arange(1, k + 1)[:, None], share)
    return np.asarray((below <= alpha).sum(axis=1))


def compute_rejection(minimum: _Minimum, share: float) -> float:
    """Return the probability that a list drawn with a share misses a minimum at any rank.

    Computed exactly, by the distribution of the number of protected items over the ranks among
    the lists that have missed no minimum so far.

    >>> compute_rejection(np.array([0, 1]), 0.5)  # both items are not protected
    0.25
    """
    alive = np.zeros(minimum.size + 1)
    alive[0] = 1.0
    for least in minimum:
        alive[1:] = alive[1:] * (1 - share) + alive[:-1] * share
        alive[0] *= 1 - share
        alive[:least] = 0.0
    return float(1 - alive.sum())


def adjust_alpha(k: int, share: float, alpha: float) -> float:
    """Return the largest level of each test at which all k together reject at most ``alpha``.

    The minimum changes only at values of the cumulative distribution function, so these are
    searched, by bisection: the more often one rank rejects, the more often all together do.

    >>> adjust_alpha(1, 0.5, 0.1)
    0.1
    """
    from scipy.stats import binom

    counts = np.arange(k + 1)
    values: FloatArray = binom.cdf(counts[None, :], np.arange(1, k + 1)[:, None], share)
    levels = np.unique(values[values <= alpha])
    low, high = -1, levels.size  # levels[low] keeps the limit, levels[high] does not
    while high - low > 1:
        middle = (low + high) // 2
        rejection = compute_rejection(compute_minimum(k, share, levels[middle]), share)
        low, high = (middle, high) if rejection <= alpha else (low, middle)
    if high == levels.size:
        return alpha
    return float(np.nextafter(levels[high], 0.0))


@dataclass(frozen=True, kw_only=True)
class FAIR:
    """Give every prefix of a list enough protected items to pass a test of a least share.

        m(r) = min {m : F(m; r, p) > α_c},    r = 1, ..., k

    p is the share, F the cumulative distribution function of the binomial distribution of r draws,
    and m(r) the least number of protected items among the first r. A rank takes the best protected
    item if there are fewer than m(r), else the best item. Where no protected candidate is left,
    the best of the others is taken; such lists are counted in a warning. With the share 0 the list
    is that of the model.

    A list is tested at k ranks, so a fair list would fail at one of them too often. With
    ``adjust``, α_c is the largest level at which lists drawn with the share p fail at some of the
    k ranks with the probability α at most, computed exactly; without it α_c is α.

    Args:
        attribute: A column of the items.
        protected: The value of the protected items.
        share: The least share p; a list of shares makes one version each.
        alpha: The significance level α of the test of the whole list.
        adjust: Whether the level of each rank is adjusted for the k tests.
        candidates: How many of the model's best items a list is selected from.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column, or no item has the value.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in the column.

    Source:
        Zehlike, Bonchi, Castillo, Hajian, Megahed and Baeza-Yates, "FA*IR: A fair top-k ranking
        algorithm", CIKM 2017; the exact adjustment as in Zehlike, Sühr and Castillo, "A note on
        the significance adjustment for FA*IR with two protected groups", 2020.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = "share"

    attribute: str
    protected: str
    share: Share = 0.5
    alpha: Annotated[float, Gt(0), Lt(1)] = 0.1
    adjust: bool = True
    candidates: NumberOfCandidates = 100

    def check_data(self, data: TrainingData) -> None:
        """Refuse an attribute or a value that no item has."""
        self._mark_protected(data)

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        is_protected = np.append(self._mark_protected(candidates.data), False)
        alpha = adjust_alpha(k, self.share, self.alpha) if self.adjust else self.alpha
        minimum = compute_minimum(k, self.share, alpha)
        lengths = np.minimum(candidates.filled.sum(axis=1), k)
        least = np.append(0, minimum)[lengths]
        lacking = (is_protected[candidates.items] & candidates.filled).sum(axis=1) < least
        if lacking.any():
            n = int(lacking.sum())
            warn(f"{n:,} of {lacking.size:,} queries have too few protected candidates")
        quotas = np.stack([np.zeros_like(minimum), minimum], axis=1)[None]

        def create(block: Candidates) -> _QuotaLists:
            return _QuotaLists(is_protected[block.items].astype(np.int64), quotas)

        return select_greedily(candidates, k, create, bytes_per_query=8 * 4 * candidates.lists.k)

    def _mark_protected(self, data: TrainingData) -> BoolArray:
        """Return which items are protected, ``bool[n_items]``."""
        values = read_values(data, self.attribute)
        if self.protected not in values.names:
            message = f"no item has the value {self.protected!r}"
            remedy = suggest(self.protected, values.names)
            raise UnknownColumn(message, where="protected", remedy=remedy)
        code = values.names.index(self.protected)
        return np.asarray((values.codes[:-1] == code).any(axis=1))
