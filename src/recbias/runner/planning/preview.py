"""A preview of a run: which stages are stored, and how much memory it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from recbias.core.records import StageRecord, Stored
from recbias.runner.planning.expected_sizes import ExpectedSizes
from recbias.runner.planning.expected_time import MOST_RECORDS, ExpectedTime, StoredTimes
from recbias.runner.planning.plan import Plan
from recbias.runner.stage import Stage
from recbias.runner.stage_sizes import measure_files
from recbias.runner.storage.checkpoints import list_checkpoints
from recbias.runner.storage.store import Store

BASE_MB = 250.0
"""Memory of the process with its libraries."""

PER_FILE_BYTE = 5.0
"""Bytes in memory per byte of input, while it is read."""


@dataclass(frozen=True)
class Step:
    """One stage of a plan.

    Args:
        seconds: The time that the stored result took, None without one.
        trials: The number of stored trials of a search.
        partial: Whether it was interrupted and resumes from a checkpoint.
        expected: The time that it will take, if it is to run and the store has a basis.
    """

    stage: Stage
    stored: bool = False
    seconds: float | None = None
    memory_mb: float | None = None
    trials: int = 0
    partial: bool = False
    expected: ExpectedTime | None = None


@dataclass(frozen=True)
class Preview:
    """What a run would do.

    Args:
        memory_mb: The estimated peak memory: as measured for stored stages, and a multiple of the
            size of the input files for data that was not loaded yet.
    """

    steps: tuple[Step, ...]
    memory_mb: float

    @property
    def expected_seconds(self) -> float | None:
        """The time of the stages to run whose time is known, None if there is none."""
        seconds = [step.expected.seconds for step in self.steps if step.expected is not None]
        return sum(seconds) if seconds else None

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
    stored = {
        stage.digest: record
        for stage in (() if fresh else stages)
        if (record := _read(stage, store)) is not None
    }
    earlier = [record for _, record in islice(store, MOST_RECORDS)]
    sizes, times = ExpectedSizes(stored, rehearsed or {}, earlier), StoredTimes(earlier)
    steps = tuple(
        _preview_stored(stage, stored[stage.digest])
        if stage.digest in stored
        else _preview_stage(stage, store, times.estimate(stage, sizes.find(stage)), fresh=fresh)
        for stage in stages
    )
    measured = max((step.memory_mb or 0.0 for step in steps), default=0.0)
    datasets, data = plan.experiment.datasets, plan.options.data
    files = [measure_files(dataset.source.plugin.files(data)) for dataset in datasets]
    estimated = BASE_MB + max((PER_FILE_BYTE * size / 2**20 for size in files), default=0.0)
    return Preview(steps, max(measured, estimated))


def _read(stage: Stage, store: Store) -> Stored | None:
    return store.record(stage.digest) if store.has(stage.digest) else None


def _preview_stored(stage: Stage, record: Stored) -> Step:
    return Step(stage, stored=True, seconds=record.seconds, memory_mb=record.peak_memory_mb)


def _preview_stage(
    stage: Stage, store: Store, expected: ExpectedTime | None, *, fresh: bool
) -> Step:
    if fresh:
        return Step(stage, expected=expected)
    trials = stage.inputs if stage.kind == "search" else ()
    n_stored = sum(store.has(trial.digest) for trial in trials)
    partial = bool(list_checkpoints(store, stage.digest))
    return Step(stage, trials=n_stored, partial=partial, expected=expected)
