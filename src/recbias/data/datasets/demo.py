"""A synthetic dataset of users and films in which the size of every bias is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.odds import Odds
from recbias.data.datasets.demo_tables import (
    COHORTS,
    GENRES,
    MAJOR,
    PREFERRED,
    encode_favourites,
    encode_genres,
    mark_members,
    require_groups,
    require_items_of_studios,
    require_share,
    require_size,
    sample_cohorts,
    sample_flags,
    sample_items,
    sample_studios,
    sample_users,
)
from recbias.data.datasets.demo_text import render_reviews
from recbias.data.plackett_luce import sample_without_replacement

LogOdds: TypeAlias = Annotated[float, Ge(-20.0), Le(20.0)]
Share: TypeAlias = Annotated[float, Ge(0.0), Le(1.0)]

START, DURATION = 1_577_836_800, 2 * 365 * 86_400
"""The timestamps: two years from 2020-01-01, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A synthetic dataset of users and films in which the size of every bias is known.

    Each user picks items one after another without replacement (the Plackett-Luce model). The
    probability of the next pick is

        P(u picks i) ~ exp(s_u * (- popularity * ln(rank_i) + taste * [favourite_u in genres_i]
                                  + preference * [u is a woman and i is Romance]
                                  + prominence * [i is stereotyped]
                                  + provider * [i is by a major studio]))
        s_u = (1 - noise) * (1 - cohort_noise * [u is in cohort B])

    among the items that user u has not picked yet. ``[...]`` is 1 if the condition holds, else 0.
    Each setting plants a difference, with the measures that find it:

    - ``popularity``: the probability of a pick falls with the popularity rank by a power law
      (``Gini``, ``log_popularity_difference``, ``APLT``, ``PopREO``);
    - ``taste``: collaborative filtering is more accurate than MostPop, and MostPop than Random
      (``nDCG``); histories and lists differ in their genres (``calibration_kl``,
      ``intra_list_distance``);
    - ``preference``: the odds that a woman picks a Romance film rather than another film are
      ``exp(preference)`` times those of a man with the same favourite genre (``R-RIPA``, ``EAA``
      and the other associations of embeddings);
    - ``stereotyped``, ``prominence``: a share of the items, rounded to whole items, has
      ``stereotype`` 1, more men than women in the cast and a stereotype in the overview; all
      others have 0, fewer men than women and no stereotype. Random recommends stereotyped items at
      that share; a recommender that learns from the picks recommends them more often, because
      their odds of a pick are multiplied by ``exp(prominence)`` (``REC-ST``, ``HIT_BAD``);
    - ``misleading``: of a share of the items, rounded to whole items, the cast and the overview
      say the opposite of ``stereotype``, so a detector that reads them without error agrees with
      it on the share ``1 - misleading`` (``label_accuracy``);
    - ``provider``: the odds of a pick of a film by a major studio are multiplied by
      ``exp(provider)``; studios are as large as each other (``EXP``, ``AWRF``, ``EE-L``
      and ``provider_gap`` of ``studio_group``, ``provider_gini`` of ``studio``);
    - ``noise``: 1 makes all picks uniformly random, so no model is better than Random;
    - ``cohort_noise``: the picks of the users of cohort B are nearer to uniformly random, so lists
      predict them worse than those of A (``nDCG`` by ``cohort``).

    With 0 a setting plants nothing, and the groups differ by chance only. No setting concerns age,
    race, occupation, year, price and categories: a measured bias by one of them is due to chance
    or to the recommender.

    Users have ``age`` (8 to 70), ``gender`` (F, M), ``race`` (white, black), ``occupation``,
    ``favourite`` (a genre, independent of the gender) and ``cohort`` (A, B, half each). Items have
    ``title``, ``year``, ``price`` ($ to $$$$), ``price_level`` (1 to 4), ``categories``,
    ``genres``, ``cast``, ``overview``, ``stereotype``, ``popularity_rank`` (1 is the most
    popular), ``studio`` and ``studio_group`` (major, minor). Of two users or more, both genders
    occur; some films are Romance, and some are not. Ratings are from 1 to 5, on average
    one higher for films of the user's favourite genre. Times are uniform and independent of
    everything else.

    The odds are known, so the experiment may have rounds of ``feedback``, and metrics may compare
    lists with ideal ones. A table of ``docs/calibration.md`` says how far each setting moves the
    metrics of lists drawn by the odds.

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
        misleading: Share of the items whose cast and overview contradict ``stereotype``.
        provider: How much more popular the items of major studios are, as a log-odds.
        studios: Number of studios; half of them, rounded up, are major.
        noise: How near all picks are to uniformly random ones: log-odds are multiplied by
            ``1 - noise``.
        cohort_noise: The same for the users of cohort B, besides ``noise``.
        reviews: Whether each interaction has a review text.

    >>> world = Demo(n_users=20, n_items=30, per_user=5).load(Path(), np.random.default_rng(1))
    >>> world.interactions.n_users, int(world.items.numbers("stereotype").sum())
    (20, 9)

    Raises:
        OutOfRange: More than 10^11 pairs of a user and an item, or 2 * 10^8 interactions;
            a share of the items, rounded to whole items, is none or all of them; there are
            fewer studios than two, or more than items, with ``provider``; there is one user with
            ``preference`` or ``cohort_noise``.

    Source:
        The model of the picks: Plackett, "The Analysis of Permutations", Applied Statistics 24,
        1975. It is sampled by an exponential race: the item with the smallest Exp(1) / weight is
        picked first.
    """

    n_users: Annotated[int, Gt(0), Le(20_000_000)] = 600
    n_items: Annotated[int, Gt(1), Le(5_000_000)] = 300
    per_user: Annotated[float, Ge(1.0)] = 40.0
    popularity: Annotated[float, Ge(0.0), Le(10.0)] = 0.8
    taste: LogOdds = 3.5
    preference: LogOdds = 1.0
    stereotyped: Share = 0.3
    prominence: LogOdds = 0.7
    misleading: Share = 0.0
    provider: LogOdds = 0.0
    studios: Annotated[int, Gt(0), Le(100_000)] = 20
    noise: Share = 0.0
    cohort_noise: Share = 0.0
    reviews: bool = False

    def __post_init__(self) -> None:
        require_size(self.n_users, self.n_items, self.per_user)
        require_share("stereotyped", self.stereotyped, self.n_items)
        require_share("misleading", self.misleading, self.n_items)
        require_items_of_studios(self.provider, self.studios, self.n_items)
        require_groups("preference", self.preference, self.n_users, "user")
        require_groups("cohort_noise", self.cohort_noise, self.n_users, "user")

    def gives(self) -> frozenset[str]:
        """Return the parts of the dataset."""
        return frozenset({"train", "users", "items", *(["reviews"] if self.reviews else [])})

    def files(self, data: Path) -> Sequence[Path]:
        """Return no file: the dataset is sampled."""
        return []

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Sample the dataset."""
        item_rng, user_rng, pick_rng = rng.spawn(3)
        studio_rng, cohort_rng, label_rng = rng.spawn(3)
        stereotype = sample_flags(self.n_items, self.stereotyped, item_rng)
        in_texts = stereotype ^ sample_flags(self.n_items, self.misleading, label_rng)
        studios = sample_studios(self.n_items, self.studios, studio_rng)
        items = sample_items(stereotype, in_texts, studios, item_rng)
        users = sample_users(sample_cohorts(self.n_users, cohort_rng), user_rng)
        odds = self.compute_odds(users, items)
        picks = sample_without_replacement(odds, self._sample_pick_counts(pick_rng), pick_rng)
        user_codes, item_codes = (codes.astype(np.int32) for codes in picks)
        liked = encode_genres(items)[encode_favourites(users)[user_codes], item_codes]
        ratings = np.rint(3.0 + liked + pick_rng.standard_normal(user_codes.size)).clip(1, 5)
        values = ratings.astype(np.float32)
        times = START + pick_rng.integers(0, DURATION, user_codes.size)
        rows = Interactions(user_codes, item_codes, values, times, users.ids, items.ids)
        return Dataset(rows, users, items, _write_reviews(rows, items) if self.reviews else None)

    def compute_odds(self, users: Attributes, items: Attributes) -> Odds:
        """Return the log-odds of each item for each type of user: cohort, gender and favourite."""
        in_genre = encode_genres(items)
        woman = np.arange(2)[:, None, None]
        log_odds = (
            self.taste * in_genre
            + self.preference * woman * in_genre[GENRES.index(PREFERRED)]
            + self.prominence * items.numbers("stereotype")
            - self.popularity * np.log(items.numbers("popularity_rank"))
            + self.provider * mark_members(items.frame["studio_group"].to_numpy(), MAJOR)
        )
        sharpness = (1.0 - self.noise) * np.array([1.0, 1.0 - self.cohort_noise])
        by_cohort = sharpness[:, None, None, None] * log_odds
        is_woman = mark_members(users.frame["gender"].to_numpy(), "F")
        in_last = mark_members(users.frame["cohort"].to_numpy(), COHORTS[-1])
        types = encode_favourites(users) + len(GENRES) * (is_woman + 2 * in_last)
        return Odds(by_cohort.reshape(-1, len(items.ids)), types)

    def _sample_pick_counts(self, rng: np.random.Generator) -> AnyArray:
        """Sample the number of picks of each user: bounded log-normal, ``int64[n_users]``."""
        sigma = 0.5
        counts = rng.lognormal(np.log(self.per_user) - sigma**2 / 2, sigma, self.n_users)
        most = self.n_items // 2
        least = min(int(np.ceil(self.per_user / 4)), most)
        return np.clip(np.rint(counts).astype(np.int64), least, most)


def _write_reviews(rows: Interactions, items: Attributes) -> Reviews:
    films = items.frame.iloc[rows.items]
    genre = films["genres"].str.split(SEPARATOR, regex=False).str[0].to_numpy(dtype=object)
    title = films["title"].to_numpy(dtype=object)
    texts = render_reviews(title, genre, films["price_level"].to_numpy(), rows.values)
    return Reviews(rows.users, rows.items, texts)
