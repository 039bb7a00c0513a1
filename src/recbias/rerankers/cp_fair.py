"""CPFair: lists that trade scores for fairness to groups of users and of items at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from recbias.core.arrays import Codes, FloatArray
from recbias.core.errors import NothingLeft
from recbias.core.models.rerankers import Candidates
from recbias.core.stage_context import record_fact
from recbias.numerics.inequality import head
from recbias.rerankers.settings import NumberOfCandidates, Share, Strength
from recbias.rerankers.two_sided_problem import ITEMS, USERS, TwoSidedProblem

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

    def _state_problem(self, candidates: Candidates, k: int) -> TwoSidedProblem:
        lengths = np.diff(candidates.histories.indptr)
        is_active = head(lengths, self.active, of="items")
        n_active = int(is_active.sum())
        if not 0 < n_active < lengths.size and self.user_weight > 0:
            message = f"{n_active:,} of {lengths.size:,} queries are active: there is one group"
            remedy = "set another share active, or user_weight: 0"
            raise NothingLeft(message, where="active", remedy=remedy)
        is_head = head(candidates.data.train.item_counts(), self.head, of="items")
        items = candidates.items
        return TwoSidedProblem(
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

    problem: TwoSidedProblem
    best: float = -np.inf
    bound: float = np.inf
    positions: Codes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))

    def run(self) -> None:
        """Find the multiplier of one difference for that of the other, in turn."""
        limits = np.array([self.problem.user_limit, self.problem.item_limit])
        sides = [side for side in (ITEMS, USERS) if limits[side] > 0]
        multipliers = np.zeros(2)
        self._evaluate(multipliers)
        for _ in range(ROUNDS if len(sides) > 1 else 1):
            before = multipliers.copy()
            for side in sides:
                multipliers[side] = self._find_root(multipliers, side, limits[side])
            if np.allclose(before, multipliers, rtol=0, atol=1e-9):
                break

    def _find_root(self, multipliers: FloatArray, side: int, limit: float) -> float:
        """Return where a difference that falls with its multiplier is 0, or an end of ±limit.

        The lists on both sides of the root are mixed.
        """

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
        for _ in range(HALVINGS):
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
