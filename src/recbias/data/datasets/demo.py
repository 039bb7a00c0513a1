"""A synthetic dataset of users and films in which the size of every bias is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import AnyArray, Ids
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.data.datasets.demo_text import (
    join_names,
    render_reviews,
    sample_casts,
    sample_overviews,
    sample_titles,
)
from recbias.data.plackett_luce import Odds, sample_without_replacement

LogOdds: TypeAlias = Annotated[float, Ge(-20.0), Le(20.0)]

GENRES = ("Romance", "Action", "Comedy", "Drama", "Horror", "Science Fiction")
CATEGORIES = ("Blockbuster", "Classic", "Family", "Festival", "Independent", "Series")
OCCUPATIONS = ("artist", "clerk", "doctor", "engineer", "farmer", "lawyer", "teacher", "writer")
PREFERRED = GENRES[0]
"""The genre that women prefer."""

START, DURATION = 1_577_836_800, 2 * 365 * 86_400
"""The timestamps: two years from 2020-01-01, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A synthetic dataset of users and films in which the size of every bias is known.

    Each user picks items one after another without replacement (the Plackett-Luce model). The
    probability of the next pick is

        P(u picks i) ~ exp(- popularity * ln(rank_i) + taste * [favourite_u in genres_i]
                           + preference * [u is a woman and i is Romance]
                           + prominence * [i is stereotyped])

    among the items that user u has not picked yet. ``[...]`` is 1 if the condition holds, else 0.
    A metric should find:

    - **popularity bias**: the probability of a pick falls with the popularity rank by a power law;
    - **group preference**: the odds that a woman picks a Romance film rather than another film are
      ``exp(preference)`` times those of a man with the same favourite genre;
    - **stereotypes**: a share ``stereotyped`` of the items, rounded to whole items, has
      ``stereotype`` 1, more men than women in the cast and a stereotype in the overview; all other
      items have 0, fewer men than women and no stereotype. Random recommends stereotyped items at
      that share; a recommender that learns from the picks recommends them more often, because
      their odds of a pick are multiplied by ``exp(prominence)``;
    - **taste**: collaborative filtering is more accurate than MostPop, and MostPop than Random;
    - **no other bias**: age, race, occupation, year, price and categories do not affect the picks.
      A measured bias by one of them is due to chance or to the recommender.

    Users have ``age`` (8 to 70), ``gender`` (F, M), ``race`` (white, black), ``occupation`` and
    ``favourite`` (a genre, independent of the gender). Items have ``title``, ``year``, ``price``
    ($ to $$$$), ``price_level`` (1 to 4), ``categories``, ``genres``, ``cast``, ``overview``,
    ``stereotype`` and ``popularity_rank`` (1 is the most popular). Ratings are from 1 to 5, on
    average one higher for films of the user's favourite genre. Times are uniform and independent
    of everything else.

    Args:
        n_users: Number of users.
        n_items: Number of items.
        per_user: Mean number of interactions of a user; each user has at least a quarter of it,
            and at most half of the items.
        popularity: Exponent of the power law; 0 makes all items equally popular.
        taste: Effect of the favourite genre, as a log-odds.
        preference: How much more women than men prefer Romance, as a log-odds; 0 for no
            difference, negative if men prefer it.
        stereotyped: Share of the items that are stereotyped.
        prominence: How much more popular stereotyped items are, as a log-odds.
        reviews: Whether each interaction has a review text.

    >>> world = Demo(n_users=20, n_items=30, per_user=5).load(Path(), np.random.default_rng(1))
    >>> world.interactions.n_users, int(world.items.numbers("stereotype").sum())
    (20, 9)

    Source:
        The model of the picks: Plackett, "The Analysis of Permutations", Applied Statistics 24,
        1975. It is sampled by an exponential race: the item with the smallest Exp(1) / weight is
        picked first.
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
        """Return the parts of the dataset."""
        return frozenset({"train", "users", "items", *(["reviews"] if self.reviews else [])})

    def files(self, data: Path) -> Sequence[Path]:
        """Return no file: the dataset is sampled."""
        return []

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Sample the dataset."""
        item_rng, user_rng, pick_rng = rng.spawn(3)
        items, users = self._sample_items(item_rng), self._sample_users(user_rng)
        odds = self._compute_odds(users, items)
        picks = sample_without_replacement(odds, self._sample_pick_counts(pick_rng), pick_rng)
        user_codes, item_codes = (codes.astype(np.int32) for codes in picks)
        liked = encode_genres(items)[encode_favourites(users)[user_codes], item_codes]
        ratings = np.rint(3.0 + liked + pick_rng.standard_normal(user_codes.size)).clip(1, 5)
        values = ratings.astype(np.float32)
        times = START + pick_rng.integers(0, DURATION, user_codes.size)
        rows = Interactions(user_codes, item_codes, values, times, users.ids, items.ids)
        return Dataset(rows, users, items, _write_reviews(rows, items) if self.reviews else None)

    def _compute_odds(self, users: Attributes, items: Attributes) -> Odds:
        """Return the log-odds of each item for each user type: favourite genre and gender."""
        in_genre = encode_genres(items)
        woman = np.arange(2)[:, None, None]
        log_odds = (
            self.taste * in_genre
            + self.preference * woman * in_genre[GENRES.index(PREFERRED)]
            + self.prominence * items.numbers("stereotype")
            - self.popularity * np.log(items.numbers("popularity_rank"))
        )
        is_woman = (users.frame["gender"] == "F").to_numpy()
        types = encode_favourites(users) + len(GENRES) * is_woman
        return Odds(log_odds.reshape(-1, self.n_items), types)

    def _sample_pick_counts(self, rng: np.random.Generator) -> AnyArray:
        """Sample the number of picks of each user: bounded log-normal, ``int64[n_users]``."""
        sigma = 0.5
        counts = rng.lognormal(np.log(self.per_user) - sigma**2 / 2, sigma, self.n_users)
        most = self.n_items // 2
        least = min(int(np.ceil(self.per_user / 4)), most)
        return np.clip(np.rint(counts).astype(np.int64), least, most)

    def _sample_users(self, rng: np.random.Generator) -> Attributes:
        n = self.n_users
        age = rng.integers(8, 71, n)
        occupation = _sample_names(OCCUPATIONS, n, rng)
        columns = {
            "age": age.astype(np.float64),
            "gender": _sample_names(("F", "M"), n, rng),
            "race": _sample_names(("white", "black"), n, rng),
            "occupation": np.where(age < 18, "student", occupation),
            "favourite": _sample_names(GENRES, n, rng),
        }
        return Attributes(_number_ids(n), pd.DataFrame(columns), "user")

    def _sample_items(self, rng: np.random.Generator) -> Attributes:
        n = self.n_items
        stereotype = np.zeros(n, dtype=bool)
        stereotype[rng.permutation(n)[: round(self.stereotyped * n)]] = True
        first_genre, second_genre = rng.integers(0, len(GENRES), (2, n))
        second_genre[rng.random(n) < 0.7] = -1
        price_level = rng.choice(4, n, p=(0.3, 0.4, 0.2, 0.1)) + 1
        genre = np.array(GENRES, dtype=object)[first_genre]
        columns = {
            "title": sample_titles(n, rng),
            "year": rng.integers(1960, 2025, n).astype(np.float64),
            "price": np.array([None, "$", "$$", "$$$", "$$$$"], dtype=object)[price_level],
            "price_level": price_level.astype(np.float64),
            "categories": join_names(CATEGORIES, *rng.integers(0, len(CATEGORIES), (2, n))),
            "genres": join_names(GENRES, first_genre, second_genre),
            "cast": sample_casts(stereotype, rng),
            "overview": sample_overviews(genre, stereotype, rng),
            "stereotype": stereotype.astype(np.float64),
            "popularity_rank": rng.permutation(n) + 1.0,
        }
        return Attributes(_number_ids(n), pd.DataFrame(columns), "item")


def encode_genres(items: Attributes) -> AnyArray:
    """Return whether each item is of each genre, ``bool[n_genres, n_items]``."""
    genres = items.frame["genres"].str
    return np.stack([genres.contains(name, regex=False).to_numpy() for name in GENRES])


def encode_favourites(users: Attributes) -> AnyArray:
    """Return the index of each user's favourite in ``GENRES``, ``int64[n_users]``."""
    codes = pd.Categorical(users.frame["favourite"], categories=list(GENRES)).codes
    return np.asarray(codes, dtype=np.int64)


def _write_reviews(rows: Interactions, items: Attributes) -> Reviews:
    films = items.frame.iloc[rows.items]
    genre = films["genres"].str.split(SEPARATOR, regex=False).str[0].to_numpy(dtype=object)
    title = films["title"].to_numpy(dtype=object)
    texts = render_reviews(title, genre, films["price_level"].to_numpy(), rows.values)
    return Reviews(rows.users, rows.items, texts)


def _sample_names(names: tuple[str, ...], n: int, rng: np.random.Generator) -> Ids:
    return np.array(names, dtype=object)[rng.integers(0, len(names), n)]


def _number_ids(n: int) -> Vocabulary:
    return Vocabulary(np.arange(1, n + 1).astype(str).astype(object))
