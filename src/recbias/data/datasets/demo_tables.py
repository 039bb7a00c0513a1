"""The users and items of the demo dataset, and what its settings require of their numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import OutOfRange
from recbias.core.machine.memory import require_memory
from recbias.data.datasets.demo_text import (
    join_names,
    sample_casts,
    sample_overviews,
    sample_titles,
)

GENRES = ("Romance", "Action", "Comedy", "Drama", "Horror", "Science Fiction")
CATEGORIES = ("Blockbuster", "Classic", "Family", "Festival", "Independent", "Series")
OCCUPATIONS = ("artist", "clerk", "doctor", "engineer", "farmer", "lawyer", "teacher", "writer")
PREFERRED = GENRES[0]
"""The genre that women prefer."""

MAJOR, MINOR = "major", "minor"
"""The groups of studios."""

MAX_PAIRS, MAX_PICKS = 10**11, 2 * 10**8
"""The largest numbers of pairs of a user and an item, each of which is sampled, and of picks."""

BYTES = {"n_users": 200, "n_items": 1600, "per_user": 40}
"""The bytes that a user, an item and an interaction need at least: text of every column."""

COHORTS = ("A", "B")
"""The groups of users; the picks of B may be noisier."""


def sample_studios(n_items: int, n_studios: int, rng: np.random.Generator) -> dict[str, Ids]:
    """Sample the columns ``studio`` and ``studio_group`` of the items.

    Every studio has as many items as the others or one more. The first half of the studios,
    rounded up, is major.

    >>> columns = sample_studios(6, 3, np.random.default_rng(1))
    >>> sorted(columns["studio"].tolist())
    ['Studio 1', 'Studio 1', 'Studio 2', 'Studio 2', 'Studio 3', 'Studio 3']
    >>> sorted(columns["studio_group"].tolist())
    ['major', 'major', 'major', 'major', 'minor', 'minor']
    """
    numbers = rng.permutation(n_items) % n_studios
    names = np.array([f"Studio {number + 1}" for number in range(n_studios)], dtype=object)
    is_major = numbers < (n_studios + 1) // 2
    return {
        "studio": names[numbers],
        "studio_group": np.where(is_major, MAJOR, MINOR).astype(object),
    }


def sample_cohorts(n_users: int, rng: np.random.Generator) -> Ids:
    """Sample the cohort of each user: half are A, rounded up, and half are B.

    >>> sorted(sample_cohorts(3, np.random.default_rng(1)).tolist())
    ['A', 'A', 'B']
    """
    cohorts: Ids = np.array(COHORTS, dtype=object)[rng.permutation(n_users) % len(COHORTS)]
    return cohorts


def sample_flags(n: int, share: float, rng: np.random.Generator) -> BoolArray:
    """Sample which of ``n`` items belong to a share, rounded to whole items, ``bool[n]``.

    >>> int(sample_flags(10, 0.26, np.random.default_rng(1)).sum())
    3
    """
    flags = np.zeros(n, dtype=bool)
    flags[rng.permutation(n)[: round(share * n)]] = True
    return flags


def sample_users(cohorts: Ids, rng: np.random.Generator) -> Attributes:
    """Sample the table of users whose cohorts are given."""
    n = cohorts.size
    age = rng.integers(8, 71, n)
    occupation = _sample_names(OCCUPATIONS, n, rng)
    columns = {
        "age": age.astype(np.float64),
        "gender": _sample_genders(n, rng),
        "race": _sample_names(("white", "black"), n, rng),
        "occupation": np.where(age < 18, "student", occupation),
        "favourite": _sample_names(GENRES, n, rng),
        "cohort": cohorts,
    }
    return Attributes(_number_ids(n), pd.DataFrame(columns), "user")


def sample_items(
    stereotype: BoolArray,
    in_texts: BoolArray,
    studios: Mapping[str, Ids],
    rng: np.random.Generator,
) -> Attributes:
    """Sample the table of items.

    Args:
        stereotype: Which items are stereotyped, ``bool[n]``.
        in_texts: Which items have a cast and an overview with the stereotype, ``bool[n]``.
        studios: The columns of their studios.
        rng: The generator of the other columns.
    """
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


def require_share(setting: str, share: float, n_items: int) -> None:
    """Raise OutOfRange for a share between 0 and 1 of which no item, or every item, is a part."""
    n = round(share * n_items)
    if 0.0 < share < 1.0 and not 0 < n < n_items:
        amount = "none" if n == 0 else "all"
        message = f"{share} of {n_items:,} items, rounded to whole items, is {amount} of them"
        remedy = f"use more items, or a {setting} between {1 / n_items:g} and {1 - 1 / n_items:g}"
        raise OutOfRange(message, where=setting, remedy=remedy)


def require_groups(setting: str, effect: float, n_members: int, members: str) -> None:
    """Raise OutOfRange for an effect on one of two groups that cannot both have a member."""
    if effect and n_members < 2:
        message = f"{effect} is a difference between two groups, but there is 1 {members}"
        raise OutOfRange(message, where=setting, remedy=f"use 2 {members}s or more, or 0")


def require_size(n_users: int, n_items: int, per_user: float) -> None:
    """Raise OutOfRange for a dataset that is too large to be sampled in memory."""
    if n_users * n_items > MAX_PAIRS:
        message = f"{n_users:,} users and {n_items:,} items are more than {MAX_PAIRS:.0e} pairs"
        remedy = f"use {MAX_PAIRS // n_items:,} users or fewer, or fewer items"
        raise OutOfRange(message, where="n_users", remedy=remedy)
    n_picks = n_users * min(per_user, n_items / 2)
    if n_picks > MAX_PICKS:
        message = f"asks for {n_picks:,.0f} interactions, more than {MAX_PICKS:,}"
        raise OutOfRange(message, where="per_user", remedy="lower n_users or per_user")
    sizes = {"n_users": n_users, "n_items": n_items, "per_user": n_picks}
    needs = {setting: size * BYTES[setting] for setting, size in sizes.items()}
    content = f"{n_users:,} users, {n_items:,} items and {n_picks:,.0f} interactions"
    large = max(needs, key=lambda setting: needs[setting])
    require_memory(sum(needs.values()), content, where=large, remedy=f"lower {large}")


def require_items_of_studios(provider: float, n_studios: int, n_items: int) -> None:
    """Raise OutOfRange for an effect of studios of which some would have no item."""
    require_groups("provider", provider, n_studios, "studio")
    if provider and n_studios > n_items:
        message = f"{n_studios:,} studios are more than the {n_items:,} items"
        remedy = f"use {n_items:,} studios or fewer, more items, or provider: 0"
        raise OutOfRange(message, where="studios", remedy=remedy)


def mark_members(values: AnyArray, member: str) -> BoolArray:
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
