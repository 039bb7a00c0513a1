"""A preview of a run: which stages are stored, and how much memory it needs."""

from __future__ import annotations

from dataclasses import dataclass

from recbias.runner.planning.plan import Plan
from recbias.runner.stage import Stage
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
    """

    stage: Stage
    stored: bool = False
    seconds: float | None = None
    memory_mb: float | None = None
    trials: int = 0
    partial: bool = False


@dataclass(frozen=True)
class Preview:
    """What a run would do.

    Args:
        memory_mb: The estimated peak memory: as measured for stored stages, and a multiple of the
            size of the input files for data that was not loaded yet.
    """

    steps: tuple[Step, ...]
    memory_mb: float


def preview(plan: Plan, store: Store, *, fresh: bool = False) -> Preview:
    """Return what a run of this plan would do."""
    steps = tuple(_preview_stage(stage, store, fresh=fresh) for stage in plan.stages)
    measured = max((step.memory_mb or 0.0 for step in steps), default=0.0)
    datasets, data = plan.experiment.datasets, plan.options.data
    files = [dataset.source.plugin.files(data) for dataset in datasets]
    sizes = [sum(path.stat().st_size for path in paths) for paths in files]
    estimated = BASE_MB + max((PER_FILE_BYTE * size / 2**20 for size in sizes), default=0.0)
    return Preview(steps, max(measured, estimated))


def _preview_stage(stage: Stage, store: Store, *, fresh: bool) -> Step:
    if fresh:
        return Step(stage)
    record = store.record(stage.digest) if store.has(stage.digest) else None
    if record is not None:
        return Step(stage, stored=True, seconds=record.seconds, memory_mb=record.peak_memory_mb)
    trials = stage.inputs if stage.kind == "search" else ()
    n_stored = sum(store.has(trial.digest) for trial in trials)
    return Step(stage, trials=n_stored, partial=bool(list_checkpoints(store, stage.digest)))
