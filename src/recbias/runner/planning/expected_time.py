"""How long a stage will take, by stored results of the same kind on data of other sizes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from recbias.core.machine.expected import Sizes
from recbias.core.records import Stored
from recbias.runner.stage import Stage
from recbias.runner.stage_sizes import get_extent

MOST_RECORDS = 1000
"""The number of stored results that are read; addresses are in random order."""

LEAST_RATIO = 1.5
"""The ratio of two sizes from which on their times tell how the time grows."""

MOST_GROWTH = 3.0
"""The largest exponent that two times may tell: that of the inversion of a matrix."""


class ExpectedTime(NamedTuple):
    """The seconds of a stage, and the number of stored results that they follow from."""

    seconds: float
    n_records: int


class StoredTimes:
    """Estimates the time of stages from stored results.

    Those with the same kind, plug-in and settings count, else those with other settings. The time
    grows from the nearest size by the exponent between it and the next one, by 1 if there is none.
    """

    def __init__(self, records: Iterable[Stored]) -> None:
        self._records: dict[tuple[str, str], list[Stored]] = defaultdict(list)
        self._basis: dict[tuple[str, str, str], tuple[dict[int, float], int]] = {}
        for record in records:
            if record.subject and get_extent(record.kind, record.sizes):
                self._records[record.kind, record.subject].append(record)

    def estimate(self, stage: Stage, sizes: Sizes) -> ExpectedTime | None:
        """Return the time of a stage that reads data of some sizes; None without a basis."""
        extent = get_extent(stage.kind, sizes) if self._records else 0
        if not extent:
            return None
        key = stage.kind, stage.subject, stage.settings
        if key not in self._basis:
            self._basis[key] = self._average(*key)
        times, n_records = self._basis[key]
        return ExpectedTime(_extrapolate(times, extent), n_records) if times else None

    def _average(self, kind: str, subject: str, settings: str) -> tuple[dict[int, float], int]:
        """Return the mean time at each size of similar records, and their number."""
        similar = self._records.get((kind, subject), [])
        chosen = [record for record in similar if record.settings == settings] or similar
        seconds: dict[int, list[float]] = defaultdict(list)
        for record in chosen:
            seconds[get_extent(record.kind, record.sizes)].append(record.seconds)
        return {size: fmean(values) for size, values in seconds.items()}, len(chosen)


def _extrapolate(times: dict[int, float], extent: int) -> float:
    """Return the time at a size, from the times at other sizes.

    >>> _extrapolate({100: 1.0}, 200), _extrapolate({100: 1.0, 200: 4.0}, 400)
    (2.0, 16.0)
    """
    ordered = sorted(times, key=lambda size: abs(math.log(size / extent)))
    nearest = ordered[0]
    distant = [size for size in ordered if abs(math.log(size / nearest)) >= math.log(LEAST_RATIO)]
    exponent = 1.0
    if distant and min(times[nearest], times[distant[0]]) > 0:
        ratio = times[distant[0]] / times[nearest]
        exponent = math.log(ratio) / math.log(distant[0] / nearest)
    return times[nearest] * math.pow(extent / nearest, min(max(exponent, 0.0), MOST_GROWTH))
