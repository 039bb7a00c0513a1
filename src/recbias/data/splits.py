"""Splits: temporal, leave-one-out, at random, and read from files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Le, Lt, MinLen

from recbias.core.dataset import (
    AnyArray,
    BoolArray,
    Dataset,
    Interactions,
    Split,
)
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn, WrongType
from recbias.core.plugins import OnlyWith
from recbias.kernels.sparse import argsort_codes

_Counts = npt.NDArray[np.int64]

_ROUNDING = 1e-9
"""Added before rounding down, so that 0.7 of 10 rows is 7 although 0.7 * 10 may be 6.999."""


class _HoldOut:
    """Base of the splits that may hold out a validation part."""

    validation: float

    def gives(self) -> frozenset[str]:
        """Return the parts that the split makes."""
        return frozenset({"test", "validation"} if self.validation else {"test"})


class _RankedSplit(_HoldOut):
    """Base of the splits that hold out the last rows of an order."""

    def split_by_ranks(
        self,
        rows: Interactions,
        ranks: AnyArray,
        n_train: AnyArray,
        test_start: AnyArray,
        name: str,
    ) -> Split:
        """Split rows by their ranks, ``[n]``: train, validation and test in this order."""
        is_later = ranks >= n_train
        validation = is_later & (ranks < test_start) if self.validation else None
        return split_by_masks(rows, ranks >= test_start, validation, name)


def _shuffle(rows: Interactions, rng: np.random.Generator) -> AnyArray:
    """Return the positions of the rows in random order, independent of the order of the file."""
    return _order_by_user_and_item(rows)[rng.permutation(len(rows))]


def shuffle_within_users(rows: Interactions, rng: np.random.Generator) -> AnyArray:
    """Return the positions of the rows grouped by user, in the order of ``_shuffle``."""
    order = _shuffle(rows, rng)
    return order[argsort_codes(rows.users[order], rows.n_users)]


def _order_by_user_and_item(rows: Interactions) -> AnyArray:
    """Return the positions of the rows by user and item; repeated rows keep their order."""
    by_item = argsort_codes(rows.items, rows.n_items)
    return by_item[argsort_codes(rows.users[by_item], rows.n_users)]


def _rank_within_items(rows: Interactions, rng: np.random.Generator) -> tuple[AnyArray, _Counts]:
    """Return the rank of each row in a random order of its item's users, and their number."""
    n_items = max(rows.n_items, 1)
    keys = rows.users.astype(np.int64) * n_items + rows.items
    pairs, pair_codes = np.unique(keys, return_inverse=True)
    items = pairs % n_items
    permutation = rng.permutation(pairs.size)
    order = permutation[np.argsort(items[permutation], kind="stable")]
    counts = np.bincount(items, minlength=rows.n_items)
    return rank_within_groups(order, counts)[pair_codes], counts[items][pair_codes]


def rank_within_groups(order: AnyArray, counts: AnyArray) -> AnyArray:
    """Return the rank of each row in its group, from 0, of the type of ``order``.

    ``order`` has the positions of the rows by group, ``counts`` the sizes of the groups.
    """
    starts = (np.cumsum(counts) - counts).astype(order.dtype)
    by_group = np.arange(order.size, dtype=order.dtype)
    by_group -= np.repeat(starts, counts)
    ranks = np.empty_like(order)
    ranks[order] = by_group
    return ranks


def count_training_rows(counts: AnyArray, test_share: float) -> _Counts:
    """Return max(1, floor((1 - test_share) * n)) for each count n.

    >>> count_training_rows(np.array([10, 4, 1]), 0.2).tolist()
    [8, 3, 1]
    """
    n_train = np.floor((1.0 - test_share) * counts + _ROUNDING).astype(np.int64)
    return np.maximum(n_train, 1)


def validate_shares(test: float, validation: float) -> None:
    """Refuse shares that leave nothing to train on.

    Raises:
        Contradiction: The shares add up to 1 or more.
    """
    if test + validation > 1.0 or math.isclose(test + validation, 1.0):
        message = f"test ({test:g}) and validation ({validation:g}) leave nothing to train on"
        remedy = "both are shares of all interactions: their sum must be below 1"
        raise Contradiction(message, where="validation", remedy=remedy)


