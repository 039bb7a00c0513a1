"""A preview of a run: which stages are stored, and what the others will take.

A stage takes the time and memory that stored results of the same kind and plug-in took, in
proportion to the size of their data.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from recbias.core.context import StageRecord, Stored
from recbias.core.dataset import Dataset, Split
from recbias.core.machine import measure_peak_memory_mb
from recbias.core.plugins import get_least_memory
from recbias.core.queries import Queries
from recbias.runner.plan import Plan
from recbias.runner.stage import Stage
from recbias.runner.store import Store, list_checkpoints

_Sizes: TypeAlias = Mapping[str, int]
"""Counts of what a stage reads and makes, by name: ``users``, ``training``, ``bytes``."""

_MOST_RECORDS = 1000
"""The number of stored results that are read; addresses are in random order."""

_EXTENTS: Mapping[str, tuple[str, ...]] = {
    "dataset": ("bytes", "interactions"),
    "split": ("interactions",),
    "queries": ("users",),
    "label": ("items",),
    "answer": ("queries", "training"),
    "measure": ("queries", "training", "interactions"),
}
"""The sizes with which stages of a kind grow: the first that is known."""


@dataclass(frozen=True)
class Step:
    """One stage of a plan.

    Args:
        seconds: The time that the stored result took, None without one.
        memory_mb: The peak memory of the process, as measured for the stored result, or as
            estimated; None if it cannot be told.
        trials: The number of stored trials of a search.
        partial: Whether it was interrupted and resumes from a checkpoint.
        expected_seconds: The time that it will take, if it is to run and the store has a basis.
        n_records: The number of stored results that the expected time follows from.
    """

    stage: Stage
    stored: bool = False
    seconds: float | None = None
    memory_mb: float | None = None
    trials: int = 0
    partial: bool = False
    expected_seconds: float | None = None
    n_records: int = 0


@dataclass(frozen=True)
class Preview:
    """What a run would do, in one process; a search takes no time or memory itself."""

    steps: tuple[Step, ...]

    @property
    def memory_mb(self) -> float | None:
        """The largest peak of a stage; None if one is not known."""
        peaks = [step.memory_mb for step in self.steps if step.memory_mb]
        return max(peaks, default=None) if not self.n_without_memory else None

    @property
    def n_without_memory(self) -> int:
        """The number of stages whose memory is not known."""
        return sum(step.memory_mb is None and step.stage.kind != "search" for step in self.steps)

    @property
    def expected_seconds(self) -> float | None:
        """The time of the stages to run, None if there are none or that of one is not known."""
        seconds = [each for step in self.steps if (each := step.expected_seconds) is not None]
        return sum(seconds) if seconds and not self.n_unexpected else None

    @property
    def n_unexpected(self) -> int:
        """The number of stages to run whose time is not known."""
        return sum(
            not step.stored and step.expected_seconds is None and step.stage.kind != "search"
            for step in self.steps
        )


def preview(
    plan: Plan,
    store: Store,
    *,
    fresh: bool = False,
    rehearsed: Mapping[str, StageRecord] | None = None,
) -> Preview:
    """Return what a run of this plan would do.

    ``rehearsed`` are the records of stages that were computed for the plan, by address.
    """
    digests = [] if fresh else [stage.digest for stage in plan.stages]
    store.look_up(digests)
    stored = {
        digest: record
        for digest in digests
        if store.has(digest) and (record := store.record(digest)) is not None
    }
    known = {digest: record.sizes for digest, record in stored.items()}
    known |= {digest: record.sizes for digest, record in (rehearsed or {}).items()}
    costs = _StoredCosts(record for _, record in islice(store, _MOST_RECORDS))
    unfinished = {path.name.partition("-")[0] for path in list_checkpoints(store)}

    def preview_stage(stage: Stage) -> Step:
        if (record := stored.get(stage.digest)) is not None:
            return Step(stage, True, record.seconds, record.peak_memory_mb)  # noqa: FBT003
        step = costs.estimate(stage, _find_sizes(stage, known))
        if fresh:
            return step
        trials = stage.inputs if stage.kind == "search" else ()
        n_stored = sum(trial.digest in stored for trial in trials)
        return replace(step, trials=n_stored, partial=stage.digest in unfinished)

    return Preview(tuple(map(preview_stage, plan.stages)))


def measure_sizes(values: Iterable[Any], files: Iterable[Path] = ()) -> dict[str, int]:
    """Return the sizes of the inputs and the result of a stage, and the bytes of its files.

    >>> measure_sizes([])
    {}
    """
    sizes: dict[str, int] = {}
    for value in values:
        if isinstance(value, Dataset):
            rows = value.interactions
            sizes |= {"users": rows.n_users, "items": rows.n_items, "interactions": len(rows)}
            if value.sentences is not None:
                sizes["sentences"] = len(value.sentences)
        elif isinstance(value, Split):
            rows = value.train
            sizes |= {"users": rows.n_users, "items": rows.n_items, "training": len(rows)}
        elif isinstance(value, Queries):
            sizes["queries"] = len(value)
    n_bytes = sum(path.stat().st_size for path in files if path.is_file())
    return sizes | ({"bytes": n_bytes} if n_bytes else {})


def _find_sizes(stage: Stage, known: dict[str, _Sizes]) -> _Sizes:
    """Return the sizes of a stage, as they are known or else as those of its inputs."""
    if not known.get(stage.digest):
        sizes: dict[str, int] = {}
        for source in stage.inputs:
            if stage.kind == source.kind == "trial":  # earlier ones read the same, and are last
                break
            sizes |= {name: n for name, n in _find_sizes(source, known).items() if name != "bytes"}
        known[stage.digest] = sizes | measure_sizes((), stage.files)
    return known[stage.digest]


def _get_extent(kind: str, sizes: _Sizes) -> int:
    """Return the size with which a stage of a kind grows; 0 if it is not known.

    >>> _get_extent("fit", {"users": 5, "training": 40}), _get_extent("fit", {})
    (40, 0)
    """
    names = _EXTENTS.get(kind, ("training", "interactions"))
    return next((sizes[name] for name in names if sizes.get(name)), 0)


class _StoredCosts:
    """Estimates the time and memory of stages from stored results.

    Those with the same kind, plug-in and settings count, else those with other settings. Both are
    in proportion to the nearest size, memory above the smallest peak of all results, which is that
    of a process without data.
    """

    def __init__(self, records: Iterable[Stored]) -> None:
        self._records: dict[tuple[str, str], list[Stored]] = defaultdict(list)
        self._base_mb = math.inf
        for record in records:
            if record.subject and _get_extent(record.kind, record.sizes):
                self._records[record.kind, record.subject].append(record)
            if record.peak_memory_mb:
                self._base_mb = min(self._base_mb, record.peak_memory_mb)

    def estimate(self, stage: Stage, sizes: _Sizes) -> Step:
        """Return the step of a stage to run: by stored results, else by what its model says."""
        records = self._records.get((stage.kind, stage.subject), [])
        similar = [each for each in records if each.settings == stage.settings] or records
        extent, base = _get_extent(stage.kind, sizes), self._base_mb
        seconds = _extrapolate(similar, extent, lambda record: record.seconds)
        peak = _extrapolate(
            similar, extent, lambda record: (record.peak_memory_mb or math.nan) - base
        )
        memory_mb = None if peak is None else base + peak
        if memory_mb is None and stage.kind in {"fit", "trial"} and "items" in sizes:
            model = getattr(getattr(stage.work, "work", stage.work), "model", None)
            n_bytes = get_least_memory(model, sizes.get("users", 0), sizes["items"])
            memory_mb = n_bytes / 2**20 + measure_peak_memory_mb() if n_bytes else None
        n_records = 0 if seconds is None else len(similar)
        return Step(stage, memory_mb=memory_mb, expected_seconds=seconds, n_records=n_records)


def _extrapolate(
    records: Iterable[Stored], extent: int, measure: Callable[[Stored], float]
) -> float | None:
    """Return the mean of a figure at the nearest size, in proportion; None without a basis."""
    values: dict[int, list[float]] = defaultdict(list)
    for record in records:
        if not math.isnan(value := measure(record)):
            values[_get_extent(record.kind, record.sizes)].append(value)
    if not values or not extent:
        return None
    nearest = min(values, key=lambda size: abs(math.log(size / extent)))
    return fmean(values[nearest]) * extent / nearest
