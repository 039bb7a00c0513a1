"""Logs of impressions in worlds of which the value of what is, or would be, shown is known.

Users of two groups have one to four requests of three items each, and a rate of clicks of their
own. Items are drawn independently for each position, with known probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pandas as pd
from tally import Measurements, Study, World

from recbias.config.specs import Grouping
from recbias.core.dataset import Attributes, Queries, Vocabulary
from recbias.core.evidence import Evidence, Impressions, Policy
from recbias.metrics.logged import ClickThroughRate, PolicyValue, ShownNDCG, ShownShare
from recbias.runner.grouping import GroupMeasurements

N_ITEMS, N_POSITIONS = 6, 3
ROWS = ("ips", "snips", "dr", "direct")
SLATES = ("iips", "rips", "sips", "slate_pi")


@dataclass(frozen=True)
class Shop:
    """A shop: what users click, and what the log and two candidates show.

    Args:
        interaction: How much less an item is clicked below an attractive one.
        clicks: The mean rate of clicks.
        flat: Whether all items are clicked as often.
    """

    n_users: int = 600
    requests: int = 4
    clicks: float = 0.2
    interaction: float = 0.0
    flat: bool = False

    @property
    def logging(self) -> np.ndarray:
        """P(item at position) of the log, ``[position, item]``."""
        weights = np.array([1.0, 2, 3, 3, 2, 1]) * np.ones((N_POSITIONS, 1))
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
        item = np.ones(N_ITEMS) if self.flat else np.linspace(0.4, 1.6, N_ITEMS)
        group = np.stack([item, item if self.flat else 0.7 * item[::-1]])
        return self.clicks * group[:, None, :] * np.array([1.2, 1.0, 0.8])[None, :, None]

    def find_truth(self, policy: np.ndarray, *, slate: bool) -> np.ndarray:
        """The value of each group: of an impression, or of a request."""
        pull = np.linspace(0.4, 1.6, N_ITEMS)
        above = np.ones(N_POSITIONS)
        above[1:] = 1 - self.interaction * (policy[:-1] @ pull) / 1.6
        values = (self.rates * policy).sum(axis=2) * above
        return values.sum(axis=1) if slate else values.mean(axis=1)

    def draw(self, rng: np.random.Generator) -> Evidence:
        """A log."""
        n, n_requests = self.n_users, rng.integers(1, self.requests + 1, self.n_users)
        groups = rng.integers(2, size=n)
        effect = rng.gamma(4.0, 0.25, n).clip(max=2.0) if self.requests > 1 else np.ones(n)
        users = np.repeat(np.arange(n), n_requests * N_POSITIONS).astype(np.int32)
        size = users.size
        positions = np.tile(np.arange(N_POSITIONS), size // N_POSITIONS)
        cuts = self.logging.cumsum(axis=1)
        items = (rng.random(size)[:, None] > cuts[positions]).sum(axis=1).clip(max=N_ITEMS - 1)
        p = self.logging[positions, items]
        scale = effect[users] / _MEAN[self.requests > 1]
        chance = self.rates[groups[users], positions, items] * scale
        pull = np.linspace(0.4, 1.6, N_ITEMS)[items]
        below = positions > 0
        chance[below] *= 1 - self.interaction * pull[np.flatnonzero(below) - 1] / 1.6
        block = Impressions(
            users,
            np.arange(size) // N_POSITIONS,
            items.astype(np.int32),
            (positions + 1).astype(np.int32),
            (rng.random(size) < chance).astype(np.float64),
            p,
            np.where(np.arange(size) // N_POSITIONS % 2, "b", "a").astype(object),
        )
        return make_evidence(block, groups)


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

    read_lists = read_blocks


def make_evidence(block: Impressions, groups: np.ndarray, n_items: int = N_ITEMS) -> Evidence:
    """A log of users of two groups, whose items are of the kinds x and y in turn."""
    ids = Vocabulary.of([str(number) for number in range(groups.size)])
    labels = Attributes(ids, pd.DataFrame({"group": groups.astype(str)}), "query")
    queries = Queries(ids, labels, np.arange(groups.size, dtype=np.int32))
    catalogue = Vocabulary.of([str(number) for number in range(n_items)])
    kinds = Attributes(catalogue, pd.DataFrame({"kind": np.resize(["x", "y"], n_items)}))
    shown = Policy.of_shown()
    return Evidence(queries, catalogue, items=kinds, log=_Log(block), shown=shown, metric="m")


def make_policy(shares: np.ndarray, n_users: int) -> Policy:
    """A candidate that is the same for all users."""
    positions, items = np.divmod(np.arange(shares.size), N_ITEMS)
    none = np.zeros(shares.size, dtype=np.int32)
    positions, items = ((column.astype(np.int32)) for column in (positions + 1, items))
    return Policy(items, positions, none, shares.ravel(), np.zeros(n_users, dtype=np.int32))


def plant(shop: Shop, seed: int) -> Evidence:
    """A log of a seed, and a candidate."""
    policy = make_policy(shop.candidates[0], shop.n_users)
    return replace(shop.draw(np.random.default_rng([seed, 8])), policy=policy)


def draw_pair(shop: Shop, seed: int) -> tuple[Evidence, Evidence]:
    """Two candidates, and two variants, which do not differ where items are clicked as often."""
    evidence = shop.draw(np.random.default_rng([seed, 9]))
    policies = [make_policy(shares, shop.n_users) for shares in shop.candidates]
    a, b = (
        replace(evidence, policy=policy, shown=Policy.of_shown(variant))
        for policy, variant in zip(policies, "ab", strict=True)
    )
    return a, b


def measure_groups(metric: PolicyValue, evidence: Evidence) -> Measurements:
    """The value, and that of each group."""
    rows = replace(metric, **metric.fit_by("group")).measure(evidence)
    by_group = GroupMeasurements("m", Grouping("group", "groups"), "higher")
    return [*rows, *by_group(evidence.queries, rows)]


def find_truths(shop: Shop, study: Study, _seed: int) -> Mapping[str, float]:
    """The values of a study."""
    name, _, estimator = study.name.partition(", ")
    if name == "shown_nDCG":
        return {"": simulate_ndcg(shop)}
    if name == "shown_share":
        return {
            f"kind={kind}": shop.logging[:, at::2].sum() / N_POSITIONS
            for at, kind in enumerate("xy")
        }
    policy = shop.logging if name == "click_through_rate" else shop.candidates[0]
    a, b = shop.find_truth(policy, slate=estimator in SLATES).tolist()
    gap = {"group=0 - group=1 (welch_t)": a - b, "group=0 - group=1 (newcombe)": a - b}
    return {"": (a + b) / 2, "group=0": a, "group=1": b, **gap}


@cache
def simulate_ndcg(shop: Shop) -> float:
    """The mean over many requests."""
    many = replace(shop, n_users=300_000)
    return ShownNDCG().measure(many.draw(np.random.default_rng(1)))[0].value


def list_studies(estimators: tuple[str, ...]) -> tuple[Study, ...]:
    """The studies of some estimators."""
    return tuple(
        Study(f"policy_value, {name}", partial(measure_groups, PolicyValue(estimator=name)))
        for name in estimators
    )


SHOWN = (
    Study("click_through_rate", ClickThroughRate().measure, ("",)),
    Study("shown_nDCG", ShownNDCG().measure),
    Study("shown_share", ShownShare(attribute="kind").measure),
)
OURS, RARE = Shop(), Shop(n_users=3400, requests=1, clicks=0.0046)
PULLED = Shop(interaction=0.8)
_KNOWN = "the probabilities of the click model"

WORLDS = (
    World(
        "logs",
        _KNOWN,
        (*SHOWN, *list_studies((*ROWS, *SLATES))),
        planted=partial(plant, OURS),
        truth=partial(find_truths, OURS),
        null=partial(draw_pair, Shop(flat=True)),
        plants="rates of clicks by item, position, group and user",
    ),
    World(
        "logs with few clicks",
        _KNOWN,
        list_studies(ROWS),
        planted=partial(plant, RARE),
        truth=partial(find_truths, RARE),
        plants="46 clicks in 10,000 impressions",
    ),
    World(
        "logs with attractive items above",
        _KNOWN,
        list_studies(("rips", "sips")),
        planted=partial(plant, PULLED),
        truth=partial(find_truths, PULLED),
        plants="fewer clicks below an attractive item",
    ),
)
