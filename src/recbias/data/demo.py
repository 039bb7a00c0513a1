"""A synthetic dataset of users and films in which the size of every bias is known.

Users, films and their texts are sampled by the settings; picks are sampled without replacement
from the Plackett-Luce model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le, Lt

from recbias.core.context import report_progress
from recbias.core.dataset import (
    SEPARATOR,
    AnyArray,
    Attributes,
    BoolArray,
    Dataset,
    Ids,
    Interactions,
    Odds,
    Reviews,
    Vocabulary,
)
from recbias.core.errors import OutOfRange

_CAST_SIZE = 5


_WORDS: dict[str, Ids] = {
    name: np.array(words, dtype=object)
    for name, words in json.loads(Path(__file__).with_name("demo_words.json").read_bytes()).items()
}
"""The words of titles, casts, overviews and reviews."""
WOMEN, MEN, _FAMILIES = _WORDS["women"], _WORDS["men"], _WORDS["families"]
FIRST_WORDS, SECOND_WORDS = _WORDS["first_words"], _WORDS["second_words"]
NEUTRAL, STEREOTYPED, _SETTINGS = _WORDS["neutral"], _WORDS["stereotyped"], _WORDS["settings"]
_OPINIONS, _PRICES = _WORDS["opinions"], _WORDS["prices"]


def sample_titles(n: int, rng: np.random.Generator) -> Ids:
    """Sample ``n`` distinct titles."""
    n_pairs = len(FIRST_WORDS) * len(SECOND_WORDS)
    number, pair = np.divmod(np.arange(n), n_pairs)
    pair = rng.permutation(n_pairs)[pair]
    words = FIRST_WORDS[pair % len(FIRST_WORDS)] + " "
    words += SECOND_WORDS[pair // len(FIRST_WORDS)]
    numbered = words + " " + (number + 1).astype(str).astype(object)
    titles: Ids = np.where(number > 0, numbered, words)
    return titles


def sample_casts(more_men: BoolArray, rng: np.random.Generator) -> Ids:
    """Sample a cast ``First Last|...`` of five people for each item, with distinct first names.

    A cast has 3 to 5 men if its item is in ``more_men``, ``bool[n]``; otherwise it has 0 to 2.
    """
    n = more_men.size
    n_men = rng.integers(0, 3, n) + 3 * more_men
    position = rng.permuted(np.tile(np.arange(_CAST_SIZE), (n, 1)), axis=1)
    women = WOMEN[_sample_distinct(len(WOMEN), n, rng)]
    men = MEN[_sample_distinct(len(MEN), n, rng)]
    first_names = np.where(position < n_men[:, None], men, women)
    people = first_names + " " + _FAMILIES[rng.integers(0, len(_FAMILIES), (n, _CAST_SIZE))]
    casts: Ids = np.array([SEPARATOR.join(names) for names in people], dtype=object)
    return casts


def sample_overviews(genre: Ids, stereotyped: BoolArray, rng: np.random.Generator) -> Ids:
    """Sample an overview of two sentences for each item, the second maybe a stereotype."""
    story_code = rng.integers(0, len(NEUTRAL), genre.size)
    story = np.where(stereotyped, STEREOTYPED[story_code], NEUTRAL[story_code])
    setting = _SETTINGS[rng.integers(0, len(_SETTINGS), genre.size)]
    overviews: Ids = genre + " story set in " + setting + ". " + story
    return overviews


def render_reviews(title: Ids, genre: Ids, price_level: AnyArray, rating: AnyArray) -> Ids:
    """Return a review for each row whose opinion matches the rating."""
    opinion = _OPINIONS[rating.astype(np.intp) - 1]
    price = _PRICES[price_level.astype(np.intp) - 1]
    reviews: Ids = opinion + " " + title + " is " + price + ", and it is all " + genre + "."
    return reviews


def join_names(names: tuple[str, ...], first_code: AnyArray, second_code: AnyArray) -> Ids:
    """Return ``A|B`` for each pair of codes; ``A`` if the second is -1 or the same."""
    texts = np.array(names, dtype=object)
    is_single = (second_code < 0) | (second_code == first_code)
    pairs = texts[first_code] + SEPARATOR + texts[second_code]
    return np.where(is_single, texts[first_code], pairs)


def _sample_distinct(size: int, n: int, rng: np.random.Generator) -> AnyArray:
    """Sample ``n`` rows of distinct codes below ``size``, ``int64[n, CAST_SIZE]``."""
    return np.argsort(rng.random((n, size)), axis=1)[:, :_CAST_SIZE]


GENRES = ("Romance", "Action", "Comedy", "Drama", "Horror", "Science Fiction")
CATEGORIES = ("Blockbuster", "Classic", "Family", "Festival", "Independent", "Series")
_OCCUPATIONS = ("artist", "clerk", "doctor", "engineer", "farmer", "lawyer", "teacher", "writer")
PREFERRED = GENRES[0]
"""The genre that women prefer."""

_MAJOR, _MINOR = "major", "minor"
"""The groups of studios."""

_COHORTS = ("A", "B")  # the groups of users; the picks of B may be noisier


def _sample_studios(n_items: int, n_studios: int, rng: np.random.Generator) -> dict[str, Ids]:
    """Sample the columns ``studio`` and ``studio_group`` of the items."""
    numbers = rng.permutation(n_items) % n_studios
    names = np.array([f"Studio {number + 1}" for number in range(n_studios)], dtype=object)
    is_major = numbers < (n_studios + 1) // 2
    return {
        "studio": names[numbers],
        "studio_group": np.where(is_major, _MAJOR, _MINOR).astype(object),
    }


def _sample_cohorts(n_users: int, share: float, rng: np.random.Generator) -> Ids:
    """Sample the cohort of each user: B for a share, rounded down, and else A."""
    at = rng.permutation(n_users)
    in_last = np.floor((at + 1) * share) > np.floor(at * share)
    cohorts: Ids = np.array(_COHORTS, dtype=object)[in_last.astype(np.int64)]
    return cohorts


def _sample_flags(n: int, share: float, rng: np.random.Generator) -> BoolArray:
    """Sample which of ``n`` items belong to a share, rounded to whole items, ``bool[n]``."""
    flags = np.zeros(n, dtype=bool)
    flags[rng.permutation(n)[: round(share * n)]] = True
    return flags


def _sample_users(cohorts: Ids, rng: np.random.Generator) -> Attributes:
    """Sample the table of users whose cohorts are given."""
    n = cohorts.size
    age = rng.integers(8, 71, n)
    occupation = _sample_names(_OCCUPATIONS, n, rng)
    columns = {
        "age": age.astype(np.float64),
        "gender": _sample_genders(n, rng),
        "race": _sample_names(("white", "black"), n, rng),
        "occupation": np.where(age < 18, "student", occupation),
        "favourite": _sample_names(GENRES, n, rng),
        "cohort": cohorts,
    }
    return Attributes(_number_ids(n), pd.DataFrame(columns), "user")


def _sample_items(
    stereotype: BoolArray,
    in_texts: BoolArray,
    studios: Mapping[str, Ids],
    rng: np.random.Generator,
) -> Attributes:
    """Sample the table of items."""
    n = stereotype.size
    first_genre, second_genre = rng.integers(0, len(GENRES), (2, n))
    second_genre[rng.random(n) < 0.7] = -1
    _require_both_kinds(first_genre, second_genre)
    price_level = rng.choice(4, n, p=(0.3, 0.4, 0.2, 0.1)) + 1
    genre = np.array(GENRES, dtype=object)[first_genre]
    columns = {
        "title": sample_titles(n, rng),
        "year": rng.integers(1960, 2025, n).astype(np.float64),
        "price": np.array([None, "$", "$$", "$$$", "$$$$"], dtype=object)[price_level],
        "price_level": price_level.astype(np.float64),
        "categories": join_names(CATEGORIES, *rng.integers(0, len(CATEGORIES), (2, n))),
        "genres": join_names(GENRES, first_genre, second_genre),
        "cast": sample_casts(in_texts, rng),
        "overview": sample_overviews(genre, in_texts, rng),
        "stereotype": stereotype.astype(np.float64),
        "popularity_rank": rng.permutation(n) + 1.0,
        **studios,
    }
    return Attributes(_number_ids(n), pd.DataFrame(columns), "item")


def _sample_genders(n: int, rng: np.random.Generator) -> Ids:
    """Sample the genders; where all would be one, the last of several users has the other."""
    genders = _sample_names(("F", "M"), n, rng)
    if n > 1 and (genders == genders[0]).all():
        genders[-1] = "M" if genders[0] == "F" else "F"
    return genders


def _require_both_kinds(first_genre: AnyArray, second_genre: AnyArray) -> None:
    """Change the genres of the last film where none, or every one, would be preferred."""
    preferred = GENRES.index(PREFERRED)
    is_preferred = (first_genre == preferred) | (second_genre == preferred)
    if is_preferred.all():
        first_genre[-1], second_genre[-1] = preferred + 1, -1
    elif not is_preferred.any():
        first_genre[-1] = preferred


def _require_share(setting: str, share: float, n_items: int) -> None:
    """Raise OutOfRange for a share between 0 and 1 of which no item, or every item, is a part."""
    n = round(share * n_items)
    if 0.0 < share < 1.0 and not 0 < n < n_items:
        amount = "none" if n == 0 else "all"
        message = f"{share} of {n_items:,} items, rounded to whole items, is {amount} of them"
        remedy = f"use more items, or a {setting} between {1 / n_items:g} and {1 - 1 / n_items:g}"
        raise OutOfRange(message, where=setting, remedy=remedy)


def _mark_members(values: AnyArray, member: str) -> BoolArray:
    """Return which cells of a column hold a value, ``bool[n]``."""
    return np.asarray(values == member, dtype=bool)


def encode_genres(items: Attributes) -> AnyArray:
    """Return whether each item is of each genre, ``bool[n_genres, n_items]``."""
    genres = items.frame["genres"].str
    return np.stack([genres.contains(name, regex=False).to_numpy() for name in GENRES])


def encode_favourites(users: Attributes) -> AnyArray:
    """Return the index of each user's favourite in ``GENRES``, ``int64[n_users]``."""
    codes = pd.Categorical(users.frame["favourite"], categories=list(GENRES)).codes
    return np.asarray(codes, dtype=np.int64)


