"""A world made up on the spot, in which every bias is planted and its size is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.stage_context import report_progress
from recbias.data.datasets.demo_text import casts, overviews, review_texts, several, titles

LogOdds: TypeAlias = Annotated[float, Ge(-20.0), Le(20.0)]

GENRES = ("Romance", "Action", "Comedy", "Drama", "Horror", "Science Fiction")
CATEGORIES = ("Blockbuster", "Classic", "Family", "Festival", "Independent", "Series")
OCCUPATIONS = ("artist", "clerk", "doctor", "engineer", "farmer", "lawyer", "teacher", "writer")
PREFERRED = GENRES[0]
"""The genre that women prefer."""

CELLS = 2**21
"""Cells of (user, item) that are drawn at once."""

FARTHEST = 80.0
"""Log-odds by which an item can be behind the first: more does not fit float32."""

BEGIN, SECONDS = 1_577_836_800, 2 * 365 * 86_400
"""The times: two years from 2020-01-01."""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A made-up world of people and films, in which every bias is planted and its size is known.

    Each user picks items one after another without putting one back, the next one with the chance

        P(u picks i) ~ exp(- popularity * ln(rank_i) + taste * [favourite_u in genres_i]
                           + preference * [u is a woman and i is Romance]
                           + prominence * [i is stereotyped])

    among the items that are left (the Plackett-Luce model). ``[...]`` is 1 where it holds, else 0.
    What a metric must find:

    - **popularity bias**: the chance of a pick falls with the popularity rank by a power law;
    - **group preference**: the odds that a woman picks a Romance film and not another are
      ``exp(preference)`` times those of a man with the same favourite;
    - **stereotypes**: the share ``stereotyped`` of the items, rounded, has ``stereotype`` 1, more
      men than women in the cast and a stereotype in the overview; all others have 0, fewer men
      than women and no stereotype. Random recommends them at that share, a recommender that
      follows the picks more often, as they are picked at ``exp(prominence)`` times the odds;
    - **taste**: a recommender that learns from others beats MostPop, and MostPop beats Random;
    - **nothing else**: age, race, occupation, year, price and categories have no part in the
      picks. A bias by one of them is chance, or made by the recommender.

    Users have ``age`` (8 to 70), ``gender`` (F, M), ``race`` (white, black), ``occupation`` and
    ``favourite`` (a genre, whatever the gender). Items have ``title``, ``year``, ``price`` ($ to
    $$$$), ``price_level`` (1 to 4), ``categories``, ``genres``, ``cast``, ``overview``,
    ``stereotype`` and ``popularity_rank`` (1 is the most popular). Ratings are from 1 to 5, one
    higher on average where the film is of the favourite genre. Times have no part in anything.

    Args:
        n_users: How many users there are.
        n_items: How many items there are.
        per_user: Mean number of interactions of a user; each has at least a quarter of it, and
            at most half of the items.
        popularity: The exponent of the power law; 0 makes all items as popular.
        taste: How much the favourite genre counts, as a log-odds.
        preference: How much more women than men go for Romance, as a log-odds; 0 for no
            difference, negative for less.
        stereotyped: Share of the items that are stereotyped.
        prominence: How much more popular those are, as a log-odds.
        reviews: Whether each interaction comes with a review text.

    >>> world = Demo(n_users=20, n_items=30, per_user=5).load(Path(), np.random.default_rng(1))
    >>> world.interactions.n_users, int(world.items.numbers("stereotype").sum())
    (20, 9)

    Source:
        The model of the picks: Plackett, "The Analysis of Permutations", Applied Statistics 24,
        1975. It is drawn by the exponential race: who has the lowest Exp(1) / weight comes first.
    """

    n_users: Annotated[int, Gt(0)] = 600
    n_items: Annotated[int, Gt(1)] = 300
    per_user: Annotated[float, Ge(1.0)] = 40.0
    popularity: Annotated[float, Ge(0.0), Le(10.0)] = 0.8
    taste: LogOdds = 3.5
    preference: LogOdds = 1.0
    stereotyped: Annotated[float, Ge(0.0), Le(1.0)] = 0.3
    prominence: LogOdds = 0.7
    reviews: bool = False

    def gives(self) -> frozenset[str]:
        """Return the parts of the world."""
        parts = {"train", "users", "items"}
        return frozenset(parts | {"reviews"} if self.reviews else parts)

    def files(self, data: Path) -> Sequence[Path]:
        """Return no file: the world is made up."""
        return []

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Return the world that belongs to ``rng``."""
        for_items, for_users, for_picks = rng.spawn(3)
        items, users = self._items(for_items), self._users(for_users)
        odds = self._log_odds(users, items)
        picks = drawn_without_repeats(odds, self._how_many(for_picks), for_picks)
        interactions = _interactions(picks, users, items, for_picks)
        reviews = _reviews(interactions, items) if self.reviews else None
        return Dataset(interactions, users, items, reviews)

    def _log_odds(self, users: Attributes, items: Attributes) -> Odds:
        """Return what each kind of user (favourite genre and gender) feels for each item."""
        in_genre = genres_of(items)
        woman = np.arange(2)[:, None, None]
        log_odds = (
            self.taste * in_genre
            + self.preference * woman * in_genre[GENRES.index(PREFERRED)]
            + self.prominence * items.numbers("stereotype")
            - self.popularity * np.log(items.numbers("popularity_rank"))
        )
        is_woman = (users.frame["gender"] == "F").to_numpy()
        kinds = favourites_of(users) + len(GENRES) * is_woman
        return Odds(log_odds.reshape(-1, self.n_items), kinds)

    def _how_many(self, rng: np.random.Generator) -> AnyArray:
        """Return how many items each user picks: log-normal, within bounds, ``int64[n_users]``."""
        spread = 0.5
        drawn = rng.lognormal(np.log(self.per_user) - spread**2 / 2, spread, self.n_users)
        most = self.n_items // 2
        least = min(int(np.ceil(self.per_user / 4)), most)
        return np.clip(np.rint(drawn).astype(np.int64), least, most)

    def _users(self, rng: np.random.Generator) -> Attributes:
        n = self.n_users
        age = rng.integers(8, 71, n)
        occupation = _drawn(OCCUPATIONS, n, rng)
        columns = {
            "age": age.astype(np.float64),
            "gender": _drawn(("F", "M"), n, rng),
            "race": _drawn(("white", "black"), n, rng),
            "occupation": np.where(age < 18, "student", occupation),
            "favourite": _drawn(GENRES, n, rng),
        }
        return Attributes(_numbered(n), pd.DataFrame(columns), "user")

    def _items(self, rng: np.random.Generator) -> Attributes:
        n = self.n_items
        stereotype = np.zeros(n, dtype=bool)
        stereotype[rng.permutation(n)[: round(self.stereotyped * n)]] = True
        first, second = rng.integers(0, len(GENRES), (2, n))
        second[rng.random(n) < 0.7] = -1
        price_level = rng.choice(4, n, p=(0.3, 0.4, 0.2, 0.1)) + 1
        genre = np.array(GENRES, dtype=object)[first]
        columns = {
            "title": titles(n, rng),
            "year": rng.integers(1960, 2025, n).astype(np.float64),
            "price": np.array([None, "$", "$$", "$$$", "$$$$"], dtype=object)[price_level],
            "price_level": price_level.astype(np.float64),
            "categories": several(CATEGORIES, *rng.integers(0, len(CATEGORIES), (2, n))),
            "genres": several(GENRES, first, second),
            "cast": casts(stereotype, rng),
            "overview": overviews(genre, stereotype, rng),
            "stereotype": stereotype.astype(np.float64),
            "popularity_rank": rng.permutation(n) + 1.0,
        }
        return Attributes(_numbered(n), pd.DataFrame(columns), "item")


@dataclass(frozen=True, eq=False)
class Odds:
    """How much each user goes for each item.

    Args:
        of_kinds: Log-odds of each item for each kind of user, ``float64[n_kinds, n_items]``.
        kinds: Which kind each user is of, ``int[n_users]``.
    """

    of_kinds: FloatArray
    kinds: AnyArray


def drawn_without_repeats(
    odds: Odds, how_many: AnyArray, rng: np.random.Generator
) -> tuple[AnyArray, AnyArray]:
    """Return who picks what, each user's picks without repeats by the Plackett-Luce model.

    Every pair draws Exp(1) / exp(log-odds); the lowest of each user's are the picks.

    Args:
        odds: How much each user goes for each item.
        how_many: How many items each user picks, ``int64[n_users]``.
        rng: The generator.

    Returns:
        The users and the items of the picks, ordered by user and item.
    """
    behind = odds.of_kinds.max(axis=1, keepdims=True) - odds.of_kinds
    slowness = np.exp(np.minimum(behind, FARTHEST), dtype=np.float32)
    n_users, n_items = odds.kinds.size, slowness.shape[1]
    size = max(1, CELLS // n_items)
    users, items = [], []
    for first in range(0, n_users, size):
        block = slice(first, first + size)
        wanted = how_many[block]
        arrival = rng.standard_exponential((wanted.size, n_items), dtype=np.float32)
        arrival *= slowness[odds.kinds[block]]
        longest = int(wanted.max())
        front = np.sort(np.partition(arrival, longest - 1, axis=1)[:, :longest], axis=1)
        last = front[np.arange(wanted.size), wanted - 1]
        inside = np.nonzero(arrival <= last[:, None])
        users.append(inside[0] + first)
        items.append(inside[1])
        report_progress("make up the demo world", first + wanted.size, n_users)
    return np.concatenate(users), np.concatenate(items)


def genres_of(items: Attributes) -> AnyArray:
    """Return which items are of each genre, ``bool[n_genres, n_items]``."""
    genres = items.frame["genres"].str
    return np.stack([genres.contains(name, regex=False).to_numpy() for name in GENRES])


def favourites_of(users: Attributes) -> AnyArray:
    """Return the place of each user's favourite in ``GENRES``, ``int64[n_users]``."""
    codes = pd.Categorical(users.frame["favourite"], categories=list(GENRES)).codes
    return np.asarray(codes, dtype=np.int64)


