"""Filters of interactions: by rating, by user and item counts, by repetition, by sampling."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, Codes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import encode_pairs
from recbias.core.errors import NothingLeft
from recbias.core.stage_context import warn


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Keep ratings of at least a threshold as positive interactions.

        value = 1 if rating >= at_least; the row is excluded otherwise

    Args:
        at_least: The lowest rating that is positive.

    Raises:
        NothingLeft: No rating is that high.
    """

    at_least: float

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the positive interactions, each with the value 1."""
        values = dataset.interactions.values
        remedy = f"the highest rating is {values.max():g}" if values.size else ""
        name = f"threshold {self.at_least:g}"
        filtered = _select_rows(dataset, values >= self.at_least, name, remedy)
        rows = filtered.interactions
        ones = np.ones(len(rows), dtype=np.float32)
        return replace(filtered, interactions=replace(rows, values=ones))


@dataclass(frozen=True, kw_only=True)
class KCore:
    """Keep users and items with at least k rows each, repeated until nothing changes.

    Excluding a user may bring an item below k, and vice versa. The result is the largest subset in
    which every user and every item has k rows; it does not depend on the order of the steps. Rows
    are counted, so a repeated pair counts twice.

    Args:
        k: The minimum number of rows of a user or an item.

    Raises:
        NothingLeft: The k-core is empty; the remedy is the largest k whose core is not.

    Source:
        Seidman, "Network structure and minimum degree", Social Networks 5, 1983.
    """

    k: Annotated[int, Gt(0)]

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the k-core."""
        in_core = find_k_core(dataset.interactions, self.k)
        remedy = ""
        if not in_core.any():
            remedy = f"the largest k that leaves any is {find_largest_k(dataset.interactions)}"
        return _select_rows(dataset, in_core, f"k_core {self.k}", remedy)


@dataclass(frozen=True, kw_only=True)
class Deduplicate:
    """Keep one row of each (user, item) pair.

    Args:
        keep: Which row: the ``first`` or ``last`` by time (by the order of the rows without times
            or for equal times), or the row with the highest value (``max``; the first of them).

    Raises:
        NothingLeft: There is no interaction.
    """

    keep: Literal["first", "last", "max"] = "last"

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset without repeated pairs."""
        rows = dataset.interactions
        keys = encode_pairs(rows)
        is_selected = np.ones(len(rows), dtype=bool)
        ordered = np.sort(keys)
        if (ordered[1:] == ordered[:-1]).any():
            times = np.zeros(len(rows)) if rows.times is None else rows.times
            order = np.lexsort((-rows.values if self.keep == "max" else times, keys))
            new = keys[order][1:] != keys[order][:-1]
            at_edge = np.append(new, True) if self.keep == "last" else np.insert(new, 0, True)
            is_selected[order] = at_edge
        return _select_rows(dataset, is_selected, f"deduplicate ({self.keep})")


@dataclass(frozen=True, kw_only=True)
class SampleUsers:
    """Keep the interactions of users that are sampled uniformly at random.

    Args:
        n: Number of users; all of them, with a warning, if there are fewer.

    Raises:
        NothingLeft: There is no interaction.
    """

    n: Annotated[int, Gt(0)]

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset of the sampled users."""
        rows = dataset.interactions
        users = np.flatnonzero(rows.user_counts())
        if self.n > users.size:
            warn(f"sample_users {self.n:,}: all {users.size:,} users are used, there are no more")
        is_sampled = np.zeros(rows.n_users, dtype=bool)
        is_sampled[rng.permutation(users)[: self.n]] = True
        return _select_rows(dataset, is_sampled[rows.users], f"sample_users {self.n:,}")


@dataclass(frozen=True, kw_only=True)
class MinReviews:
    """Keep the interactions with items that have enough reviews.

    The count is that of the review texts, including empty ones; without review texts it is the
    number of interactions of the item.

    Args:
        n: The minimum number of reviews of an item.

    Raises:
        NothingLeft: No item has as many.
    """

    n: Annotated[int, Gt(0)]

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset restricted to items with enough reviews."""
        rows, reviews = dataset.interactions, dataset.reviews
        reviewed = rows.items if reviews is None else reviews.items
        counts = np.bincount(reviewed, minlength=rows.n_items)
        remedy = f"no item has more than {counts.max(initial=0):,}"
        has_enough = (counts >= self.n)[rows.items]
        return _select_rows(dataset, has_enough, f"min_reviews {self.n:,}", remedy)


def find_k_core(rows: Interactions, k: int) -> BoolArray:
    """Return which rows are in the k-core, ``bool[n]``.

    Rows are counted once; each round then subtracts the counts of the rows that it excludes.
    """
    counts = [rows.user_counts(), rows.item_counts()]
    in_core = np.ones(len(rows), dtype=bool)
    codes: list[Codes] = [rows.users, rows.items]
    positions: AnyArray = np.arange(len(rows), dtype=np.min_scalar_type(len(rows)))
    while (is_excluded := _find_below(codes, counts, k)).any():
        in_core[positions[is_excluded]] = False
        is_kept = ~is_excluded
        positions = positions[is_kept]
        for side in range(2):  # one after the other, so that few copies are held at once
            excluded = np.bincount(codes[side][is_excluded], minlength=counts[side].size)
            counts[side] = counts[side] - excluded
            codes[side] = codes[side][is_kept]
    return in_core


def find_largest_k(rows: Interactions) -> int:
    """Return the largest k whose k-core is not empty; 0 without rows."""
    candidates = range(1, int(rows.user_counts().max(initial=0)) + 1)
    return bisect(candidates, 0, key=lambda k: not find_k_core(rows, k).any())


def _find_below(sides: list[Codes], counts: list[npt.NDArray[np.int64]], k: int) -> BoolArray:
    is_below: BoolArray = np.zeros(sides[0].size, dtype=bool)
    for codes, of_code in zip(sides, counts, strict=True):
        is_sparse = (of_code > 0) & (of_code < k)
        if is_sparse.any():
            is_below |= is_sparse[codes]
    return is_below


def _select_rows(
    dataset: Dataset, is_selected: BoolArray, filter_name: str, remedy: str = ""
) -> Dataset:
    """Return the dataset of the selected rows; its counts record the number of rows before."""
    n_before = len(dataset.interactions)
    if not is_selected.any():
        message = f"{filter_name} left 0 of the {n_before:,} interactions"
        raise NothingLeft(message, remedy=remedy)
    name = filter_name.partition(" ")[0]
    counts = dataset.counts | {f"interactions_before_{name}": n_before}
    return replace(dataset.select_rows(is_selected), counts=counts)
