"""Temporal split: hold out the latest interactions, by a global cut or per user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.arrays import BoolArray
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn, WrongType
from recbias.data.splits.masks import (
    ROUNDING,
    Counts,
    RankedSplit,
    count_training_rows,
    rank_within_groups,
    split_by_masks,
    validate_shares,
)


@dataclass(frozen=True, kw_only=True)
class Temporal(RankedSplit):
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
        test: Share of the interactions for testing; ignored if ``at`` is set.
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

    test: Annotated[float, Gt(0.0), Lt(1.0)] = 0.2
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

    def _cut_globally(self, times: Counts) -> tuple[BoolArray, BoolArray | None]:
        ordered = np.sort(times)
        n_train = int(count_training_rows(np.array(times.size), self.test))
        cut = ordered[min(n_train, times.size - 1)] if self.at is None else parse_time(self.at)
        test = times >= cut
        if not self.validation:
            return test, None
        n_before = int(np.searchsorted(ordered, cut))
        n_validation = int(self.validation * times.size + ROUNDING)
        validation_cut = ordered[max(n_before - n_validation, 0)]
        return test, (times >= validation_cut) & ~test


def parse_time(time: int | str) -> int:
    """Parse a time to seconds since 1970.

    >>> parse_time("1970-01-02"), parse_time("1970-01-01T01:00+01:00"), parse_time(60)
    (86400, 0, 60)

    Raises:
        WrongType: The text is not a time.
    """
    if isinstance(time, int):
        return time
    try:
        moment = datetime.fromisoformat(time)
    except ValueError as error:
        remedy = "write at: 2000-11-20, or seconds since 1970 without quotes"
        raise WrongType(f"{time!r} is not a time", where="at", remedy=remedy) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def require_times(rows: Interactions, split_name: str) -> Counts:
    """Return the times of the rows, ``int64[n]``.

    Raises:
        UnknownColumn: The interactions have no times.
    """
    if rows.times is None:
        remedy = "add a column timestamp to the interactions, or choose split: random"
        message = f"{split_name} needs times, which the interactions lack"
        raise UnknownColumn(message, remedy=remedy)
    return rows.times
