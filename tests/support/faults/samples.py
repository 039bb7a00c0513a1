"""Which cases of a fault suite are tried: a fixed sample, or all."""

from __future__ import annotations

import os
import re

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor of a terminal, or the order of a text."""

TRIES_ALL = os.environ.get("RECBIAS_FAULTS") == "all"


def choose_seeds(sample: int, whole: int) -> range:
    """Return the seeds of the cases: of all with ``RECBIAS_FAULTS=all``, else evenly spaced ones.

    The seeds stand in the name of each test, so that a failure can be repeated with
    ``RECBIAS_FAULTS=N``, where N is the first seed.
    """
    if TRIES_ALL:
        return range(whole)
    first = os.environ.get("RECBIAS_FAULTS", "")
    if first.isdecimal():
        return range(int(first), int(first) + sample)
    step = max(whole // sample, 1)
    return range(0, step * sample, step)
