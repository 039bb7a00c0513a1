"""What a run would do, without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recbias.runner.planning.plan import Plan
from recbias.runner.stage import Stage
from recbias.runner.storage.checkpoints import checkpoints
from recbias.runner.storage.store import Store

BASE_MB = 250.0
"""Memory of the process with its libraries."""

PER_FILE_BYTE = 5.0
"""Bytes in memory for a byte of input, while it is read."""


@dataclass(frozen=True)
class Step:
    """One stage of a plan.

    Args:
        stage: The stage.
        stored: Whether its result is in the store.
        seconds: What it took when it was made, None where it was not.
        memory_mb: The peak memory it had then.
        trials: Of a search, how many of its trials are stored.
        partial: Whether it was cut off, and goes on from a checkpoint.
    """

    stage: Stage
    stored: bool
    seconds: float | None
    memory_mb: float | None
    trials: int = 0
    partial: bool = False


@dataclass(frozen=True)
class Preview:
    """What a run would do.

    Args:
        steps: The stages, in order.
        memory_mb: Estimated peak memory: what was measured where a stage is stored, and for data
            that was not read yet a multiple of the size of its files.
        requests: Requests to language models that have no stored reply.
        tokens: Tokens of these requests.
    """

    steps: tuple[Step, ...]
    memory_mb: float
    requests: int = 0
    tokens: int = 0


def preview(plan: Plan, store: Store, *, fresh: bool = False) -> Preview:
    """Return what a run of this plan would do."""
    steps = tuple(_step(stage, store, fresh=fresh) for stage in plan.stages)
    measured = max((step.memory_mb or 0.0 for step in steps), default=0.0)
    return Preview(steps, max(measured, BASE_MB + _input_mb(plan)))


def _step(stage: Stage, store: Store, *, fresh: bool) -> Step:
    stored = None if fresh or not store.has(stage.digest) else store.record(stage.digest)
    if stored is None:
        searched = () if fresh or stage.kind != "search" else stage.inputs
        trials = sum(store.has(each.digest) for each in searched)
        partial = not fresh and bool(checkpoints(store, stage.digest))
        return Step(
            stage, stored=False, seconds=None, memory_mb=None, trials=trials, partial=partial
        )
    return Step(stage, stored=True, seconds=stored.seconds, memory_mb=stored.peak_memory_mb)


def _input_mb(plan: Plan) -> float:
    sizes = []
    for dataset in plan.experiment.datasets:
        files: list[Path] = list(dataset.source.plugin.files(plan.options.data))
        size = sum(path.stat().st_size for path in files)
        sizes.append(PER_FILE_BYTE * size / 2**20)
    return max(sizes, default=0.0)
