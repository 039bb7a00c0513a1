"""Hold the latest interactions out, by one time for all or user by user."""

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
    check_shares,
    divided,
    kept_for_training,
    places_within_users,
)


@dataclass(frozen=True, kw_only=True)
class Temporal:
    """Train on the past and test on what came later.

    With ``per: global`` there is one cut: rows from that time on are tested, so that nothing in
    training is later than anything in the test. The cut is ``at``, or the time of the row behind
    the first ``floor((1 - test) * n)`` of all n rows by time; rows of one time stay together, so
    the test part may be a little larger than its share. With ``per: user`` each user's own latest
    rows are tested, ``n(u) - max(1, floor((1 - test) * n(u)))`` of them, equal times in the order
    of the rows; what one user trains on may then be later than what another is tested on.

    The validation part is the latest of what comes before the test; the test part does not change
    when it is switched on.

    Args:
        test: Share of the interactions that is tested on; not looked at where ``at`` is given.
        at: When the test begins: seconds since 1970, or a date as in ``2000-11-20`` or
            ``2000-11-20T18:00`` (UTC, unless it says otherwise).
        per: Whether there is one cut (``global``) or one for each ``user``.
        validation: Share of all interactions to tune on; 0 makes no validation part.

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
        """Refuse settings that cannot both hold."""
        if self.at is None:
            check_shares(self.test, self.validation)
        elif self.per == "user":
            found = "at is one time for all users, and per: user asks for a cut for each"
            raise Contradiction(found, where="at", remedy="leave one of the two out")
        else:
            seconds(self.at)

    def gives(self) -> frozenset[str]:
        """Return what it makes."""
        return frozenset({"test", "validation"} if self.validation else {"test"})

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return the split; there is no chance in it."""
        rows = dataset.interactions
        times = times_of(rows, "a temporal split")
        if not len(rows):
            raise NothingLeft("a temporal split was given no interactions")
        masks = self._by_user(rows, times) if self.per == "user" else self._by_time(times)
        return divided(rows, *masks, "a temporal split")

    def _by_user(self, rows: Interactions, times: Counts) -> tuple[BoolArray, BoolArray | None]:
        places = places_within_users(rows, np.lexsort((times, rows.users)))
        counts = rows.user_counts()[rows.users]
        train = kept_for_training(counts, self.test)
        fit = kept_for_training(counts, self.test + self.validation)
        return places >= train, (places >= fit) & (places < train) if self.validation else None

    def _by_time(self, times: Counts) -> tuple[BoolArray, BoolArray | None]:
        ordered = np.sort(times)
        first = int(kept_for_training(np.array(times.size), self.test))
        cut = ordered[min(first, times.size - 1)] if self.at is None else seconds(self.at)
        test = times >= cut
        if not self.validation:
            return test, None
        n_before = int(np.searchsorted(ordered, cut))
        n_validation = int(self.validation * times.size + ROUNDING)
        second = ordered[max(n_before - n_validation, 0)]
        return test, (times >= second) & ~test


def seconds(time: int | str) -> int:
    """Return a time as seconds since 1970.

    >>> seconds("1970-01-02"), seconds("1970-01-01T01:00+01:00"), seconds(60)
    (86400, 0, 60)

    Raises:
        WrongType: It is not a time.
    """
    if isinstance(time, int):
        return time
    try:
        moment = datetime.fromisoformat(time)
    except ValueError as error:
        remedy = "write at: 2000-11-20, or seconds since 1970 without quotes"
        raise WrongType(f"{time!r} is not a time", where="at", remedy=remedy) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def times_of(rows: Interactions, who: str) -> Counts:
    """Return the times of the rows, ``int64[n]``.

    Raises:
        UnknownColumn: The interactions have none.
    """
    if rows.times is None:
        remedy = "give the interactions a timestamp column, or choose split: random"
        raise UnknownColumn(f"{who} needs times, which the interactions lack", remedy=remedy)
    return rows.times