def _interactions(
    picks: tuple[AnyArray, AnyArray],
    users: Attributes,
    items: Attributes,
    rng: np.random.Generator,
) -> Interactions:
    who, what = picks
    liked = genres_of(items)[favourites_of(users)[who], what]
    ratings = np.rint(3.0 + liked + rng.standard_normal(who.size)).clip(1, 5)
    times = BEGIN + rng.integers(0, SECONDS, who.size)
    return Interactions(
        who.astype(np.int32),
        what.astype(np.int32),
        ratings.astype(np.float32),
        times,
        users.ids,
        items.ids,
    )


def _reviews(rows: Interactions, items: Attributes) -> Reviews:
    of_rows = items.frame.iloc[rows.items]
    genre = of_rows["genres"].str.split(SEPARATOR, regex=False).str[0].to_numpy(dtype=object)
    title = of_rows["title"].to_numpy(dtype=object)
    texts = review_texts(title, genre, of_rows["price_level"].to_numpy(), rows.values)
    return Reviews(rows.users, rows.items, texts)


def _drawn(names: tuple[str, ...], n: int, rng: np.random.Generator) -> Ids:
    return np.array(names, dtype=object)[rng.integers(0, len(names), n)]


def _numbered(n: int) -> Vocabulary:
    return Vocabulary(np.arange(1, n + 1).astype(str).astype(object))
