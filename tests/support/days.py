"""The day that chooses which cases of a sample are tried."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable

VARIABLE = "RECBIAS_TEST_DAY"
N_DAYS = 5


def find_today() -> int:
    """Return the number of the day, the same in all processes of a run of tests.

    Processes of one run begin before and after midnight: the first one sets the variable
    ``RECBIAS_TEST_DAY``, which is also how a run of another day is repeated.
    """
    today = dt.datetime.now(dt.UTC).date().toordinal()
    return int(os.environ.setdefault(VARIABLE, str(today)))


def choose_due(names: Iterable[str], day: int) -> set[str]:
    """Return the tests of this day: every fifth of them in alphabetical order."""
    return set(sorted(names)[day % N_DAYS :: N_DAYS])
