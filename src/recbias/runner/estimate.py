"""What a stage will take: the time and memory that stored results of the same kind took.

A preview of a run: which stages are stored, and what the others will take.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

from recbias.core.context import StageRecord, Stored
from recbias.core.dataset import Dataset, Split
from recbias.core.machine import measure_peak_memory_mb
from recbias.core.plugins import get_least_memory
from recbias.core.queries import Queries
from recbias.runner.plan import Plan
from recbias.runner.stage import Keys, Stage
from recbias.runner.store import Store, list_checkpoints

_Sizes: TypeAlias = Mapping[str, int]
"""Counts of what a stage reads and makes, by name: ``users``, ``training``, ``bytes``."""

_MOST_RECORDS = 1000
"""The number of stored results that are read; addresses are in random order."""

FILES = ("tables", "units", "lists", "plots")
"""The files of a run that are stored together."""


class Estimate(NamedTuple):
    """What a stage will take, and the number of stored results that it follows from.

    ``memory_mb`` is the peak of the process, None where no result has one.
    """

    seconds: float
    n_records: int
    memory_mb: float | None = None


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


def _get_extent(kind: str, sizes: _Sizes) -> int:
    """Return the size with which a stage of a kind grows; 0 if it is not known.

    >>> _get_extent("fit", {"users": 5, "training": 40}), _get_extent("fit", {})
    (40, 0)
    """
    names = {
        "dataset": ("bytes", "interactions"),
        "split": ("interactions",),
        "queries": ("users",),
        "label": ("items",),
        "answer": ("queries", "training"),
        "measure": ("queries", "training", "interactions"),
        "files": ("lists",),
    }.get(kind, ("training", "interactions"))
    return next((sizes[name] for name in names if sizes.get(name)), 0)


class StageSizes:
    """Finds the sizes of stages: as ``measured``, by address, else as those of their inputs."""

    def __init__(self, measured: Mapping[str, _Sizes]) -> None:
        self._known = {digest: sizes for digest, sizes in measured.items() if sizes}

    def find(self, stage: Stage) -> _Sizes:
        """Return the sizes of the inputs and of the result of a stage; a size may be missing."""
        if stage.digest not in self._known:
            sizes: dict[str, int] = {}
            for source in stage.inputs:
                if (
                    stage.kind == source.kind == "trial"
                ):  # earlier ones read the same, and are last
                    break
                sizes |= {name: n for name, n in self.find(source).items() if name != "bytes"}
            self._known[stage.digest] = sizes | measure_sizes((), stage.files)
        return self._known[stage.digest]


class StoredCosts:
    """Estimates the time and memory of stages from stored results.

    Those with the same kind, plug-in and settings count, else those with other settings. Both are
    in proportion to the nearest size, memory above the smallest peak of all results, which is that
    of a process without data.
    """

    def __init__(self, records: Iterable[Stored]) -> None:
        self._records: dict[tuple[str, str], list[Stored]] = defaultdict(list)
        self._similar: dict[tuple[str, str, str], list[Stored]] = {}
        self._base_mb = math.inf
        for record in records:
            if record.subject and _get_extent(record.kind, record.sizes):
                self._records[record.kind, record.subject].append(record)
            if record.peak_memory_mb:
                self._base_mb = min(self._base_mb, record.peak_memory_mb)

    def estimate(self, stage: Stage, sizes: _Sizes) -> Estimate | None:
        """Return what a stage takes that reads data of some sizes; None without a basis."""
        extent = _get_extent(stage.kind, sizes) if self._records else 0
        similar = self._find_similar(stage) if extent else []
        seconds = _average(similar, lambda record: record.seconds)
        if not seconds:
            return None
        base = self._base_mb
        peaks = _average(similar, lambda record: (record.peak_memory_mb or math.nan) - base)
        return Estimate(
            _extrapolate(seconds, extent),
            len(similar),
            memory_mb=base + _extrapolate(peaks, extent) if peaks else None,
        )

    def _find_similar(self, stage: Stage) -> list[Stored]:
        key = stage.kind, stage.subject, stage.settings
        if key not in self._similar:
            records = self._records.get(key[:2], [])
            same = [record for record in records if record.settings == stage.settings]
            self._similar[key] = same or records
        return self._similar[key]


def _average(records: Iterable[Stored], measure: Callable[[Stored], float]) -> dict[int, float]:
    """Return the mean of a figure at each size; a record whose figure is NaN does not count."""
    values: dict[int, list[float]] = defaultdict(list)
    for record in records:
        if not math.isnan(value := measure(record)):
            values[_get_extent(record.kind, record.sizes)].append(value)
    return {size: fmean(values[size]) for size in values}


def _extrapolate(figures: Mapping[int, float], extent: int) -> float:
    """Return the figure at a size, in proportion to that at the nearest size.

    >>> _extrapolate({100: 1.0, 1000: 20.0}, 200)
    2.0
    """
    nearest = min(figures, key=lambda size: abs(math.log(size / extent)))
    return figures[nearest] * extent / nearest


@dataclass(frozen=True)
class Step:
    """One stage of a plan.

    Args:
        seconds: The time that the stored result took, None without one.
        memory_mb: The peak memory of the process, as measured for the stored result, or as
            estimated; None if it cannot be told.
        trials: The number of stored trials of a search.
        partial: Whether it was interrupted and resumes from a checkpoint.
        expected: What it will take, if it is to run and the store has a basis.
    """

    stage: Stage
    stored: bool = False
    seconds: float | None = None
    memory_mb: float | None = None
    trials: int = 0
    partial: bool = False
    expected: Estimate | None = None


@dataclass(frozen=True)
class Preview:
    """What a run would do, in one process; ``writing_mb`` is its peak while it writes files."""

    steps: tuple[Step, ...]
    writing_mb: float | None = None

    @property
    def memory_mb(self) -> float | None:
        """The largest peak of a stage and of writing the files; None if one is not known."""
        peaks = [step.memory_mb for step in self.steps if step.memory_mb]
        if self.writing_mb is None or self.n_without_memory:
            return None
        return max([*peaks, self.writing_mb])

    @property
    def n_without_memory(self) -> int:
        """The number of stages to run whose memory is not known; a search needs none itself."""
        return sum(step.memory_mb is None and step.stage.kind != "search" for step in self.steps)

    @property
    def expected_seconds(self) -> float | None:
        """The time of the stages to run, None if there are none or that of one is not known."""
        seconds = [step.expected.seconds for step in self.steps if step.expected is not None]
        return sum(seconds) if seconds and not self.n_unexpected else None

    @property
    def n_unexpected(self) -> int:
        """The number of stages to run whose time is not known; a search takes none itself."""
        return sum(
            not step.stored and step.expected is None and step.stage.kind != "search"
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
    stages = plan.stages
    store.look_up(() if fresh else [stage.digest for stage in stages])
    stored = {
        stage.digest: record
        for stage in (() if fresh else stages)
        if store.has(stage.digest) and (record := store.record(stage.digest)) is not None
    }
    earlier = [record for _, record in islice(store, _MOST_RECORDS)]
    measured = {digest: record.sizes for digest, record in stored.items()}
    measured |= {digest: record.sizes for digest, record in (rehearsed or {}).items()}
    sizes, costs = StageSizes(measured), StoredCosts(earlier)
    unfinished = {path.name.partition("-")[0] for path in list_checkpoints(store)}

    def preview_stage(stage: Stage) -> Step:
        if (record := stored.get(stage.digest)) is not None:
            return Step(
                stage, stored=True, seconds=record.seconds, memory_mb=record.peak_memory_mb
            )
        step = _estimate(stage, sizes.find(stage), costs)
        if fresh:
            return step
        trials = stage.inputs if stage.kind == "search" else ()
        n_stored = sum(store.has(trial.digest) for trial in trials)
        return replace(step, trials=n_stored, partial=stage.digest in unfinished)

    queries = [sizes.find(each.data_context.queries) for each in plan.model_plans]
    extent = {"lists": sum(size.get("queries", 0) for size in queries)}
    writing = [
        costs.estimate(Stage("files", "", "", print, (), Keys(), subject=name), extent)
        for name in FILES
    ]
    peaks = [estimate.memory_mb for estimate in writing if estimate and estimate.memory_mb]
    return Preview(tuple(map(preview_stage, stages)), max(peaks, default=None))


def _estimate(stage: Stage, sizes: _Sizes, costs: StoredCosts) -> Step:
    """Return the step of a stage to run: by stored results, else by what its model says."""
    expected = costs.estimate(stage, sizes)
    memory_mb = expected.memory_mb if expected is not None else None
    if memory_mb is None and stage.kind in {"fit", "trial"} and "items" in sizes:
        model = getattr(getattr(stage.work, "work", stage.work), "model", None)
        n_bytes = get_least_memory(model, sizes.get("users", 0), sizes["items"])
        memory_mb = n_bytes / 2**20 + measure_peak_memory_mb() if n_bytes else None
    return Step(stage, expected=expected, memory_mb=memory_mb)
