"""Leave interactions out: by rating, by how often users and items occur, by repetition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, Codes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import pair_keys
from recbias.core.errors import NothingLeft
from recbias.core.stage_context import warn


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Keep ratings from a limit on as positive interactions; the others go.

        value = 1 if rating >= at_least; the row is left out otherwise

    Args:
        at_least: The lowest rating that is positive.

    Raises:
        NothingLeft: No rating is that high.
    """

    at_least: float

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the positive interactions, each with the value 1."""
        values = dataset.interactions.values
        highest = f"the highest rating is {values.max():g}" if values.size else ""
        left = _left(dataset, values >= self.at_least, f"threshold {self.at_least:g}", highest)
        ones = np.ones(len(left.interactions), dtype=np.float32)
        return replace(left, interactions=replace(left.interactions, values=ones))


@dataclass(frozen=True, kw_only=True)
class KCore:
    """Keep users and items with at least k rows each, repeated until nothing changes.

    Leaving a user out may bring an item below k, and the other way round. What is left at the end
    is the largest part of the data in which every user and every item has k rows; it does not
    depend on the order of the steps. Rows are counted, so a pair that stands twice counts twice.

    Args:
        k: The fewest rows that a user or an item may have.

    Raises:
        NothingLeft: No part of the data is that dense; the remedy names the largest k that works.

    Source:
        Seidman, "Network structure and minimum degree", Social Networks 5, 1983.
    """

    k: Annotated[int, Gt(0)]

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the k-core."""
        rows = core_rows(dataset.interactions, self.k)
        remedy = ""
        if not rows.any():
            remedy = f"the largest k that leaves any is {largest_k(dataset.interactions)}"
        return _left(dataset, rows, f"k_core {self.k}", remedy)


@dataclass(frozen=True, kw_only=True)
class Deduplicate:
    """Keep one row of each (user, item) pair.

    Args:
        keep: Which row is kept: the ``first`` or ``last`` by time (by the order of the rows where
            there are no times or they are equal), or the one of the highest value (``max``; of
            equal ones the first row).

    Raises:
        NothingLeft: There is no interaction.
    """

    keep: Literal["first", "last", "max"] = "last"

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset without repeated pairs."""
        rows = dataset.interactions
        keys = pair_keys(rows)
        kept = np.ones(len(rows), dtype=bool)
        if _has_repeats(keys):
            order = np.lexsort((self._rank(rows), keys))
            new = keys[order][1:] != keys[order][:-1]
            at_edge = np.append(new, True) if self.keep == "last" else np.insert(new, 0, True)
            kept[order] = at_edge
        return _left(dataset, kept, f"deduplicate ({self.keep})")

    def _rank(self, rows: Interactions) -> AnyArray:
        if self.keep == "max":
            return -rows.values
        return np.zeros(len(rows)) if rows.times is None else rows.times


@dataclass(frozen=True, kw_only=True)
class SampleUsers:
    """Keep the interactions of some users, drawn at random, each with the same chance.

    Args:
        n: How many users are kept; all of them, with a warning, where there are fewer.

    Raises:
        NothingLeft: There is no interaction.
    """

    n: Annotated[int, Gt(0)]

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset of the users drawn."""
        rows = dataset.interactions
        users = np.flatnonzero(rows.user_counts())
        if self.n > users.size:
            warn(f"sample_users {self.n:,}: there are only {users.size:,} users, all are kept")
        drawn = np.zeros(rows.n_users, dtype=bool)
        drawn[rng.permutation(users)[: self.n]] = True
        return _left(dataset, drawn[rows.users], f"sample_users {self.n:,}")


@dataclass(frozen=True, kw_only=True)
class MinReviews:
    """Keep the interactions with items that have enough reviews.

    Reviews are counted where the dataset has review texts, empty ones too; where it has none, an
    item's interactions are counted.

    Args:
        n: The fewest reviews an item may have.

    Raises:
        NothingLeft: No item has as many.
    """

    n: Annotated[int, Gt(0)]

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset of the items that have enough."""
        rows, reviews = dataset.interactions, dataset.reviews
        reviewed = rows.items if reviews is None else reviews.items
        counts = np.bincount(reviewed, minlength=rows.n_items)
        most = f"the most that an item has is {counts.max(initial=0):,}"
        return _left(dataset, (counts >= self.n)[rows.items], f"min_reviews {self.n:,}", most)


def core_rows(rows: Interactions, k: int) -> BoolArray:
    """Return which rows are in the k-core, ``bool[n]``.

    The counts are worked out once; after that only what goes is counted, and taken off.
    """
    sides = [(rows.users, rows.user_counts()), (rows.items, rows.item_counts())]
    core = np.ones(len(rows), dtype=bool)
    left: npt.NDArray[np.intp] | None = None  # positions of the rows in question; None is all
    while (gone := _below(sides, k)).any():
        sides = [
            (codes[~gone], counts - np.bincount(codes[gone], minlength=counts.size))
            for codes, counts in sides
        ]
        places = np.arange(len(rows)) if left is None else left
        core[places[gone]] = False
        left = places[~gone]
    return core


def largest_k(rows: Interactions) -> int:
    """Return the largest k for which the k-core has a row; 0 where there is no row."""
    works, fails = 0, int(rows.user_counts().max(initial=0)) + 1
    while fails - works > 1:
        middle = (works + fails) // 2
        if core_rows(rows, middle).any():
            works = middle
        else:
            fails = middle
    return works


def _below(sides: list[tuple[Codes, npt.NDArray[np.int64]]], k: int) -> BoolArray:
    """Return which of the rows are of a user or an item with fewer than k."""
    gone: BoolArray = np.zeros(sides[0][0].size, dtype=bool)
    for codes, counts in sides:
        low = (counts > 0) & (counts < k)
        if low.any():
            gone |= low[codes]
    return gone


def _has_repeats(keys: npt.NDArray[np.int64]) -> bool:
    ordered = np.sort(keys)
    return bool((ordered[1:] == ordered[:-1]).any())


def _left(dataset: Dataset, rows: BoolArray, who: str, remedy: str = "") -> Dataset:
    """Return the dataset of some rows, with the number of rows before it in its counts."""
    before = len(dataset.interactions)
    if not rows.any():
        raise NothingLeft(f"{who} left 0 of the {before:,} interactions", remedy=remedy)
    name = who.partition(" ")[0]
    counts = dataset.counts | {f"interactions_before_{name}": before}
    return replace(dataset.with_rows(rows), counts=counts)
