"""The dataset demo as a population: the same items, other users each time.

What a measure would say of everybody is its figure on very many users; what it says of a few
hundred, with its interval and its tests, is held against that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from recbias.core.dataset import AnyArray, Dataset, FloatArray, Queries
from recbias.core.evidence import Evidence, RankedLists
from recbias.data.demo import GENRES, Demo, encode_favourites, encode_genres

K = 10
N_ITEMS = 120
N_TEST = 5
"""Test items of every user."""

ITEMS_SEED = 7
MANY = 100_000
"""Users of the sample that stands for everybody."""

Lists = Literal["recommended", "drawn from all items", "drawn by the odds", "split off the picks"]

Settings: TypeAlias = tuple[tuple[str, float], ...]
"""Settings of the dataset demo and their values."""


class Draws:
    """Chance for the dataset demo: the items are always the same, the users are not."""

    def __init__(self, seed: int) -> None:
        users, picks = np.random.default_rng(seed).spawn(2)
        cohorts = np.random.default_rng([seed, 3])
        studios, labels = (np.random.default_rng([ITEMS_SEED, number]) for number in (1, 2))
        items = np.random.default_rng(ITEMS_SEED)
        self.streams = [items, users, picks, studios, cohorts, labels]

    def spawn(self, n: int) -> list[np.random.Generator]:
        spawned, self.streams = self.streams[:n], self.streams[n:]
        return spawned


@dataclass(frozen=True)
class Taste:
    """What the users prefer, and what a recommender thinks that they do, as log-odds.

    Args:
        preference: How much more women than men pick Romance.
        of_women: How much the recommender goes by the favourite genre of women.
        of_men: Likewise of men.
        popularity: The exponent of its popularity bias; that of the users is 0.8.
    """

    preference: float = 1.0
    of_women: float = 1.0
    of_men: float = 3.0
    popularity: float = 1.2


PLANTED = Taste()
NOTHING = Taste(preference=0.0, of_women=2.0, of_men=2.0, popularity=0.8)


@dataclass(frozen=True)
class Population:
    """Users, what is known of them, and lists for them.

    Args:
        lists: ``recommended`` by a model with the tastes given, without what the user has;
            ``drawn from all items`` at random, or ``by the odds`` of the picks; or ``split off the
            picks`` of the user at random.
        taste: The tastes.
        n_users: How many users a sample has.
        settings: Those of the dataset, where they are not its own.
    """

    lists: Lists = "recommended"
    taste: Taste = PLANTED
    n_users: int = 400
    settings: Settings = ()

    def sample(self, seed: int, *, rival: bool = False) -> Evidence:
        """A sample of users; a rival is another model that answers the same users as well."""
        picks = self._load_picks(seed)
        rng = np.random.default_rng([seed, 2, int(rival)])
        order = np.random.default_rng([seed, 1])
        is_test = mark_picks(picks, K if self.lists == "split off the picks" else N_TEST, order)
        history = picks.interactions.take(~is_test)
        test_rows = picks.interactions.take(is_test)
        ones = np.ones(len(test_rows), dtype=np.float32)
        shape = (self.n_users, N_ITEMS)
        relevant = csr_array((ones, (test_rows.users, test_rows.items)), shape=shape)
        users: Any = picks.users
        ids = picks.user_ids
        evidence = Evidence(
            queries=Queries(
                ids, replace(users, kind="query"), np.arange(len(ids), dtype=np.int32)
            ),
            item_ids=picks.item_ids,
            relevant=relevant,
            train=history,
            items=picks.items,
            users=users,
            candidates=np.ones(N_ITEMS, dtype=bool),
            odds=self._build_world().compute_odds(users, picks.items),  # type: ignore[arg-type]
            bootstrap_seed=seed,
            n_bootstrap=400,
            metric="calibration",
        )
        return replace(evidence, lists=self._make_lists(evidence, rng))

    @cache  # noqa: B019  # populations live as long as the benchmark
    def sample_everybody(self) -> Evidence:
        """Very many other users."""
        evidence = replace(self, n_users=MANY).sample(10**6)
        return replace(evidence, n_bootstrap=2)

    def _load_picks(self, seed: int) -> Dataset:
        draws: Any = Draws(seed)
        dataset = self._build_world().load(Path(), draws)
        items: Any = dataset.items
        frame = items.frame.assign(
            weight=1000.0 * items.numbers("popularity_rank") ** -0.8,
            romance=items.frame["genres"].str.contains(GENRES[0]).astype(np.float64),
            p_major=sample_probabilities(items.frame["studio_group"] == "major"),
        )
        return replace(dataset, items=replace(items, frame=frame))

    def _build_world(self) -> Demo:
        settings: Any = {"preference": self.taste.preference, **dict(self.settings)}
        return Demo(
            n_users=self.n_users,
            n_items=N_ITEMS,
            per_user=80 if self.lists == "split off the picks" else 40,  # all have enough
            **settings,
        )

    def _make_lists(self, evidence: Evidence, rng: np.random.Generator) -> RankedLists:
        shape = (self.n_users, N_ITEMS)
        wait: AnyArray = rng.standard_exponential(shape, dtype=np.float32)
        if self.lists == "split off the picks":
            wait[evidence.relevant.toarray() == 0] = np.inf  # type: ignore[union-attr]
        if self.lists == "recommended":
            log_odds, kinds = self._compute_log_odds(evidence)
            wait *= np.exp(-log_odds).astype(np.float32)[kinds]
            train: Any = evidence.train
            wait[train.users, train.items] = np.inf
        if self.lists == "drawn by the odds":
            odds: Any = evidence.odds
            wait *= np.exp(-odds.by_type).astype(np.float32)[odds.types]
        first = np.argpartition(wait, K, axis=1)[:, :K]
        order = np.argsort(np.take_along_axis(wait, first, axis=1), axis=1)
        items = np.take_along_axis(first, order, axis=1).astype(np.int32)
        scores = np.broadcast_to(-np.arange(K, dtype=np.float32), items.shape).copy()
        return RankedLists(items, scores)

    def _compute_log_odds(self, evidence: Evidence) -> tuple[FloatArray, AnyArray]:
        """What the recommender feels for each item, by favourite genre and gender; and whose."""
        items: Any = evidence.items
        users: Any = evidence.users
        taste = np.array([self.taste.of_men, self.taste.of_women])[:, None, None]
        rank = items.numbers("popularity_rank")
        log_odds = taste * encode_genres(items) - self.taste.popularity * np.log(rank)
        is_woman = (users.frame["gender"] == "F").to_numpy()
        return log_odds.reshape(-1, N_ITEMS), encode_favourites(users) + len(GENRES) * is_woman


def sample_probabilities(is_member: AnyArray) -> FloatArray:
    """The probability of a group for each item, as often right as it says if half are members."""
    rng = np.random.default_rng([ITEMS_SEED, 4])
    return rng.beta(1.0 + is_member, 2.0 - is_member)


def mark_picks(dataset: Dataset, n: int, rng: np.random.Generator) -> AnyArray:
    """Mark ``n`` picks of each user at random."""
    rows = dataset.interactions
    order = np.lexsort((rng.random(len(rows)), rows.users))
    counts = rows.user_counts()
    position = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[order] = position < n
    return chosen
