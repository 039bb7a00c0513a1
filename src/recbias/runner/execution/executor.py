"""Execution of a plan: reuse stored results, compute the others, isolate failures by model."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from recbias.config.experiment import Experiment
from recbias.core.errors import Unwritable, UserError
from recbias.core.machine.operating_system import reset_peak_memory
from recbias.core.records import StageRecord, Stored
from recbias.core.stage_context import collect_facts, collect_warnings, stage_context
from recbias.runner.boundary import attempt
from recbias.runner.estimate import MOST_RECORDS, measure_sizes
from recbias.runner.execution.needed_stages import select_needed_stages
from recbias.runner.execution.remaining_work import RemainingWork, WatchesWork
from recbias.runner.execution.stage_records import (
    Observer,
    Silent,
    locate_error,
    locate_failure,
    make_record,
    raise_failure,
    skip_because,
    to_error,
)
from recbias.runner.planning.plan import DataContext, ModelPlan, Plan
from recbias.runner.stage import Stage
from recbias.runner.stage_cost import NO_COST, CostMeter
from recbias.runner.storage.checkpoints import StageCheckpoints
from recbias.runner.storage.store import SCRATCH, Store, describe_damage
from recbias.runner.storage.text_values import find_values

__all__ = ["Executor", "ModelRunner", "Observer", "Silent", "execute", "to_error"]

ModelRunner: TypeAlias = Callable[[Plan, "Executor"], Iterable[list[StageRecord]]]
"""Runs the models of a plan, and yields the records of each."""


@dataclass
class Executor:
    """Computes stages on demand: the inputs of a stage are loaded only if it has to be computed.

    Args:
        fresh: Do not reuse results from before this run; its own results are reused.
        values: Results in memory, by address.
        run_id: Identifies the run, whose processes share the budget of a language model.
    """

    store: Store
    observer: Observer
    fresh: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    records: dict[str, StageRecord] = field(default_factory=dict)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def ensure(self, stage: Stage) -> StageRecord:
        """Compute a stage unless its result is stored; return its record."""
        if stage.digest in self.records:
            return self.records[stage.digest]
        self._look_again(stage)
        if not self.is_stored(stage):
            return self._compute(stage)
        stored = self.store.record(stage.digest)
        notes = {"warnings": stored.warnings, "facts": stored.facts} if stored else {}
        self.store.touch(stage.digest)
        return self._record(make_record(stage, reused=True, **notes))

    def is_stored(self, stage: Stage) -> bool:
        """Return whether the result of a stage is stored and may be reused."""
        return not self.fresh and self.store.has(stage.digest)

    def _look_again(self, stage: Stage) -> None:
        """Ask again for a result that was absent: another machine may have stored it."""
        self.store.look_again(stage.digest)

    def has_succeeded(self, stage: Stage) -> bool:
        """Return whether a stage was computed or reused in this run."""
        return stage.digest in self.records and self.records[stage.digest].failure is None

    def value(self, stage: Stage) -> Any:
        """Return the result of a stage: from memory, from the store, or computed.

        Raises:
            StageError: It failed for a reason that is not the user's.
            UserError: It failed because of the user's input.
        """
        if stage.digest not in self.values:
            raise_failure(self.ensure(stage))
        if stage.digest not in self.values:
            with collect_warnings() as damage:
                value = self.store.load(stage.digest)
            if value is None:
                self.records.pop(stage.digest, None)
                raise_failure(self._compute(stage, damage))
            else:
                self.values[stage.digest] = value
        return self.values[stage.digest]

    def forget(self, stages: Iterable[Stage]) -> None:
        """Drop results from memory; they stay in the store."""
        for stage in stages:
            self.values.pop(stage.digest, None)

    def _compute(self, stage: Stage, damage: Sequence[str] = ()) -> StageRecord:
        inputs = []
        for source in stage.inputs:
            value, failure = attempt(lambda source=source: self.value(source))  # type: ignore[misc]
            if failure is not None:
                record = self.records.get(source.digest)
                reason = skip_because(source, (record and record.failure) or failure)
                return self._record(make_record(stage, failure=reason))
            inputs.append(value)
        return self._call(stage, inputs, damage)

    def _call(self, stage: Stage, inputs: Sequence[Any], damage: Sequence[str]) -> StageRecord:
        """Compute a stage; ``damage`` are warnings for this run only."""
        self.observer.started(stage)
        reset_peak_memory()
        meter = CostMeter()
        checkpoints = StageCheckpoints(self.store, stage)
        discard = checkpoints.discard
        if self.fresh:
            discard()
        elif not damage and self.store.is_damaged(stage.digest):
            damage = [describe_damage(stage.title)]
        with (
            collect_warnings() as warnings,
            collect_facts() as facts,
            stage_context(on_progress=self.observer.progressed, checkpoint_store=checkpoints),
            stage_context(scratch_folder=self.store.folder / SCRATCH),
            stage_context(reply_folder=self.store.reply_folder, run_id=self.run_id),
            stage_context(open_values=find_values(self.store, self.run_id if self.fresh else "")),
        ):
            value, failure = attempt(
                lambda: checkpoints.inputs.call(stage.work, *inputs),
                on_lasting_failure=discard,
            )
        seconds, peak = checkpoints.seconds, checkpoints.peak_memory_mb
        is_resumed = checkpoints.earlier_seconds > 0  # the cost until then is not known
        cost = NO_COST if is_resumed else meter.measure(seconds)
        sizes = measure_sizes((*inputs, value), stage.files)
        spent = dict[str, Any](seconds=seconds, cost=dict(cost), sizes=sizes, facts=facts)
        if failure is None:
            stored = Stored(
                *(stage.title, stage.kind, {}),
                warnings=tuple(warnings),
                peak_memory_mb=peak,
                subject=stage.subject,
                settings=stage.settings,
                **spent,
            )
            _, failure = attempt(
                lambda: self._save(stage, value, stored), on_lasting_failure=discard
            )
        if failure is None:
            discard()
        return self._record(
            make_record(
                stage,
                **spent,
                peak_memory_mb=peak or None,
                resumed_seconds=checkpoints.earlier_seconds,
                warnings=(*damage, *warnings),
                failure=locate_failure(stage, failure),
            )
        )

    def _save(self, stage: Stage, value: Any, stored: Stored) -> None:
        """Store a result; this fails for a value that is not of the stage's kind."""
        self.store.save(stage.digest, value, stored, replace=self.fresh)
        self.values[stage.digest] = value

    def _record(self, record: StageRecord) -> StageRecord:
        self.records[record.digest] = record
        self.observer.finished(record)
        return record


