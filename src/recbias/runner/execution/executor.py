"""Walk the plan: take what is stored, work out the rest, keep what went wrong to its own model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from recbias.config.experiment import Experiment, PluginSpec
from recbias.core.errors import StageError, UserError
from recbias.core.records import Failure, StageRecord, Stored
from recbias.core.stage_context import collect_facts, collect_warnings, stage_context
from recbias.runner.boundary import attempt
from recbias.runner.environment import forget_peak
from recbias.runner.planning.plan import DataContext, ModelPlan, Plan
from recbias.runner.stage import Stage
from recbias.runner.storage.checkpoints import StageKeeper
from recbias.runner.storage.fingerprints import refuse_changed
from recbias.runner.storage.store import SCRATCH, Store


class Observer(Protocol):
    """Is told how a run goes."""

    def started(self, stage: Stage) -> None:
        """A stage starts its work."""
        ...

    def progressed(self, what: str, done: int, total: int) -> None:
        """The running stage is so far."""
        ...

    def finished(self, record: StageRecord) -> None:
        """A stage is done, was reused, or failed."""
        ...


class Silent:
    """An observer that says nothing."""

    def started(self, stage: Stage) -> None:
        """Say nothing."""

    def progressed(self, what: str, done: int, total: int) -> None:
        """Say nothing."""

    def finished(self, record: StageRecord) -> None:
        """Say nothing."""


@dataclass
class Executor:
    """Works out stages on demand: an input is loaded or made only when a missing stage needs it.

    Args:
        store: Where results are kept.
        observer: Is told what happens.
        fresh: Do not reuse what is stored; what this walk has made itself is not made twice.
        values: Results in memory, by address.
        records: What happened, by address.
    """

    store: Store
    observer: Observer
    fresh: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    records: dict[str, StageRecord] = field(default_factory=dict)

    def ensure(self, stage: Stage) -> StageRecord:
        """See to it that the result of a stage is stored; return what happened."""
        known = self.records.get(stage.digest)
        if known is not None:
            return known
        if not self.fresh and self.store.has(stage.digest):
            return self._reused(stage)
        return self._made(stage)

    def value(self, stage: Stage) -> Any:
        """Return the result of a stage, from memory, the store or by working it out.

        Raises:
            StageError: It failed for a reason that is not the user's.
            UserError: It failed because of the user's input.
        """
        if stage.digest not in self.values:
            record = self.ensure(stage)
            if record.failure is not None:
                raise failed(record)
        if stage.digest not in self.values:
            self._load(stage)
        return self.values[stage.digest]

    def forget(self, stages: Iterable[Stage]) -> None:
        """Drop results from memory; they stay in the store."""
        for stage in stages:
            self.values.pop(stage.digest, None)

    def _load(self, stage: Stage) -> None:
        with collect_warnings():
            value = self.store.load(stage.digest)
        if value is None:
            self.records.pop(stage.digest, None)
            record = self._made(stage)
            if record.failure is not None:
                raise failed(record)
        else:
            self.values[stage.digest] = value

    def _reused(self, stage: Stage) -> StageRecord:
        stored = self.store.record(stage.digest)
        known = {"warnings": stored.warnings, "facts": stored.facts} if stored else {}
        self.store.touch(stage.digest)
        return self._note(record_of(stage, reused=True, **known))

    def _made(self, stage: Stage) -> StageRecord:
        inputs = []
        for each in stage.inputs:
            value, failure = attempt(lambda each=each: self.value(each))  # type: ignore[misc]
            if failure is not None:
                message = f"not done, because {each.title!r} failed: {failure.message}"
                reason = Failure(message, failure.help, user=failure.user)
                return self._note(record_of(stage, failure=reason))
            inputs.append(value)
        return self._worked(stage, inputs)

    def _worked(self, stage: Stage, inputs: Sequence[Any]) -> StageRecord:
        self.observer.started(stage)
        forget_peak()
        damage = self._damage(stage)
        keeper = StageKeeper(self.store, stage)
        if self.fresh:
            keeper.discard()
        with (
            collect_warnings() as notes,
            collect_facts() as facts,
            stage_context(on_progress=self.observer.progressed),
            stage_context(checkpoint_store=keeper),
            stage_context(scratch_folder=self.store.folder / SCRATCH),
        ):
            value, failure = attempt(lambda: self._result(stage, inputs), recurs=keeper.discard)
        seconds, peak = keeper.seconds, keeper.peak_memory_mb
        if failure is None:
            stored = Stored(stage.title, stage.kind, {}, seconds, peak, tuple(notes), facts)
            _, failure = attempt(lambda: self._keep(stage, value, stored), recurs=keeper.discard)
        if failure is None:
            keeper.discard()
        record = record_of(
            stage,
            seconds=seconds,
            resumed_seconds=keeper.earlier,
            peak_memory_mb=peak,
            warnings=(*damage, *notes),
            facts=facts,
            failure=_at(stage, failure),
        )
        return self._note(record)

    def _keep(self, stage: Stage, value: Any, stored: Stored) -> None:
        """Store a result; one that is not what its kind should be cannot be stored."""
        self.store.save(stage.digest, value, stored, replace=self.fresh)
        self.values[stage.digest] = value

    def _damage(self, stage: Stage) -> tuple[str, ...]:
        """Return the warning of this run, and of no later one, that a result is made again."""
        if self.fresh or not self.store.is_damaged(stage.digest):
            return ()
        return (f"the stored result of {stage.title!r} was damaged and is made again",)

    def _result(self, stage: Stage, inputs: Sequence[Any]) -> Any:
        """Return what a stage makes of the files that its address names, and of no others.

        Raises:
            ChangedFile: One of them was changed since the run was planned.
        """
        value = stage.work(*inputs)
        refuse_changed(stage.files, self.store)
        return value

    def _note(self, record: StageRecord) -> StageRecord:
        self.records[record.digest] = record
        self.observer.finished(record)
        return record


def _at(stage: Stage, failure: Failure | None) -> Failure | None:
    """Return a failure, a fault of the user's at the place of the spec that led there."""
    if failure is None or not (failure.user and stage.place):
        return failure
    return replace(failure, message=f"{stage.place}: {failure.message}")


