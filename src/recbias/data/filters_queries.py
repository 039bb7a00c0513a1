"""Filters of interactions, and the users to evaluate on; queries of a table are in ``tables``."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from annotated_types import Gt, Le

from recbias.core.context import warn
from recbias.core.dataset import (
    AnyArray,
    Attributes,
    BoolArray,
    Dataset,
    Interactions,
    Queries,
    encode_pairs,
    select_reviews,
)
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import (
    Contradiction,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    at_setting,
)
from recbias.core.grouping import list_condition_columns, match_rows
from recbias.data.splits import parse_time, require_times


@dataclass(frozen=True, kw_only=True)
class _RowFilter(InheritsSections):
    """A filter of interactions.

    Args:
        part: Whether the filter applies to ``all`` interactions before the split, or to those of
            the training part after it (``train``); the test part then keeps all of its rows, also
            of users and items that training no longer has. Models may then recommend what a user
            had in the rows that the filter excludes.
    """

    part: Literal["all", "train"] = "all"


@dataclass(frozen=True, kw_only=True)
class Threshold(_RowFilter):
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
        remedy = f"the highest rating is {values.max(initial=-np.inf):g}"
        name = f"threshold {self.at_least:g}"
        filtered = _select_rows(dataset, values >= self.at_least, name, remedy)
        rows = filtered.interactions
        ones = np.ones(len(rows), dtype=np.float32)
        return replace(filtered, interactions=replace(rows, values=ones))


@dataclass(frozen=True, kw_only=True)
class KCore(_RowFilter):
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
class Deduplicate(_RowFilter):
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
        keys, is_selected = encode_pairs(rows), np.ones(len(rows), dtype=bool)
        times = np.zeros(len(rows)) if rows.times is None else rows.times
        order = np.lexsort((-rows.values if self.keep == "max" else times, keys))
        side: Literal["first", "last"] = "last" if self.keep == "last" else "first"
        is_selected[order] = ~pd.Series(keys[order]).duplicated(side).to_numpy()
        return _select_rows(dataset, is_selected, f"deduplicate ({self.keep})")


@dataclass(frozen=True, kw_only=True)
class SampleUsers(_RowFilter):
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
class MinReviews(_RowFilter):
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


@dataclass(frozen=True, kw_only=True)
class Period(_RowFilter):
    """Keep the interactions of a period, and their reviews.

        since <= time < before

    Reviews have no time of their own: those of a user and an item stay if an interaction of the
    two does.

    Args:
        since: The start: seconds since 1970, or a date as in ``2008-01-01`` or
            ``2008-01-01T18:00`` (UTC without an offset); null for none.
        before: The end, which is no longer in the period; null for none.

    Raises:
        Contradiction: There is neither a start nor an end.
        WrongType: One of them is not a time.
        UnknownColumn: The interactions have no times.
        NothingLeft: No interaction is in the period.
    """

    since: int | str | None = None
    before: int | str | None = None

    def __post_init__(self) -> None:
        """Refuse what is not a time, and a period without ends."""
        if self.since is None and self.before is None:
            remedy = "add since: 2008-01-01, or before: 2021-01-01"
            raise Contradiction("the period has neither a start nor an end", remedy=remedy)
        self._parse_ends()

    def apply(self, dataset: Dataset, rng: np.random.Generator) -> Dataset:
        """Return the dataset of the period."""
        times = require_times(dataset.interactions, "the filter period")
        since, before = self._parse_ends()
        remedy = "there are no interactions"
        if times.size:
            first, last = (np.datetime64(int(time), "s") for time in (times.min(), times.max()))
            remedy = f"the interactions are of {first} to {last}"
        is_inside = (times >= since) & (times < before)
        filtered = _select_rows(dataset, is_inside, "period", remedy)
        return replace(filtered, reviews=select_reviews(filtered.reviews, filtered.interactions))

    def _parse_ends(self) -> tuple[float, float]:
        since = -math.inf if self.since is None else parse_time(self.since, "since")
        before = math.inf if self.before is None else parse_time(self.before, "before")
        return since, before


def find_k_core(rows: Interactions, k: int) -> BoolArray:
    """Return which rows are in the k-core, ``bool[n]``."""
    in_core = np.ones(len(rows), dtype=bool)
    while True:
        users, items = rows.users[in_core], rows.items[in_core]
        is_kept = (np.bincount(users)[users] >= k) & (np.bincount(items)[items] >= k)
        if is_kept.all():
            return in_core
        in_core[in_core] = is_kept


def find_largest_k(rows: Interactions) -> int:
    """Return the largest k whose k-core is not empty; 0 without rows."""
    candidates = range(1, int(rows.user_counts().max(initial=0)) + 1)
    return bisect(candidates, 0, key=lambda k: not find_k_core(rows, k).any())


def _select_rows(
    dataset: Dataset, is_selected: BoolArray, filter_name: str, remedy: str = ""
) -> Dataset:
    """Return the dataset of the selected rows; its counts record the number of rows before."""
    n_before = len(dataset.interactions)
    if not n_before:
        message = f"{filter_name} has nothing to filter: the dataset has no interactions"
        raise NothingLeft(message, remedy="name a file of interactions that has rows")
    if not is_selected.any():
        message = f"{filter_name} left 0 of the {n_before:,} interactions"
        raise NothingLeft(message, remedy=remedy)
    name = filter_name.partition(" ")[0]
    counts = dataset.counts | {f"interactions_before_{name}": n_before}
    return replace(dataset.select_rows(is_selected), counts=counts)


HISTORY_LENGTH = "history_length"
"""The label of users with the number of their training interactions."""


@dataclass(frozen=True, kw_only=True)
class Users:
    """Evaluate on the users of the dataset: all of them, or those that satisfy a condition.

    The queries are in the order of the users, and their labels are the columns of the users
    table and ``history_length``, the number of training interactions, unless the table has such a
    column itself. Models are trained on all users, whatever the queries.

    Args:
        where: A condition on the users' columns, as in ``age < 18 and gender == 'F'``: columns,
            numbers and quoted text, joined by ``<, <=, >, >=, ==, !=, in [..], and, or, not``. A
            comparison with a missing cell is neither true nor false.
        sample: Number of those users to sample at random; all of them, with a warning, if there
            are fewer.
        folds: Number of disjoint samples of that size. Each is a fold of the results. The models
            are trained once, on the interactions of all users. ``--limit`` takes the first users
            of each sample.

    Raises:
        Contradiction: There are ``folds`` without ``sample``.
        OutOfRange: There are too few users for disjoint samples.
        WrongType: ``where`` is not a condition, or compares text with a number.
        UnknownColumn: The users have no such column, or there is no users table.
        NothingLeft: No user satisfies the condition.
    """

    where: str | None = None
    sample: Annotated[int, Gt(0)] | None = None
    folds: Annotated[int, Gt(0), Le(1_000)] = 1

    def __post_init__(self) -> None:
        if self.folds > 1 and self.sample is None:
            message = f"{self.folds} disjoint samples of users need their size"
            raise Contradiction(message, where="folds", remedy="add sample: 1000, or remove folds")
        if self.where is None:
            return
        with at_setting("where"):
            list_condition_columns(self.where)

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return a query for each selected user; those of several folds one after another."""
        users = self._select_users(dataset)
        if self.sample is not None:
            users = self._sample_users(users, self.sample, rng)
        ids = dataset.user_ids.take(users)
        labels = describe_users(dataset).take(users, ids)
        return Queries(ids, labels, users.astype(np.int32), unit=dataset.unit)

    def _sample_users(self, users: AnyArray, size: int, rng: np.random.Generator) -> AnyArray:
        """Return random samples of users without replacement, each in the order of the users."""
        if self.folds == 1 and size > users.size:
            warn(f"a sample of {size:,} was requested; all {users.size:,} users are used")
            return users
        if self.folds * size > users.size:
            message = (
                f"{self.folds} disjoint samples of {size:,} need {self.folds * size:,} users, "
                f"but there are {users.size:,}"
            )
            largest = users.size // self.folds
            remedy = f"sample: {largest} is the largest possible" if largest else "use fewer folds"
            raise OutOfRange(message, where="sample", remedy=remedy)
        samples = rng.permutation(users)[: self.folds * size].reshape(self.folds, size)
        return np.sort(samples, axis=1).ravel()

    def _select_users(self, dataset: Dataset) -> AnyArray:
        n = len(dataset.user_ids)
        if not n:
            raise NothingLeft("the dataset has no users")
        if self.where is None:
            return np.arange(n)
        if dataset.users is None and list_condition_columns(self.where) != {HISTORY_LENGTH}:
            message = f"{self.where!r} uses columns of the users, but there is no users table"
            raise UnknownColumn(message, remedy="add a users table, or remove where")
        described = describe_users(dataset)
        users = np.flatnonzero(match_rows(self.where, described))
        if not users.size:
            remedy = f"the users have the columns {', '.join(described.names)}"
            raise NothingLeft(f"none of the {n:,} users satisfies {self.where!r}", remedy=remedy)
        return users


def describe_users(dataset: Dataset) -> Attributes:
    """Return the users table with the column ``history_length``, unless it has one itself."""
    ids = dataset.user_ids
    users = dataset.users or Attributes(ids, pd.DataFrame(index=range(len(ids))), "user")
    if HISTORY_LENGTH in users.frame or not len(dataset.interactions):
        return users
    counts = dataset.interactions.user_counts().astype(np.float64)
    frame = users.frame.reset_index(drop=True).assign(**{HISTORY_LENGTH: counts})
    return replace(users, frame=frame)