def _sample_names(names: tuple[str, ...], n: int, rng: np.random.Generator) -> Ids:
    return np.array(names, dtype=object)[rng.integers(0, len(names), n)]


def _number_ids(n: int) -> Vocabulary:
    return Vocabulary(np.arange(1, n + 1).astype(str).astype(object))


_CELLS = 2**21
"""The number of (user, item) cells sampled at once."""

_MAX_LOG_ODDS_GAP = 80.0
"""The largest gap in log-odds to the best item: the exponential of more overflows float32."""


def sample_without_replacement(
    odds: Odds, n_picks: AnyArray, rng: np.random.Generator
) -> tuple[AnyArray, AnyArray]:
    """Sample the picks of each user by the Plackett-Luce model.

    Every pair gets an arrival time Exp(1) / exp(log-odds); a user picks the earliest items. The
    number of picks of each user is ``n_picks``, ``int64[n_users]``.

    Returns:
        The users and the items of the picks, ordered by user and item.
    """
    gaps = odds.by_type.max(axis=1, keepdims=True) - odds.by_type
    slowness = np.exp(np.minimum(gaps, _MAX_LOG_ODDS_GAP), dtype=np.float32)
    n_users, n_items = odds.types.size, slowness.shape[1]
    block_size = max(1, _CELLS // n_items)
    users, items = [], []
    for start in range(0, n_users, block_size):
        block = slice(start, start + block_size)
        counts = n_picks[block]
        arrival = rng.standard_exponential((counts.size, n_items), dtype=np.float32)
        arrival *= slowness[odds.types[block]]
        most = int(counts.max())
        earliest = np.sort(np.partition(arrival, most - 1, axis=1)[:, :most], axis=1)
        last = earliest[np.arange(counts.size), counts - 1]
        block_users, block_items = np.nonzero(arrival <= last[:, None])
        users.append(block_users + start)
        items.append(block_items)
        report_progress("sample the demo dataset", start + counts.size, n_users)
    return np.concatenate(users), np.concatenate(items)


_LogOdds: TypeAlias = Annotated[float, Ge(-20.0), Le(20.0)]
_Share: TypeAlias = Annotated[float, Ge(0.0), Le(1.0)]

_START, _DURATION = 1_577_836_800, 2 * 365 * 86_400
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
      predict them worse than those of A (``nDCG`` by ``cohort``);
    - ``cohort_length``: users of cohort B have ``exp(-cohort_length)`` times as many interactions,
      so their histories and test sets are smaller (``nDCG`` by ``cohort``, which
      ``recbias explain`` puts down to the length).

    With 0 a setting plants nothing, and the groups differ by chance only. No setting concerns age,
    race, occupation, year, price and categories: a measured bias by one of them is due to chance
    or to the recommender.

    Users have ``age`` (8 to 70), ``gender`` (F, M), ``race`` (white, black), ``occupation``,
    ``favourite`` (a genre, independent of the gender) and ``cohort`` (A, B). Items have
    ``title``, ``year``, ``price`` ($ to $$$$), ``price_level`` (1 to 4), ``categories``,
    ``genres``, ``cast``, ``overview``, ``stereotype``, ``popularity_rank`` (1 is the most
    popular), ``studio`` and ``studio_group`` (major, minor). Of two users or more, both genders
    occur; some films are Romance, and some are not. Ratings are from 1 to 5, on average
    one higher for films of the user's favourite genre. Times are uniform and independent of
    everything else.

    The odds are known, so metrics may compare lists with ideal ones. A table of
    ``docs/evidence/calibration.md`` says how far each setting moves the metrics of lists drawn by
    the odds.

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
        cohort_length: How much shorter the histories of cohort B are, as a logarithm.
        cohort_share: Share of the users that are of cohort B, rounded down to whole users.
        reviews: Whether each interaction has a review text.

    >>> world = Demo(n_users=20, n_items=30, per_user=5).load(Path(), np.random.default_rng(1))
    >>> world.interactions.n_users, int(world.items.numbers("stereotype").sum())
    (20, 9)

    Raises:
        OutOfRange: A share of the items, rounded to whole items, is none or all of them.

    Source:
        The model of the picks: Plackett, "The Analysis of Permutations", Applied Statistics 24,
        1975. It is sampled by an exponential race: the item with the smallest Exp(1) / weight is
        picked first.
    """

    n_users: Annotated[int, Gt(0), Le(20_000_000)] = 600
    n_items: Annotated[int, Gt(1), Le(5_000_000)] = 300
    per_user: Annotated[float, Ge(1.0)] = 40.0
    popularity: Annotated[float, Ge(0.0), Le(10.0)] = 0.8
    taste: _LogOdds = 3.5
    preference: _LogOdds = 1.0
    stereotyped: _Share = 0.3
    prominence: _LogOdds = 0.7
    misleading: _Share = 0.0
    provider: _LogOdds = 0.0
    studios: Annotated[int, Gt(0), Le(100_000)] = 20
    noise: _Share = 0.0
    cohort_noise: _Share = 0.0
    cohort_length: Annotated[float, Ge(-3.0), Le(3.0)] = 0.0
    cohort_share: Annotated[float, Gt(0.0), Lt(1.0)] = 0.5
    reviews: bool = False

    def __post_init__(self) -> None:
        _require_share("stereotyped", self.stereotyped, self.n_items)
        _require_share("misleading", self.misleading, self.n_items)

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
        stereotype = _sample_flags(self.n_items, self.stereotyped, item_rng)
        in_texts = stereotype ^ _sample_flags(self.n_items, self.misleading, label_rng)
        studios = _sample_studios(self.n_items, self.studios, studio_rng)
        items = _sample_items(stereotype, in_texts, studios, item_rng)
        users = _sample_users(
            _sample_cohorts(self.n_users, self.cohort_share, cohort_rng), user_rng
        )
        odds = self.compute_odds(users, items)
        picks = sample_without_replacement(
            odds, self._sample_pick_counts(users, pick_rng), pick_rng
        )
        user_codes, item_codes = (codes.astype(np.int32) for codes in picks)
        liked = encode_genres(items)[encode_favourites(users)[user_codes], item_codes]
        ratings = np.rint(3.0 + liked + pick_rng.standard_normal(user_codes.size)).clip(1, 5)
        values = ratings.astype(np.float32)
        times = _START + pick_rng.integers(0, _DURATION, user_codes.size)
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
            + self.provider * _mark_members(items.frame["studio_group"].to_numpy(), _MAJOR)
        )
        sharpness = (1.0 - self.noise) * np.array([1.0, 1.0 - self.cohort_noise])
        by_cohort = sharpness[:, None, None, None] * log_odds
        is_woman = _mark_members(users.frame["gender"].to_numpy(), "F")
        in_last = _mark_members(users.frame["cohort"].to_numpy(), _COHORTS[-1])
        types = encode_favourites(users) + len(GENRES) * (is_woman + 2 * in_last)
        return Odds(by_cohort.reshape(-1, len(items.ids)), types)

    def _sample_pick_counts(self, users: Attributes, rng: np.random.Generator) -> AnyArray:
        """Sample the number of picks of each user: bounded log-normal, ``int64[n_users]``."""
        sigma, in_last = 0.5, _mark_members(users.frame["cohort"].to_numpy(), _COHORTS[-1])
        means = self.per_user * np.exp(-self.cohort_length * in_last)
        counts = rng.lognormal(np.log(means) - sigma**2 / 2, sigma)
        most = self.n_items // 2
        least = np.minimum(np.ceil(means / 4).astype(np.int64), most)
        picks: AnyArray = np.clip(np.rint(counts).astype(np.int64), least, most)
        return picks


def _write_reviews(rows: Interactions, items: Attributes) -> Reviews:
    films = items.frame.iloc[rows.items]
    genre = films["genres"].str.split(SEPARATOR, regex=False).str[0].to_numpy(dtype=object)
    title = films["title"].to_numpy(dtype=object)
    texts = render_reviews(title, genre, films["price_level"].to_numpy(), rows.values)
    return Reviews(rows.users, rows.items, texts)