def walk_world(walk: Executor, world: DataContext, experiment: Experiment) -> None:
    """Make what the models of a world share.

    Raises:
        UserError: The data or the spec is at fault; the error names the place of the spec.
        StageError: It cannot be made for another reason.
    """
    dataset = next(each for each in experiment.datasets if each.label == world.keys.dataset)
    split = experiment.split or dataset.source
    makers = (dataset.source, *experiment.labels, split, experiment.queries)
    stages = (world.dataset, *world.labels, world.split, world.queries)
    for stage, maker in zip(stages, makers, strict=True):
        record = walk.ensure(stage)
        if record.failure is not None:
            error = failed(record)
            if isinstance(error, UserError):
                raise _placed(error, maker, experiment)
            raise error


def _placed(error: UserError, maker: PluginSpec, experiment: Experiment) -> UserError:
    """Return a fault at the entry of what it is of, or at the setting that it names."""
    key, colon, found = error.message.partition(": ")
    if colon and key in maker.parameters:
        return experiment.fault((*maker.where, key), found, remedy=error.remedy)
    return experiment.fault(maker.where, error.message, remedy=error.remedy)


def walk_chain(walk: Executor, chain: ModelPlan) -> list[StageRecord]:
    """Train, ask and measure one model; after a failure the rest of the chain is not tried."""
    records = []
    for stage in needed(walk, chain):
        records.append(walk.ensure(stage))
        if records[-1].failure is not None and stage.kind != "measure":
            break
    walk.forget(chain.stages)
    return records


def needed(walk: Executor, chain: ModelPlan) -> tuple[Stage, ...]:
    """Return the stages of a chain without the training, where the lists are there already.

    The trials of a search are not needed where what it found is there.
    """
    if walk.fresh:
        return chain.stages
    made: set[str] = set()
    if chain.answer is not None and walk.store.has(chain.answer.digest):
        made.add("fit")
    if chain.search is not None and walk.store.has(chain.search.digest):
        made.add("trial")
    return tuple(each for each in chain.stages if each.kind not in made)


def failed(record: StageRecord) -> UserError | StageError:
    """Return the error that a failed stage is to the command line."""
    failure = record.failure or Failure("it failed")
    if failure.user:
        return UserError(failure.message, remedy=failure.help)
    return StageError(f"{record.stage} failed: {failure.message}", traceback=failure.traceback)


def execute(
    plan: Plan,
    store: Store,
    observer: Observer,
    *,
    fresh: bool,
    stop: bool,
    chains: Callable[[Plan, Executor], Iterable[list[StageRecord]]],
) -> Executor:
    """Work out every stage of a plan.

    Args:
        plan: The stages.
        store: Where results are kept.
        observer: Is told what happens.
        fresh: Do not reuse stored results.
        stop: Raise at the first failure instead of letting the other models finish.
        chains: How the models are walked: one after another, or in processes.

    Raises:
        UserError: The data of a world cannot be made; so does StageError.
    """
    walk = Executor(store, observer, fresh=fresh)
    for world in plan.worlds:
        walk_world(walk, world, plan.experiment)
    for records in chains(plan, walk):
        broken = next((each for each in records if each.failure is not None), None)
        if broken is not None and stop:
            raise failed(broken)
    return walk


def one_after_another(plan: Plan, walk: Executor) -> Iterable[list[StageRecord]]:
    """Walk the models in this process."""
    for place, chain in enumerate(plan.chains):
        yield walk_chain(walk, chain)
        after = plan.chains[place + 1].world if place + 1 < len(plan.chains) else None
        if after is not chain.world:
            walk.forget((chain.world.split, chain.world.queries))


def record_of(stage: Stage, **facts: Any) -> StageRecord:
    """Return the record of a stage with the facts that are known of it."""
    keys = stage.keys
    return StageRecord(
        stage.title,
        stage.kind,
        stage.digest,
        dataset=keys.dataset,
        seed=keys.seed,
        fold=keys.fold,
        model=keys.model,
        **facts,
    )