def split_by_masks(
    rows: Interactions, test: BoolArray, validation: BoolArray | None, split_name: str
) -> Split:
    """Split the rows by two masks, ``bool[n]``; all other rows are for training.

    Raises:
        NothingLeft: A part is empty.
        Leakage: A (user, item) pair is in two parts.
    """
    masks = {"train": ~test if validation is None else ~(test | validation), "test": test}
    if validation is not None:
        masks["validation"] = validation
    if not len(rows):
        message = "the dataset has no interactions to split"
        remedy = "its file has no rows, or its filters leave none: recbias data describe SPEC"
        raise NothingLeft(message, remedy=remedy)
    for name, mask in masks.items():
        if not mask.any():
            message = f"{split_name} of {len(rows):,} interactions leaves the {name} part empty"
            raise NothingLeft(message, remedy="choose other shares, or a dataset with more rows")
    parts = {name: rows.take(mask) for name, mask in masks.items()}
    return Split(parts["train"], parts["test"], parts.get("validation"))


@dataclass(frozen=True, kw_only=True)
class Temporal(_RankedSplit):
    """Train on earlier interactions and test on later ones.

    With ``per: global`` there is one cut for all users: rows from that time on are the test part,
    so no training row is later than a test row. The cut is ``at``, or the time of the row after
    the first ``floor((1 - test) * n)`` of all n rows by time. Rows with equal times stay together,
    so the test part may be slightly larger than its share. With ``per: user`` the latest
    ``n(u) - max(1, floor((1 - test) * n(u)))`` rows of each user are tested, equal times in the
    order of the file; a training row of one user may then be later than a test row of another.

    The validation part is the latest of the rows before the test part; the test part does not
    depend on ``validation``.

    Args:
        test: Share of the interactions for testing; not beside ``at``.
        at: Start of the test part: seconds since 1970, or a date as in ``2000-11-20`` or
            ``2000-11-20T18:00`` (UTC without an offset).
        per: Whether there is one cut (``global``) or one for each ``user``.
        validation: Share of all interactions for validation; 0 for no validation part.

    Raises:
        Contradiction: ``at`` with ``per: user``; ``test`` and ``validation`` add up to 1 or more.
        WrongType: ``at`` is not a time.
        UnknownColumn: The interactions have no times.
        NothingLeft: A part would be empty.

    Source:
        Campos, Díez and Cantador, "Time-aware recommender systems: a comprehensive survey and
        analysis of existing evaluation protocols", UMUAI 24, 2014.
    """

    folds: ClassVar[int] = 1

    test: Annotated[float, Gt(0.0), Lt(1.0), OnlyWith("at", None)] = 0.2
    at: int | str | None = None
    per: Literal["user", "global"] = "global"
    validation: Annotated[float, Ge(0.0), Lt(1.0)] = 0.0

    def __post_init__(self) -> None:
        if self.at is None:
            validate_shares(self.test, self.validation)
        elif self.per == "user":
            message = "at is a cut for all users, but per: user needs a cut for each user"
            raise Contradiction(message, where="at", remedy="remove one of the two settings")
        else:
            parse_time(self.at)

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return the split; it is deterministic."""
        rows = dataset.interactions
        times = require_times(rows, "a temporal split")
        if not len(rows):
            raise NothingLeft("there are no interactions to split")
        if self.per == "user":
            ranks = rank_within_groups(np.lexsort((times, rows.users)), rows.user_counts())
            n_train, test_start = (
                count_training_rows(rows.user_counts(), share)[rows.users]
                for share in (self.test + self.validation, self.test)
            )
            return self.split_by_ranks(rows, ranks, n_train, test_start, "a temporal split")
        return split_by_masks(rows, *self._cut_globally(times), "a temporal split")

    def _cut_globally(self, times: _Counts) -> tuple[BoolArray, BoolArray | None]:
        ordered = np.sort(times)
        n_train = int(count_training_rows(np.array(times.size), self.test))
        cut = ordered[min(n_train, times.size - 1)] if self.at is None else parse_time(self.at)
        test = times >= cut
        if not self.validation:
            return test, None
        n_before = int(np.searchsorted(ordered, cut))
        n_validation = int(self.validation * times.size + _ROUNDING)
        validation_cut = ordered[max(n_before - n_validation, 0)]
        return test, (times >= validation_cut) & ~test


def parse_time(time: int | str, where: str = "at") -> int:
    """Parse a time to seconds since 1970.

    >>> parse_time("1970-01-02"), parse_time("1970-01-01T01:00+01:00"), parse_time(60)
    (86400, 0, 60)

    Raises:
        WrongType: The text is not a time.
    """
    if isinstance(time, int):
        from recbias.formats.interactions import question_times  # few splits have a time

        if question := question_times(np.array([time])):
            message = f"{time} is not in seconds since 1970: {question}"
            remedy = "write seconds (milliseconds divided by 1000), or at: 2020-11-15"
            raise WrongType(message, where="at", remedy=remedy)
        return time
    try:
        moment = datetime.fromisoformat(time)
    except ValueError as error:
        remedy = f"write {where}: 2000-11-20, or seconds since 1970 without quotes"
        raise WrongType(f"{time!r} is not a time", where=where, remedy=remedy) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def require_times(rows: Interactions, split_name: str) -> _Counts:
    """Return the times of the rows, ``int64[n]``.

    Raises:
        UnknownColumn: The interactions have no times.
    """
    if rows.times is None:
        remedy = "add a column timestamp to the interactions, or use what needs no times"
        message = f"{split_name} needs times, which the interactions lack"
        raise UnknownColumn(message, remedy=remedy)
    return rows.times


_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class Windows(_HoldOut):
    """Test on successive windows of one timeline; train on what is before each of them.

        train(i) = start(i) - train_days <= t < start(i),   test(i) = start(i) <= t < start(i + 1)

    Each window is a fold, so the tables have the results of each and their mean. Rows after a
    window are in no part of its fold. The windows start at the times ``at``, and the last one
    ends at ``end``; without ``at`` there are ``windows`` of ``days`` days each before ``end``.

    Args:
        at: Starts of the windows in their order: seconds since 1970, or dates as in
            ``[2000-11-01, 2000-12-01]``.
        days: Length of each window.
        windows: Number of windows.
        end: End of the last window; null for the end of the day of the last interaction.
        train_days: Days before the start of a window that are for training; null for all.
        validation: Share of the rows before the start of a window for validation, the latest; 0
            for no validation part.

    Raises:
        Contradiction: Two windows start at the same time, or not in order.
        WrongType: ``at`` or ``end`` is not a time.
        UnknownColumn: The interactions have no times.
        NothingLeft: A part would be empty.
        Leakage: A user has the same item in the training part and in the test part.

    Source:
        Meng, McCreadie, Macdonald and Ounis, "Exploring Data Splitting Strategies for the
        Evaluation of Recommendation Models", RecSys 2020; the splits are those of
        ``TimeRangeSplitter`` of RecTools and ``split_global_time`` of LensKit.
    """

    at: Annotated[tuple[int | str, ...], MinLen(1)] | None = None
    days: Annotated[float, Gt(0), OnlyWith("at", None)] = 7
    windows: Annotated[int, Gt(0), Le(1000), OnlyWith("at", None)] = 3
    end: int | str | None = None
    train_days: Annotated[float, Gt(0)] | None = None
    validation: Annotated[float, Ge(0.0), Lt(1.0)] = 0.0

    def __post_init__(self) -> None:
        times = [*(self.at or ()), *([] if self.end is None else [self.end])]
        starts = [parse_time(time) for time in times]
        if any(start >= later for start, later in pairwise(starts)):
            message, remedy = "the windows are not in the order of time", "give each time once"
            raise Contradiction(message, where="at", remedy=remedy)

    @property
    def folds(self) -> int:
        """The number of windows."""
        return len(self.at) if self.at else self.windows

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return the split of a window; it is deterministic."""
        rows = dataset.interactions
        times = require_times(rows, "a split by windows")
        start, end = self._list_ends(int(times.max(initial=0)))[fold : fold + 2]
        first = -math.inf if self.train_days is None else start - self.train_days * _DAY
        rows = rows.take((times >= first) & (times < end))
        if not len(rows):
            message, remedy = f"window {fold + 1} has no interactions", "choose other times"
            raise NothingLeft(message, remedy=remedy)
        times = require_times(rows, "")
        test = times >= start
        validation = None
        if self.validation:
            before = np.sort(times[~test])
            n_train = int(count_training_rows(np.array(before.size), self.validation))
            cut = before[min(n_train, before.size - 1)] if before.size else start
            validation = (times >= cut) & ~test
        return split_by_masks(rows, test, validation, f"window {fold + 1}")

    def _list_ends(self, last: int) -> list[float]:
        """Return the start of each window, and the end of the last one."""
        end = (last // _DAY + 1) * _DAY if self.end is None else parse_time(self.end, "end")
        if self.at:
            return [*map(parse_time, self.at), end]
        return [end - (self.windows - i) * self.days * _DAY for i in range(self.windows + 1)]


@dataclass(frozen=True, kw_only=True)
class ColdStart(_HoldOut):
    """Test on items, or users, of which no interaction is in the training part.

        n_test = max(1, floor(test * n))

    ``n`` is the number of items with interactions. All rows of the sampled items are in the test
    part. A cold user has no history, so what models recommend depends on other facts of the user,
    or on nothing. A cold item is no candidate of the models of this package, which recommend items
    with training interactions; lists and vectors of other tools may contain it.

    Args:
        of: Whether ``items`` or ``users`` are cold.
        test: Share of the items or users for testing.
        validation: Share of them for validation; 0 for no validation part.
        folds: Number of independent repeats of the split.

    Raises:
        Contradiction: ``test`` and ``validation`` add up to 1 or more.
        NothingLeft: A part would be empty.

    Source:
        Schein, Popescul, Ungar and Pennock, "Methods and Metrics for Cold-Start Recommendations",
        SIGIR 2002.
    """

    of: Literal["items", "users"] = "items"
    test: Annotated[float, Gt(0.0), Lt(1.0)] = 0.2
    validation: Annotated[float, Ge(0.0), Lt(1.0)] = 0.0
    folds: Annotated[int, Gt(0), Le(1000)] = 1

    def __post_init__(self) -> None:
        validate_shares(self.test, self.validation)

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return a split sampled with ``rng``."""
        rows = dataset.interactions
        codes = rows.items if self.of == "items" else rows.users
        present = rng.permutation(np.unique(codes))
        sizes = [
            max(1, int(share * present.size + _ROUNDING)) if share else 0
            for share in (self.test, self.validation)
        ]
        tested, validated = np.split(present[: sum(sizes)], sizes[:1])
        validation = np.isin(codes, validated) if self.validation else None
        return split_by_masks(rows, np.isin(codes, tested), validation, f"cold {self.of}")


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(_RankedSplit):
    """Test on one interaction of each user, the last or a random one; train on all others.

        n_test(u) = min(n, n(u) - 1),   n_validation(u) = min(validation, n(u) - n_test(u) - 1)

    ``n(u)`` is the number of rows of user u. At least one row stays in the training part, so a
    user with one row has no test row. Rows with equal times are in the order of the file. The
    test part does not depend on ``validation``.

    Args:
        which: Whether the ``last`` rows by time or ``random`` rows are held out.
        n: Number of test rows of each user.
        validation: Number of validation rows of each user, the next in order; 0 for no validation
            part.
        folds: Number of independent repeats of the split; only random splits can be repeated.

    Raises:
        Contradiction: Several repeats of the last rows, which would be identical.
        UnknownColumn: ``which: last`` and the interactions have no times.
        NothingLeft: A part would be empty.
        Leakage: A user has the same item in the training part and in the test part.
    """

    which: Literal["last", "random"] = "last"
    n: Annotated[int, Gt(0)] = 1
    validation: Annotated[int, Ge(0)] = 0
    folds: Annotated[int, Gt(0), Le(1000)] = 1

    def __post_init__(self) -> None:
        if self.which == "last" and self.folds > 1:
            message = f"{self.folds} splits that hold out the last rows are identical"
            raise Contradiction(message, where="folds", remedy="set which: random, or folds: 1")

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return a split; ``rng`` samples the rows of a random split."""
        rows = dataset.interactions
        ranks = rank_within_groups(self._sort_rows(rows, rng), rows.user_counts())
        test_start = np.maximum(rows.user_counts() - self.n, 1).astype(ranks.dtype)
        n_train = np.maximum(test_start - self.validation, 1)
        starts = n_train[rows.users], test_start[rows.users]
        return self.split_by_ranks(rows, ranks, starts[0], starts[1], "leave-one-out")

    def _sort_rows(self, rows: Interactions, rng: np.random.Generator) -> AnyArray:
        if self.which == "random":
            return shuffle_within_users(rows, rng)
        return np.lexsort((require_times(rows, "leave-one-out by time"), rows.users))


@dataclass(frozen=True, kw_only=True)
class RandomHoldout(_RankedSplit):
    """Hold out a random share of the interactions for testing.

        n_train(u) = max(1, floor((1 - test) * n(u))),   n_test(u) = n(u) - n_train(u)

    ``n(u)`` is the number of rows of user u. A user with one row keeps it in the training part and
    has no test row. With ``per: all`` the share is that of all rows at once. With ``per: item`` it
    is a share of the rows of each item (stratified by item); every item is then in the training
    part, as is needed to predict the item of a review. Repeated rows of a user and an item stay
    together. The validation part is taken from the training part in the same way, so that all
    three shares are of all interactions; the test part does not depend on ``validation``.

    Several folds are independent repeats (repeated hold-out), not the parts of a cross-validation:
    a row may be in the test part of several repeats, or of none.

    Args:
        test: Share of the interactions for testing.
        validation: Share of the interactions for validation; 0 for no validation part.
        folds: Number of independent repeats of the split.
        per: Whether the shares apply within each ``user``, within each ``item``, or to ``all``
            rows.

    Raises:
        Contradiction: ``test`` and ``validation`` add up to 1 or more.
        NothingLeft: A part would be empty.
        Leakage: A user has the same item in the training part and in the test part.

    Source:
        The per-user rule is the random subsampling of the framework Elliot (Anelli et al., SIGIR
        2021), except that Elliot loses users with one row.
    """

    test: Annotated[float, Gt(0.0), Lt(1.0)] = 0.2
    validation: Annotated[float, Ge(0.0), Lt(1.0)] = 0.0
    folds: Annotated[int, Gt(0), Le(1000)] = 1
    per: Literal["user", "item", "all"] = "user"

    def __post_init__(self) -> None:
        validate_shares(self.test, self.validation)

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return a split sampled with ``rng``; every repeat has its own generator."""
        rows = dataset.interactions
        ranks, counts, groups = self._rank_rows(rows, rng)
        starts = [
            count_training_rows(counts, share).astype(ranks.dtype)
            for share in (self.test + self.validation, self.test)
        ]
        n_train, test_start = starts if groups is None else [start[groups] for start in starts]
        return self.split_by_ranks(rows, ranks, n_train, test_start, "a random split")

    def _rank_rows(
        self, rows: Interactions, rng: np.random.Generator
    ) -> tuple[AnyArray, AnyArray, AnyArray | None]:
        """Return the rank of each row in a random order within its group, and the group sizes."""
        if self.per == "user":
            ranks = rank_within_groups(shuffle_within_users(rows, rng), rows.user_counts())
            return ranks, rows.user_counts(), rows.users
        if self.per == "item":
            return *_rank_within_items(rows, rng), None
        ranks = np.empty(len(rows), dtype=np.int64)
        ranks[_shuffle(rows, rng)] = np.arange(len(rows))
        return ranks, np.array(len(rows)), None
