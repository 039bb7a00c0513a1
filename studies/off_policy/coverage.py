"""How often intervals of values of candidates hold the truth, in worlds of which it is known.

    python studies/off_policy/coverage.py 1000

Users of two groups have one to four requests of three items each, and a rate of clicks of their
own. Items are drawn independently for each position, with known probabilities.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from recbias.config.specs import Grouping
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.evidence import Evidence, Impressions, Policy
from recbias.core.queries import Queries
from recbias.metrics.logged import PolicyValue
from recbias.runner.grouping import GroupMeasurements

N_ITEMS, N_POSITIONS = 6, 3
ROWS = ("ips", "snips", "dr", "direct")
SLATES = ("iips", "rips", "sips", "slate_pi")


@dataclass(frozen=True)
class World:
    """A world: what users click, and what the log and two candidates show.

    Args:
        interaction: How much less an item is clicked below an attractive one.
        clicks: The mean rate of clicks.
        wrong: The factor of a wrong propensity of the first item.
        hidden: Whether the log never shows the last item.
    """

    name: str
    n_users: int = 600
    requests: int = 4
    clicks: float = 0.2
    interaction: float = 0.0
    wrong: float = 1.0
    hidden: bool = False

    @property
    def logging(self) -> np.ndarray:
        """P(item at position) of the log, ``[position, item]``."""
        weights = np.array([1.0, 2, 3, 3, 2, 1]) * np.ones((N_POSITIONS, 1))
        if self.hidden:
            weights[:, -1] = 0
        return weights / weights.sum(axis=1, keepdims=True)

    @property
    def candidates(self) -> np.ndarray:
        """The same of the candidates, ``[candidate, position, item]``."""
        weights = np.array([[1.0, 2, 2, 3, 3, 2], [3.0, 2, 2, 1, 1, 1]])[:, None, :]
        weights = weights * np.ones((1, N_POSITIONS, 1))
        return weights / weights.sum(axis=2, keepdims=True)

    @property
    def rates(self) -> np.ndarray:
        """P(click) of an average user, ``[group, position, item]``."""
        item = np.linspace(0.4, 1.6, N_ITEMS)
        group = np.stack([item, 0.7 * item[::-1]])
        return self.clicks * group[:, None, :] * np.array([1.2, 1.0, 0.8])[None, :, None]

    def find_truth(self, policy: np.ndarray, *, slate: bool) -> np.ndarray:
        """The value of each group: of an impression, or of a request."""
        pull = np.linspace(0.4, 1.6, N_ITEMS)
        above = np.ones(N_POSITIONS)
        above[1:] = 1 - self.interaction * (policy[:-1] @ pull) / 1.6
        values = (self.rates * policy).sum(axis=2) * above
        return values.sum(axis=1) if slate else values.mean(axis=1)

    def draw(self, rng: np.random.Generator) -> tuple[Evidence, np.ndarray]:
        """A log, and the group of each user."""
        n, n_requests = self.n_users, rng.integers(1, self.requests + 1, self.n_users)
        groups = rng.integers(2, size=n)
        effect = rng.gamma(4.0, 0.25, n).clip(max=2.0) if self.requests > 1 else np.ones(n)
        users = np.repeat(np.arange(n), n_requests * N_POSITIONS).astype(np.int32)
        size = users.size
        positions = np.tile(np.arange(N_POSITIONS), size // N_POSITIONS)
        cuts = self.logging.cumsum(axis=1)
        items = (rng.random(size)[:, None] > cuts[positions]).sum(axis=1).clip(max=N_ITEMS - 1)
        p = self.logging[positions, items]
        chance = self.rates[groups[users], positions, items] * effect[users] / _MEAN[self.requests > 1]
        pull = np.linspace(0.4, 1.6, N_ITEMS)[items]
        below = positions > 0
        chance[below] *= 1 - self.interaction * pull[np.flatnonzero(below) - 1] / 1.6
        block = Impressions(
            users,
            np.arange(size) // N_POSITIONS,
            items.astype(np.int32),
            (positions + 1).astype(np.int32),
            (rng.random(size) < chance).astype(np.float64),
            p * np.where(items == 0, self.wrong, 1.0),
            np.full(size, "", dtype=object),
        )
        ids = Vocabulary.of([str(number) for number in range(n)])
        labels = Attributes(ids, pd.DataFrame({"group": groups.astype(str)}), "query")
        queries = Queries(ids, labels, np.arange(n, dtype=np.int32))
        items_of = Vocabulary.of([str(number) for number in range(N_ITEMS)])
        return Evidence(queries, items_of, log=_Log(block), metric="m"), groups


_MEAN = {
    True: float(np.random.default_rng(0).gamma(4.0, 0.25, 10**7).clip(max=2.0).mean()),
    False: 1.0,
}


@dataclass(frozen=True)
class _Log:
    block: Impressions
    has_positions = has_propensities = True

    def read_blocks(self) -> Iterator[Impressions]:
        """Yield the rows."""
        yield self.block


def make_policy(shares: np.ndarray, n_users: int) -> Policy:
    """A candidate that is the same for all users."""
    positions, items = np.divmod(np.arange(shares.size), N_ITEMS)
    none = np.zeros(shares.size, dtype=np.int32)
    positions, items = ((column.astype(np.int32)) for column in (positions + 1, items))
    return Policy(items, positions, none, shares.ravel(), np.zeros(n_users, dtype=np.int32))


def holds(row: object, truth: float) -> bool:
    """Whether an interval holds the truth."""
    return row.ci_low <= truth <= row.ci_high  # type: ignore[attr-defined]


def study(world: World, n_worlds: int, estimators: tuple[str, ...]) -> None:
    """Print the coverage of values, gaps of two groups and differences of two candidates."""
    hits: Counter[tuple[str, str]] = Counter()
    policies = [make_policy(shares, world.n_users) for shares in world.candidates]
    for seed in range(n_worlds):
        evidence, groups = world.draw(np.random.default_rng(seed))
        by_group = GroupMeasurements("m", Grouping("group", "difference"), "higher")
        for estimator in estimators:
            slate = estimator in SLATES
            truths = [world.find_truth(c, slate=slate) for c in world.candidates]
            metric = PolicyValue(estimator=estimator)
            with collect_warnings():
                rows = [metric.measure(replace(evidence, policy=one)) for one in policies]
                gap = by_group(evidence.queries, rows[0])
                each = replace(by_group, grouping=Grouping("group", "groups"))(
                    evidence.queries, rows[0]
                )
            share = np.array([0.5, 0.5])
            hits[estimator, "value"] += holds(rows[0][0], truths[0] @ share)
            ends = {(row.group[-1], row.target): row for row in each}
            for group, truth in zip("01", truths[0], strict=True):
                low = ends.get((group, "bound=lowest"), ends[group, ""])
                high = ends.get((group, "bound=highest"), ends[group, ""])
                hits[estimator, f"group {group}"] += low.ci_low <= truth <= high.ci_high
            if len(rows[0]) == 1:
                hits[estimator, "gap"] += holds(gap[0], abs(truths[0][0] - truths[0][1]))
                z = np.subtract(*(row[0].units.compared for row in rows))
                half = 1.96 * z.std(ddof=1) / np.sqrt(z.size)
                truth = (truths[0] - truths[1]) @ share
                hits[estimator, "difference"] += abs(z.mean() - truth) <= half
    for (estimator, what), n in hits.items():
        print(f"{world.name},{estimator},{what},{n / n_worlds:.3f}", flush=True)


if __name__ == "__main__":
    n = int(sys.argv[1])
    print("world,estimator,quantity,coverage")
    study(World("independent"), n, (*ROWS, *SLATES))
    study(World("rare clicks", n_users=3400, requests=1, clicks=0.0046), n, ROWS)
    study(World("items below an attractive one", interaction=0.8), n, (*ROWS, *SLATES))
    study(World("wrong propensity", wrong=0.5), n, ("ips", "snips", "dr"))
    study(World("never shown", hidden=True), n, ("ips", "snips", "dr", "iips", "rips", "sips", "slate_pi"))
