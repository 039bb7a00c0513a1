"""The words of the demo world: titles, casts, descriptions and reviews, a column at a time."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.attributes import SEPARATOR

CAST = 5
"""How many people each cast has."""


def _words(*words: str) -> Ids:
    """Return the words given, or those of one text."""
    return np.array(words if len(words) > 1 else words[0].split(), dtype=object)


WOMEN = _words(
    "Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen Nancy Margaret "
    "Sandra Emily Donna Michelle Carol Amanda Melissa Deborah Stephanie Rebecca Laura Helen Anna"
)
MEN = _words(
    "James John Robert Michael William David Richard Joseph Thomas Charles Daniel Matthew "
    "Anthony Mark Paul Steven Andrew Kenneth George Edward Brian Kevin Jason Jeffrey Frank"
)
FAMILIES = _words(
    "Abbott Baker Carter Dawson Ellis Foster Graham Harper Ingram Jensen Keller Lawson Morgan "
    "Norris Osborne Porter Quinn Reed Sawyer Turner Underwood Vaughn Walsh York Zimmer"
)

FIRST_WORDS = _words(
    "Silent Golden Broken Distant Hidden Crimson Frozen Wandering Burning Lonely Painted Restless "
    "Velvet Hollow Shining Stolen Quiet Wild Secret Endless Paper Iron Winter Summer Midnight"
)
SECOND_WORDS = _words(
    "River Harbour Garden Mirror Station Letters Mountain Orchard Voyage Island Promise Circus "
    "Lantern Bridge Kingdom Theatre Horizon Library Shadow Meadow Signal Window Market Road Tide"
)

SETTINGS = _words(
    "a fishing village",
    "a city that never sleeps",
    "a school by the sea",
    "a station in the snow",
    "a farm at harvest time",
    "an old theatre",
    "a space port",
    "a mountain hotel",
)
NEUTRAL = _words(
    "Two friends restore a lighthouse and learn to trust each other.",
    "A teacher and her neighbour look for a lost dog and find a family.",
    "A doctor and his sister build a boat and sail around the world.",
    "A band of strangers must share one map to get home.",
    "A baker and a clockmaker solve a riddle that is a century old.",
    "Three cousins inherit a cinema and keep it open against all odds.",
)
STEREOTYPED = _words(
    "The women stay at home to cook and gossip while the men fight for glory.",
    "The men make all the plans, because the women are too emotional to decide.",
    "A brilliant man saves the town, and a pretty woman waits to be rescued.",
    "The boys learn to fly; the girls are told to smile, sew and marry well.",
    "Every man here is strong and rational, every woman weak and hysterical.",
    "A real man never cries, and a good woman never talks back to him.",
)
OPINIONS = _words(
    "I want my evening back.",
    "Not for me.",
    "It was all right.",
    "I liked it a lot.",
    "One of the best I know.",
)
PRICES = _words("cheap", "fairly priced", "not cheap", "expensive")


def titles(n: int, rng: np.random.Generator) -> Ids:
    """Return ``n`` titles, no two alike."""
    pairs = len(FIRST_WORDS) * len(SECOND_WORDS)
    number, pair = np.divmod(np.arange(n), pairs)
    pair = rng.permutation(pairs)[pair]
    words = FIRST_WORDS[pair % len(FIRST_WORDS)] + " "
    words += SECOND_WORDS[pair // len(FIRST_WORDS)]
    numbered = words + " " + (number + 1).astype(str).astype(object)
    found: Ids = np.where(number > 0, numbered, words)
    return found


def casts(more_men: BoolArray, rng: np.random.Generator) -> Ids:
    """Return a cast ``First Last|...`` of five for each item, no first name twice.

    Args:
        more_men: Whether there are 3 to 5 men in it; else there are 0 to 2, ``bool[n]``.
        rng: The generator.
    """
    n = more_men.size
    n_men = rng.integers(0, 3, n) + 3 * more_men
    places = rng.permuted(np.tile(np.arange(CAST), (n, 1)), axis=1)
    women = WOMEN[_distinct(len(WOMEN), n, rng)]
    men = MEN[_distinct(len(MEN), n, rng)]
    first = np.where(places < n_men[:, None], men, women)
    people = first + " " + FAMILIES[rng.integers(0, len(FAMILIES), (n, CAST))]
    return _joined(people)


def overviews(genre: Ids, stereotyped: BoolArray, rng: np.random.Generator) -> Ids:
    """Return a description of two sentences for each item.

    Args:
        genre: The first genre of each item.
        stereotyped: Whether the second sentence is a stereotype, ``bool[n]``.
        rng: The generator.
    """
    place = rng.integers(0, len(NEUTRAL), genre.size)
    story = np.where(stereotyped, STEREOTYPED[place], NEUTRAL[place])
    setting = SETTINGS[rng.integers(0, len(SETTINGS), genre.size)]
    found: Ids = genre + " story set in " + setting + ". " + story
    return found


def review_texts(title: Ids, genre: Ids, price_level: AnyArray, rating: AnyArray) -> Ids:
    """Return a review that says what the rating says, for each row."""
    opinion = OPINIONS[rating.astype(np.intp) - 1]
    price = PRICES[price_level.astype(np.intp) - 1]
    found: Ids = opinion + " " + title + " is " + price + ", and it is all " + genre + "."
    return found


def several(names: tuple[str, ...], first: AnyArray, second: AnyArray) -> Ids:
    """Return ``A|B`` of two codes each; ``A`` where the second is the same or -1."""
    words = np.array(names, dtype=object)
    alone = (second < 0) | (second == first)
    found: Ids = np.where(alone, words[first], words[first] + SEPARATOR + words[second])
    return found


def _distinct(size: int, n: int, rng: np.random.Generator) -> AnyArray:
    """Return ``n`` rows of codes below ``size``, none twice in a row, ``int64[n, CAST]``."""
    return np.argsort(rng.random((n, size)), axis=1)[:, :CAST]


def _joined(columns: AnyArray) -> Ids:
    found: Ids = columns[:, 0]
    for column in columns.T[1:]:
        found = found + SEPARATOR + column
    return found
