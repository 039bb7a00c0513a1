"""The texts of the demo dataset: titles, casts, overviews and reviews, one column at a time."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Ids
from recbias.core.dataset.attributes import SEPARATOR

CAST_SIZE = 5


def _make_array(*texts: str) -> Ids:
    """Return an array of several texts, or of the words of a single text."""
    return np.array(texts if len(texts) > 1 else texts[0].split(), dtype=object)


WOMEN = _make_array(
    "Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen Nancy Margaret "
    "Sandra Emily Donna Michelle Carol Amanda Melissa Deborah Stephanie Rebecca Laura Helen Anna"
)
MEN = _make_array(
    "James John Robert Michael William David Richard Joseph Thomas Charles Daniel Matthew "
    "Anthony Mark Paul Steven Andrew Kenneth George Edward Brian Kevin Jason Jeffrey Frank"
)
FAMILIES = _make_array(
    "Abbott Baker Carter Dawson Ellis Foster Graham Harper Ingram Jensen Keller Lawson Morgan "
    "Norris Osborne Porter Quinn Reed Sawyer Turner Underwood Vaughn Walsh York Zimmer"
)

FIRST_WORDS = _make_array(
    "Silent Golden Broken Distant Hidden Crimson Frozen Wandering Burning Lonely Painted Restless "
    "Velvet Hollow Shining Stolen Quiet Wild Secret Endless Paper Iron Winter Summer Midnight"
)
SECOND_WORDS = _make_array(
    "River Harbour Garden Mirror Station Letters Mountain Orchard Voyage Island Promise Circus "
    "Lantern Bridge Kingdom Theatre Horizon Library Shadow Meadow Signal Window Market Road Tide"
)

SETTINGS = _make_array(
    "a fishing village",
    "a city that never sleeps",
    "a school by the sea",
    "a station in the snow",
    "a farm at harvest time",
    "an old theatre",
    "a space port",
    "a mountain hotel",
)
NEUTRAL = _make_array(
    "Two friends restore a lighthouse and learn to trust each other.",
    "A teacher and her neighbour look for a lost dog and find a family.",
    "A doctor and his sister build a boat and sail around the world.",
    "A band of strangers must share one map to get home.",
    "A baker and a clockmaker solve a riddle that is a century old.",
    "Three cousins inherit a cinema and keep it open against all odds.",
)
STEREOTYPED = _make_array(
    "The women stay at home to cook and gossip while the men fight for glory.",
    "The men make all the plans, because the women are too emotional to decide.",
    "A brilliant man saves the town, and a pretty woman waits to be rescued.",
    "The boys learn to fly; the girls are told to smile, sew and marry well.",
    "Every man here is strong and rational, every woman weak and hysterical.",
    "A real man never cries, and a good woman never talks back to him.",
)
OPINIONS = _make_array(
    "I want my evening back.",
    "Not for me.",
    "It was all right.",
    "I liked it a lot.",
    "One of the best I know.",
)
PRICES = _make_array("cheap", "fairly priced", "not cheap", "expensive")


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
    position = rng.permuted(np.tile(np.arange(CAST_SIZE), (n, 1)), axis=1)
    women = WOMEN[_sample_distinct(len(WOMEN), n, rng)]
    men = MEN[_sample_distinct(len(MEN), n, rng)]
    first_names = np.where(position < n_men[:, None], men, women)
    people = first_names + " " + FAMILIES[rng.integers(0, len(FAMILIES), (n, CAST_SIZE))]
    casts: Ids = np.array([SEPARATOR.join(names) for names in people], dtype=object)
    return casts


def sample_overviews(genre: Ids, stereotyped: BoolArray, rng: np.random.Generator) -> Ids:
    """Sample an overview of two sentences for each item, the second maybe a stereotype."""
    story_code = rng.integers(0, len(NEUTRAL), genre.size)
    story = np.where(stereotyped, STEREOTYPED[story_code], NEUTRAL[story_code])
    setting = SETTINGS[rng.integers(0, len(SETTINGS), genre.size)]
    overviews: Ids = genre + " story set in " + setting + ". " + story
    return overviews


def render_reviews(title: Ids, genre: Ids, price_level: AnyArray, rating: AnyArray) -> Ids:
    """Return a review for each row whose opinion matches the rating."""
    opinion = OPINIONS[rating.astype(np.intp) - 1]
    price = PRICES[price_level.astype(np.intp) - 1]
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
    return np.argsort(rng.random((n, size)), axis=1)[:, :CAST_SIZE]
