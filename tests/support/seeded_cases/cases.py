"""Small inputs made from a seed, whose values other code has computed outside the project.

They are drawn by ``random.Random(seed).random()``, which returns the same numbers in all versions
of Python and on all machines: only the values of the other code are stored. The other code imports
this module, which needs no package.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")
GENRES = "ABCDE"


class SeededCase(NamedTuple):
    """Lists of queries, users' histories, and the attributes of the items.

    Attributes:
        n_items: The items are 0 to n_items - 1, and may all be recommended.
        lists: A list for each query, all of one length: 2, 5 or 10.
        short_lists: The lists, each cut at a length of its own, at least 2.
        relevant: The relevant items of each query, at least one.
        judged: The relevant items, but none for a quarter of the queries.
        histories: The items of each user; the users of the queries come first. All items have
            different numbers of users, at least one.
        profiles: The items of each query's history for calibration, 5 or 10.
        genres: The one, two or four genres of each item.
        makers: The maker of each item; each maker has an item.
        vectors: A vector of whole numbers for each item, never 0.
        scores: A score of each query, above 0, some of them equal.
        groups: The group of each query; each group has two queries or more.
        people: The person of whom each query is a sample.
    """

    n_items: int
    lists: list[list[int]]
    short_lists: list[list[int]]
    relevant: list[list[int]]
    judged: list[list[int]]
    histories: list[list[int]]
    profiles: list[list[int]]
    genres: list[list[str]]
    makers: list[str]
    vectors: list[list[int]]
    scores: list[float]
    groups: list[str]
    people: list[int]


def make_seeded_case(seed: int) -> SeededCase:
    """Return the case of a seed."""
    draw = Random(seed)
    n_items, n = pick(draw, range(12, 31)), pick(draw, range(4, 15))
    k = pick(draw, (2, 5, 10))
    favourites = [draw.random() ** 2 for _ in range(n_items)]
    lists = [
        sorted(range(n_items), key=lambda item: draw.random() * favourites[item])[:k]
        for _ in range(n)
    ]
    n_users = max(n, n_items + 4)
    popularity = shuffle(draw, range(1, n_items + 1))
    histories: list[list[int]] = [[] for _ in range(n_users)]
    for item, size in enumerate(popularity):
        for user in shuffle(draw, range(n_users))[:size]:
            histories[user].append(item)
    pairs = "wwxxyyzz"[: 2 * pick(draw, range(2, min(n // 2, 4) + 1))]
    makers = [*"ab", *(pick(draw, "aabbbcd") for _ in range(n_items - 2))]
    relevant = [shuffle(draw, range(n_items))[: pick(draw, range(1, 6))] for _ in range(n)]
    return SeededCase(
        n_items=n_items,
        lists=lists,
        short_lists=[row[: pick(draw, range(2, k + 1))] for row in lists],
        relevant=relevant,
        judged=[items if (seed + query) % 4 else [] for query, items in enumerate(relevant)],
        histories=histories,
        profiles=[shuffle(draw, range(n_items))[: pick(draw, (5, 10))] for _ in range(n)],
        genres=[shuffle(draw, GENRES)[: pick(draw, (1, 1, 2, 4))] for _ in range(n_items)],
        makers=makers,
        vectors=[[1, *(pick(draw, range(-3, 4)) for _ in range(3))] for _ in range(n_items)],
        scores=[pick(draw, range(1, 21)) / 20 for _ in range(n)],
        groups=[*pairs, *(pick(draw, pairs) for _ in range(n - len(pairs)))],
        people=[pick(draw, range(max(2, n // 3))) for _ in range(n)],
    )


def pick(draw: Random, values: Sequence[T]) -> T:
    """Return one of the values."""
    return values[int(draw.random() * len(values))]


def shuffle(draw: Random, values: Sequence[T]) -> list[T]:
    """Return the values in random order."""
    keys = [draw.random() for _ in values]
    return [values[at] for at in sorted(range(len(values)), key=keys.__getitem__)]
