"""CPFair: lists that trade scores for fairness to groups of users and of items at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from recbias.core.arrays import BoolArray, Codes, FloatArray
from recbias.core.errors import NothingLeft
from recbias.core.models.rerankers import Candidates
from recbias.core.stage_context import record_fact
from recbias.numerics.inequality import head
from recbias.numerics.sparse.blocks import block_size, map_blocks
from recbias.rerankers.settings import NumberOfCandidates, Share, Strength

ROUNDS, HALVINGS = 4, 24
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
    a_u s_ui - b [i in the head], with a_u of the group of u. The multipliers that minimise the
    Lagrangian bound are searched by bisection in turn, and of all lists on the way those with the
    highest objective are taken. A large weight w may close the difference of users by worse lists
    of the active ones. The fact ``distance_to_bound`` is how much better an exact solution could
    be at most.

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
        problem = _Problem.create(candidates, k, self)
        search = _Search(problem)
        search.run()
        record_fact("distance_to_bound", round(max(search.bound - search.best, 0.0), 9))
        return search.positions


@dataclass(frozen=True, eq=False)
class _Problem:
    """The lists of all queries as one problem with two multipliers.

    ``signs`` are 1 / n of the group of each query, negative for those that are not active, and
    ``is_tail`` has the candidates of the long tail, ``bool[q, n]``.
    """

    scores: FloatArray
    is_tail: BoolArray
    signs: FloatArray
    k: int
    target: float
    accuracy: float
    user_limit: float
    item_limit: float

    @classmethod
    def create(cls, candidates: Candidates, k: int, settings: CPFair) -> _Problem:
        lengths = np.diff(candidates.histories.indptr)
        is_active = head(lengths, settings.active, of="items")
        n_active = int(is_active.sum())
        if not 0 < n_active < lengths.size and settings.user_weight > 0:
            message = f"{n_active:,} of {lengths.size:,} queries are active: there is one group"
            remedy = "set another share active, or user_weight: 0"
            raise NothingLeft(message, where="active", remedy=remedy)
        signs = np.where(is_active, 1 / max(n_active, 1), -1 / max(lengths.size - n_active, 1))
        is_head = head(candidates.data.train.item_counts(), settings.head, of="items")
        share = float(np.mean(~is_head)) if settings.tail_share is None else settings.tail_share
        items = candidates.items
        return cls(
            np.where(candidates.filled, candidates.scores, -np.inf),
            (items >= 0) & ~is_head[items],
            signs,
            k,
            share,
            accuracy=1 - settings.strength,
            user_limit=settings.strength * settings.user_weight,
            item_limit=settings.strength * (1 - settings.user_weight),
        )

    def select(self, user: float, item: float) -> tuple[Codes, float, float]:
        """Return the best lists for multipliers, and the differences of users and of items."""
        n = len(self.scores)
        parts = map_blocks(
            lambda start, stop: self._select_block(slice(start, stop), user, item),
            n,
            block_size(8 * 6 * self.scores.shape[1]),
        )
        empty = np.empty((0, self.k), dtype=np.int32)
        positions = np.concatenate([empty, *(part[0] for part in parts)])
        utilities = np.concatenate([np.empty(0), *(part[1] for part in parts)])
        n_tail = sum(part[2] for part in parts)
        share = n_tail / max(int((positions >= 0).sum()), 1)
        return positions, float(utilities @ self.signs), share - self.target

    def _select_block(
        self, rows: slice, user: float, item: float
    ) -> tuple[Codes, FloatArray, int]:
        scores, is_tail, signs = self.scores[rows], self.is_tail[rows], self.signs[rows]
        n = len(self.scores)
        weights = (self.accuracy - user * signs * n)[:, None]
        finite = np.where(np.isfinite(scores), scores, 0.0)
        values = np.where(np.isfinite(scores), weights * finite - item * is_tail, -np.inf)
        order = np.argsort(-values, axis=1, kind="stable")[:, : self.k]
        chosen = np.sort(order, axis=1)
        is_item = np.isfinite(np.take_along_axis(scores, chosen, axis=1))
        utilities = np.where(is_item, np.take_along_axis(finite, chosen, axis=1), 0.0).sum(axis=1)
        n_tail = int((np.take_along_axis(is_tail, chosen, axis=1) & is_item).sum())
        positions = np.full((len(scores), self.k), -1, dtype=np.int32)
        # empty candidates are last, so that they are at the end of a row
        positions[:, : chosen.shape[1]] = np.where(is_item, chosen, -1)
        return positions, utilities / self.k, n_tail

    def measure(self, positions: Codes, user_gap: float, item_gap: float) -> float:
        """Return the objective of lists."""
        at = np.maximum(positions, 0)
        taken = np.where(positions >= 0, np.take_along_axis(self.scores, at, axis=1), 0.0)
        utility = float(taken.sum() / (max(len(taken), 1) * self.k))
        gaps = self.user_limit * abs(user_gap) + self.item_limit * abs(item_gap)
        return self.accuracy * utility - gaps


@dataclass(eq=False)
class _Search:
    """The search of the multipliers: the best lists so far, and a bound of every objective."""

    problem: _Problem
    best: float = -np.inf
    bound: float = np.inf
    positions: Codes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))

    def run(self) -> None:
        """Find the multiplier of one difference for that of the other, in turn."""
        has_users, has_items = self.problem.user_limit > 0, self.problem.item_limit > 0
        user = item = 0.0
        self._evaluate(user, item)
        for _ in range(ROUNDS if has_users and has_items else 1):
            before = (user, item)
            if has_items:
                item = _find_root(partial(self._compute_item_gap, user), self.problem.item_limit)
            if has_users:
                user = _find_root(partial(self._compute_user_gap, item), self.problem.user_limit)
            if np.allclose(before, (user, item), rtol=0, atol=1e-9):
                break

    def _compute_item_gap(self, user: float, item: float) -> float:
        return self._evaluate(user, item)[1]

    def _compute_user_gap(self, item: float, user: float) -> float:
        return self._evaluate(user, item)[0]

    def _evaluate(self, user: float, item: float) -> tuple[float, float]:
        """Return both differences under multipliers; keep the lists if they are the best."""
        problem = self.problem
        positions, user_gap, item_gap = problem.select(user, item)
        value = problem.measure(positions, user_gap, item_gap)
        if value > self.best + 1e-12:
            self.best, self.positions = value, positions
        gaps = problem.user_limit * abs(user_gap) + problem.item_limit * abs(item_gap)
        self.bound = min(self.bound, value + gaps - user * user_gap - item * item_gap)
        return user_gap, item_gap


def _find_root(compute_gap: Callable[[float], float], limit: float) -> float:
    """Return where a gap that falls with its multiplier is 0, or the nearer end of ±limit."""
    if compute_gap(limit) >= 0:
        return limit
    if compute_gap(-limit) <= 0:
        return -limit
    low, high = -limit, limit
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if compute_gap(middle) > 0 else (low, middle)
    return (low + high) / 2