def run_shared_stages(executor: Executor, context: DataContext, experiment: Experiment) -> None:
    """Compute the stages that models share; an error of the user names the entry of the spec.

    Raises:
        UserError: One of them failed because of the user's input.
    """
    dataset = next(spec for spec in experiment.datasets if spec.label == context.keys.dataset)
    split, queries = experiment.split or dataset.source, experiment.queries
    specs = (dataset.source, *experiment.labels, split, queries, queries)
    for stage, spec in zip(context.stages, specs, strict=False):
        try:
            raise_failure(executor.ensure(stage))
        except Unwritable:  # the disk is at fault and no entry of the spec
            raise
        except UserError as error:
            n = len(executor.value(context.dataset).interactions) if stage is context.split else 1
            raise locate_error(error, spec if n else dataset, experiment) from error


def run_model(executor: Executor, model_plan: ModelPlan) -> list[StageRecord]:
    """Compute the stages of one model; after a failure other than a metric's, skip the rest."""
    records = []
    for stage in select_needed_stages(executor, model_plan):
        records.append(executor.ensure(stage))
        if records[-1].failure is not None and stage.kind != "measure":
            break
    executor.forget([*model_plan.stages, *model_plan.choices])
    return records


def execute(  # noqa: PLR0913  the options of a run, each by name
    plan: Plan,
    store: Store,
    observer: Observer,
    *,
    fresh: bool,
    stop: bool,
    run_models: ModelRunner,
    workers: int = 1,
) -> Executor:
    """Compute every stage of a plan.

    With ``fresh`` no stored result is reused. With ``stop`` the first failure is raised; otherwise
    the other models are still run. ``workers`` is their number, for the time that is left.

    Raises:
        UserError: A stage that models share failed because of the user's input.
        StageError: It failed for another reason.
    """
    executor = Executor(store, observer, fresh=fresh)
    if isinstance(observer, WatchesWork):
        observer.planned(_list_work(plan, executor, workers))
    for context in plan.data_contexts:
        run_shared_stages(executor, context, plan.experiment)
    for records in run_models(plan, executor):
        failure = next((record for record in records if record.failure is not None), None)
        if failure is not None and stop:
            raise to_error(failure)
    return executor


def _list_work(plan: Plan, executor: Executor, workers: int) -> RemainingWork:
    stages = [stage for context in plan.data_contexts for stage in context.stages]
    for model_plan in plan.model_plans:
        stages += select_needed_stages(executor, model_plan)
    stored = {stage.digest for stage in stages if executor.is_stored(stage)}
    earlier = (record for _, record in islice(executor.store, MOST_RECORDS))
    return RemainingWork(stages, stored, earlier, workers=workers)
