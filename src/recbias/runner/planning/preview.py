"""A preview of a run: which stages are stored, and what the others will take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from recbias.core.machine.operating_system import measure_peak_memory_mb
from recbias.core.protocols import get_least_memory
from recbias.core.records import StageRecord, Stored
from recbias.runner.estimate import MOST_RECORDS, Estimate, Sizes, StageSizes, StoredCosts
from recbias.runner.planning.plan import Plan
from recbias.runner.stage import Stage
from recbias.runner.storage.checkpoints import list_checkpoints
from recbias.runner.storage.store import Store


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
    """What a run would do, in one process."""

    steps: tuple[Step, ...]

    @property
    def memory_mb(self) -> float | None:
        """The largest peak of a stage, as measured or as estimated; None if none is known."""
        return max((step.memory_mb for step in self.steps if step.memory_mb), default=None)

    @property
    def n_without_memory(self) -> int:
        """The number of stages to run whose memory is not known; a search needs none itself."""
        return sum(step.memory_mb is None and step.stage.kind != "search" for step in self.steps)

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
    store.look_up(() if fresh else [stage.digest for stage in stages])
    stored = {
        stage.digest: record
        for stage in (() if fresh else stages)
        if (record := _read(stage, store)) is not None
    }
    earlier = [record for _, record in islice(store, MOST_RECORDS)]
    measured = {digest: record.sizes for digest, record in stored.items()}
    measured |= {digest: record.sizes for digest, record in (rehearsed or {}).items()}
    sizes, costs = StageSizes(measured, stages, earlier), StoredCosts(earlier)
    unfinished = {path.name.partition("-")[0] for path in list_checkpoints(store)}
    steps = tuple(
        _preview_stored(stage, stored[stage.digest])
        if stage.digest in stored
        else _preview_stage(
            _estimate(stage, sizes.find(stage), costs),
            store,
            fresh=fresh,
            is_partial=stage.digest in unfinished,
        )
        for stage in stages
    )
    return Preview(steps)


def _read(stage: Stage, store: Store) -> Stored | None:
    return store.record(stage.digest) if store.has(stage.digest) else None


def _preview_stored(stage: Stage, record: Stored) -> Step:
    return Step(stage, stored=True, seconds=record.seconds, memory_mb=record.peak_memory_mb)


def _estimate(stage: Stage, sizes: Sizes, costs: StoredCosts) -> Step:
    """Return the step of a stage to run: by stored results, else by what its model says.

    What a model says comes on top of this process, which has read the data.
    """
    expected = costs.estimate(stage, sizes)
    memory_mb = expected.memory_mb if expected is not None else None
    if memory_mb is None and stage.kind in {"fit", "trial"} and "items" in sizes:
        model = getattr(getattr(stage.work, "work", stage.work), "model", None)
        n_bytes = get_least_memory(model, sizes.get("users", 0), sizes["items"])
        memory_mb = n_bytes / 2**20 + measure_peak_memory_mb() if n_bytes else None
    return Step(stage, expected=expected, memory_mb=memory_mb)


def _preview_stage(step: Step, store: Store, *, fresh: bool, is_partial: bool) -> Step:
    """Return the step of a stage to run, with what the store has of it."""
    is_search = step.stage.kind == "search"
    if fresh or not (is_search or is_partial):
        return step
    trials = step.stage.inputs if is_search else ()
    n_stored = sum(store.has(trial.digest) for trial in trials)
    return replace(step, trials=n_stored, partial=is_partial)
