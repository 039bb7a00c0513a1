"""How often intervals of impression logs hold the truth where an assumption does not.

    python studies/calibration/assumption_studies.py                # 300 worlds a row
    python studies/calibration/assumption_studies.py --worlds 40    # quicker

Each estimator is measured in a world that breaks its assumption, beside one that does not, or one
of a weaker assumption. The users of two groups have hidden types with opposite tastes, so that the
groups differ too.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import numpy as np
import pandas as pd
from log_studies import N_POSITIONS, ROWS, SLATES, make_evidence
from tally import LEVEL, collect_figures, compute_band

from recbias.config.specs import Grouping
from recbias.core.dataset import Attributes
from recbias.core.evidence import Evidence, Impressions, Policy
from recbias.metrics.accuracy import Propensity, PropensityNDCG
from recbias.metrics.assumptions import PositionBias
from recbias.metrics.logged import PolicyValue
from recbias.runner.grouping import GroupMeasurements
from support.worlds.evidence_worlds import make_evidence as make_lists_evidence
from support.worlds.evidence_worlds import make_lists, make_vocabulary

WORLDS, MANY = 300, 100_000
TASTE = np.stack([np.linspace(0.4, 1.6, 6), np.linspace(1.6, 0.4, 6)])
"""How much each type of user clicks an item, ``[type, item]``."""
EXAMINED = np.array([1.2, 1.0, 0.8])
POPULARITY, K = np.geomspace(1.0, 0.05, 40), 10
NDCG_OF_ALL = float((1 / np.log2(np.arange(K) + 2)).sum() / POPULARITY.size)
"""nDCG of lists of K different items, where users want any item with the same probability."""
GAP = "group=0 - group=1 (welch_t)"


@dataclass(frozen=True)
class LogWorld:
    """Users with one to four requests of three items each, and a candidate.

    Args:
        above: How much less an item is clicked below an attractive one.
        below: How much less an item is clicked above an attractive one.
        repeats: Whether items are clicked that a list holds more than once.
        selected: Whether items are shown to users who like them; otherwise all alike.
        recorded: Whether propensities are those of the user; otherwise their mean over users.
        missing: The rate of clicks of an item that only the candidate shows; none by default.
    """

    n_users: int = 1500
    above: float = 0.0
    below: float = 0.0
    repeats: bool = True
    selected: bool = False
    recorded: bool = True
    missing: float | None = None

    @property
    def n_items(self) -> int:
        """The items of the candidate."""
        return 6 + (self.missing is not None)

    @property
    def logging(self) -> np.ndarray:
        """P(item) of the log, ``[type, item]``."""
        weights = TASTE**2 if self.selected else np.ones_like(TASTE)
        weights = np.pad(weights, ((0, 0), (0, self.n_items - 6)))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @property
    def candidate(self) -> np.ndarray:
        """P(item) of the candidate, ``[item]``."""
        weights = np.array([1.0, 1, 1, 2, 4, 6, 2])[: self.n_items]
        return np.asarray(weights / weights.sum())

    def draw(
        self, rng: np.random.Generator, policy: np.ndarray | None = None
    ) -> tuple[Impressions, np.ndarray, np.ndarray]:
        """Impressions of the log or of a policy, the groups, and the rate of clicks of each."""
        groups = rng.integers(2, size=self.n_users)
        types = (rng.random(self.n_users) < np.array([0.3, 0.7])[groups]).astype(np.int64)
        n_requests = rng.integers(1, 5, self.n_users)
        users = np.repeat(np.arange(self.n_users), n_requests * N_POSITIONS).astype(np.int32)
        at = np.arange(users.size)
        shares = self.logging if policy is None else np.stack([policy, policy])
        cuts = shares.cumsum(axis=1)[:, :-1]
        items = (rng.random(users.size)[:, None] > cuts[types[users]]).sum(axis=1)
        taste = np.pad(TASTE, ((0, 0), (0, 1)))
        chance = 0.2 * taste[types[users], items] * EXAMINED[at % N_POSITIONS]
        chance *= np.array([1.0, 0.7])[groups[users]]
        if self.missing is not None:
            chance[items == 6] = self.missing
        pull = np.pad(TASTE[0], (0, 1))[items].reshape(-1, N_POSITIONS) / 1.6
        factors = np.ones_like(pull)
        factors[:, 1:] *= 1 - self.above * pull[:, :-1]
        factors[:, :-1] *= 1 - self.below * pull[:, 1:]
        if not self.repeats:
            of = items.reshape(-1, N_POSITIONS)
            factors *= (of[:, :, None] == of[:, None, :]).sum(axis=2) == 1
        chance *= factors.ravel()
        known = shares if self.recorded else np.broadcast_to(shares.mean(axis=0), shares.shape)
        block = Impressions(
            users,
            at // N_POSITIONS,
            items.astype(np.int32),
            (at % N_POSITIONS + 1).astype(np.int32),
            (rng.random(users.size) < chance).astype(np.float64),
            known[types[users], items],
            np.full(users.size, "", dtype=object),
        )
        return block, groups, chance

    def plant(self, seed: int) -> Evidence:
        """A log of a seed, and the candidate."""
        block, groups, _ = self.draw(np.random.default_rng([seed, 11]))
        items, none = np.arange(self.n_items, dtype=np.int32), np.zeros(0, dtype=np.int32)
        group_of = np.zeros(self.n_users, dtype=np.int32)
        in_one = np.zeros(self.n_items, dtype=np.int32)
        policy = Policy(items, none, in_one, self.candidate, group_of)
        evidence: Evidence = make_evidence(block, groups, self.n_items)
        return replace(evidence, policy=policy)


@cache
def find_truth(world: LogWorld) -> Mapping[str, float]:
    """The mean rate of clicks of an impression of the candidate, and its gap."""
    many = replace(world, n_users=MANY)
    block, groups, chance = many.draw(np.random.default_rng(1), world.candidate)
    of = groups[block.users]
    a, b = chance[of == 0].mean(), chance[of == 1].mean()
    return {"": float(chance.mean()), GAP: float(a - b)}


def observe_value(
    estimator: str, world: LogWorld, seed: int, *, by_group: bool = True
) -> list[bool | None]:
    """Whether the intervals of the value and of the gap hold the truth; None without one.

    Rewards are estimated by group, or are those of all users.
    """
    metric, evidence = PolicyValue(estimator=estimator), world.plant(seed)  # type: ignore[arg-type]
    if by_group:
        metric = replace(metric, **metric.fit_by("group"))
    rows = metric.measure(evidence)
    of_groups = GroupMeasurements("m", Grouping("group", "groups"), "higher")
    found = collect_figures([*rows, *of_groups(evidence.queries, rows)])
    return check(found, find_truth(world), N_POSITIONS if estimator in SLATES else 1)


def check(
    found: Mapping[str, tuple[float, float, float]], truth: Mapping[str, float], times: int
) -> list[bool | None]:
    """Whether intervals hold the truth."""
    held: list[bool | None] = []
    for name, value in truth.items():
        _, low, high = found.get(name, (np.nan,) * 3)
        held.append(None if np.isnan(low) else bool(low <= times * value <= high))
    return held


def observe_bounds(estimator: str, world: LogWorld, seed: int) -> list[bool | None]:
    """Whether the truth lies between the ends of the intervals of both bounds."""
    rows = PolicyValue(estimator=estimator).measure(world.plant(seed))  # type: ignore[arg-type]
    found = collect_figures(rows)
    low, high = found["bound=lowest"][1], found["bound=highest"][2]
    times = N_POSITIONS if estimator in SLATES else 1
    return [bool(low <= times * find_truth(world)[""] <= high), None]


def observe_positions(within: str, order: str, seed: int) -> list[bool | None]:
    """Whether the intervals of the positions 2 and 3 hold the truth.

    Three items are shown in an order that is drawn (``drawn``), or tends to have the better items
    above (``better``), or those that the user likes (``liked``), or is fixed (``fixed``).
    """
    rng = np.random.default_rng([seed, 12])
    n_users, n_requests = 300, 10
    likes = rng.random((n_users, 3)).argsort(axis=1)  # of each user: 0 is liked least
    relevance = np.array([0.15, 0.3, 0.45])
    rates = np.stack([relevance] * n_users) if order != "liked" else relevance[likes]
    keys = rng.random((n_users, n_requests, 3))
    if order == "fixed":
        keys[:] = -relevance
    elif order != "drawn":
        keys -= 0.8 * rates[:, None, :] / relevance.max()
    items = keys.argsort(axis=2)
    users = np.repeat(np.arange(n_users), n_requests * 3).astype(np.int32)
    at, shown = np.arange(users.size), items.ravel()
    chance = rates[users, shown] * (EXAMINED / EXAMINED[0])[at % 3]
    block = Impressions(
        users,
        at // 3,
        shown.astype(np.int32),
        (at % 3 + 1).astype(np.int32),
        (rng.random(users.size) < chance).astype(np.float64),
        np.ones(users.size),
        np.full(users.size, "", dtype=object),
    )
    evidence = make_evidence(block, np.zeros(n_users, dtype=np.int64))
    found = collect_figures(PositionBias(within=within).measure(evidence))  # type: ignore[arg-type]
    truth = {f"position={k + 1}": EXAMINED[k] / EXAMINED[0] for k in (1, 2)}
    return check(found, truth, 1)


def observe_accuracy(power: float, seed: int) -> list[bool | None]:
    """Whether the interval of nDCG holds that of a test set without unseen items.

    The item that a user wants is in the test set if it is seen, with the probability popularity;
    popularity^power is assumed. The lists have more popular items.
    """
    rng = np.random.default_rng([seed, 13])
    lists = draw_lists(rng, 2000)
    wanted = rng.integers(POPULARITY.size, size=2000)
    seen = rng.random(2000) < POPULARITY[wanted]
    ids = make_vocabulary("i", POPULARITY.size)
    items = Attributes(ids, pd.DataFrame({"seen": POPULARITY**power}), "item")
    evidence = make_lists_evidence(
        make_lists(lists[seen].tolist()),
        wanted[seen, None].tolist(),
        items=items,
        n_items=POPULARITY.size,
    )
    metric = PropensityNDCG(k=K, propensity=Propensity(of="seen"), estimator="ips")
    return [*check(collect_figures(metric.measure(evidence)), {"": NDCG_OF_ALL}, 1), None]


def draw_lists(rng: np.random.Generator, n: int) -> np.ndarray:
    """Lists in which popular items are more frequent, ``[user, rank]``."""
    scores = 2.0 * np.log(POPULARITY) + rng.gumbel(size=(n, POPULARITY.size))
    return scores.argsort(axis=1)[:, : -K - 1 : -1]


SELECTED = LogWorld(selected=True)
MEAN = replace(SELECTED, recorded=False)
ABOVE, BELOW, ONCE = LogWorld(above=1.0), LogWorld(below=1.0), LogWorld(repeats=False)
Observe: TypeAlias = Callable[[int], list[bool | None]]
TRUE = "items are shown to users who like them, with their propensities in the log"
AVERAGE = (
    "items are shown to users who like them, but the log has the mean propensities of all users"
)


def list_values(
    world: LogWorld, text: str, **estimators: bool
) -> list[tuple[str, str, str, Observe]]:
    """The rows of estimators in a world, with whether their assumption holds."""
    return [
        (
            f"policy_value, {name}",
            text,
            "yes" if holds else "no",
            partial(observe_value, name, world),
        )
        for name, holds in estimators.items()
    ]


ROWS_OF_PAGE: tuple[tuple[str, str, str, Observe], ...] = (
    *list_values(SELECTED, TRUE, ips=True, snips=True, dr=True, direct=False),
    *list_values(MEAN, AVERAGE, **dict.fromkeys(("ips", "snips", "dr", *SLATES), False)),
    (
        "policy_value, direct",
        "groups like opposite items, but have the rewards of all users",
        "of all users only",
        partial(observe_value, "direct", LogWorld(), by_group=False),
    ),
    *list_values(ABOVE, "attractive items take clicks from those below", iips=False, rips=True),
    *list_values(BELOW, "attractive items take clicks from those above", rips=False, sips=True),
    *list_values(ONCE, "items that a list repeats get no clicks", slate_pi=False, sips=True),
    *(
        (
            f"policy_value, {name}: bounds",
            f"12% of what is shown was never shown, and {text} clicked",
            "not needed",
            partial(observe_bounds, name, LogWorld(missing=rate)),
        )
        for rate, text in ((0.0, "is never"), (1.0, "is always"))
        for name in (*ROWS, *SLATES)
    ),
    *(
        (f"position_bias, {within}", text, holds, partial(observe_positions, within, order))
        for within, order, text, holds in (
            ("random", "drawn", "positions are drawn", "yes"),
            ("random", "better", "better items are higher", "no"),
            ("items", "better", "better items are higher", "yes"),
            ("items", "liked", "items are higher for users who like them", "no"),
            ("users", "liked", "items are higher for users who like them", "yes"),
            ("items", "fixed", "no item is at two positions", "no"),
        )
    ),
    *(
        ("propensity_nDCG, ips", text, holds, partial(observe_accuracy, power))
        for power, text, holds in (
            (1.0, "propensities are known", "yes"),
            (0.5, "propensities are assumed to be popularity^0.5, and are popularity^1", "no"),
        )
    ),
)


def write_assumption_section(n_worlds: int = WORLDS) -> str:
    """The section of the page."""
    band = "{:.0%} to {:.0%}".format(*compute_band(n_worlds, 1 - LEVEL))
    text = [ABOUT.format(worlds=n_worlds, band=band)]
    for metric, world, holds, observe in ROWS_OF_PAGE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of bounds, and of positions that are undefined
            seen = np.array([observe(seed) for seed in range(1, n_worlds + 1)], dtype=float)
        first = seen if metric.startswith("position_bias") else seen[:, :1]
        gap = seen[:, 1:] if "policy_value" in metric and "bounds" not in metric else seen[:, :0]
        cells = (metric, world, holds, _format_share(first), _format_share(gap))
        text.append(f"| {' | '.join(cells)} |")
        print(text[-1], file=sys.stderr, flush=True)
    return "\n".join([*text, ""])


def _format_share(seen: np.ndarray) -> str:
    if not seen.size:
        return ""
    defined = seen[~np.isnan(seen)]
    return f"{defined.mean():.0%}" if defined.size else "undefined"


ABOUT = """
## Logs whose assumptions do not hold

Coverage in {worlds} simulated logs a row, of the value and of the gap between two groups, and for
position bias of all positions. Each estimator is measured where its assumption does not hold;
beside it are estimators that do not need it. The gap may be right where both values are wrong by
as much. Bounds assume nothing of the items that the log never shows: at least 95% of them hold the
truth even where these items are never clicked, or always. 99% of the rows of an interval that
covers exactly lie within {band}. This section alone:
`python studies/calibration/assumption_studies.py`.

| Metric | World | Assumption holds | Coverage | Coverage of the gap |
|---|---|---|---:|---:|"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=WORLDS)
    print(write_assumption_section(parser.parse_args().worlds))
