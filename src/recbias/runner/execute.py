"""Execution of a plan: reuse stored results, compute the others, isolate failures by model."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from recbias.config.experiment import Experiment
from recbias.config.specs import PluginSpec
from recbias.core.context import (
    Failure,
    StageRecord,
    Stored,
    collect_facts,
    collect_warnings,
    stage_context,
)
from recbias.core.dataset import Dataset, Queries, Split
from recbias.core.errors import StageError, Unwritable, UserError
from recbias.core.machine import (
    reset_peak_memory,
)
from recbias.core.plugins import AsksAboutItems
from recbias.formats.delimited import SKIP_HINT
from recbias.runner.boundary import attempt
from recbias.runner.plan import DataContext, ModelPlan, Observer, Plan, RemainingWork, Stage
from recbias.runner.stages import LabelItems
from recbias.runner.store import StageCheckpoints, Store, describe_damage, find_values

# ---- what is recorded of a stage ----


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


def make_record(stage: Stage, **facts: Any) -> StageRecord:
    """Return the record of a stage."""
    return StageRecord(stage.title, stage.kind, stage.digest, **vars(stage.keys), **facts)


def to_error(record: StageRecord) -> UserError | StageError:
    """Return the failure of a stage as the error that the command line shows."""
    failure = record.failure or Failure("it failed")
    if failure.user:
        return UserError(failure.message, remedy=failure.help)
    message = f"{record.stage} failed: {failure.message}"
    return StageError(message, traceback=failure.traceback, remedy=failure.help)


def _raise_failure(record: StageRecord) -> None:
    if record.failure is not None:
        raise to_error(record)


def _skip_because(source: Stage, failure: Failure) -> Failure:
    """Return why a stage is skipped: the failure of its input, or of an input of that one."""
    if failure.because:
        return failure
    message = f"skipped because {source.title!r} failed: {failure.message}"
    return Failure(message, failure.help, user=failure.user, because=source.title)


def _locate_failure(stage: Stage, failure: Failure | None) -> Failure | None:
    """Return a failure; one that is the user's names the entry of the spec."""
    if failure is None or not (failure.user and stage.spec_location):
        return failure
    return replace(failure, message=f"{stage.spec_location}: {failure.message}")


# ---- the stages that are computed ----


_SELDOM_NEEDED = frozenset({"fit", "trial", "baseline"})
"""Kinds of stage that are not needed if the answers and searches that read them are stored."""


def select_needed_stages(executor: Executor, model_plan: ModelPlan) -> tuple[Stage, ...]:
    """Return the stages of a model: without training if its answer is stored."""
    search = model_plan.search
    results = {"fit": model_plan.asking, "trial": search, "baseline": search}
    unneeded = {kind for kind, stage in results.items() if stage and executor.is_stored(stage)}
    if "fit" in unneeded:
        unneeded |= {stage.digest for stage in model_plan.candidates}
    elif model_plan.candidates and all(map(executor.is_stored, model_plan.candidates)):
        unneeded.add("fit")
    return tuple(
        stage for stage in model_plan.stages if unneeded.isdisjoint({stage.kind, stage.digest})
    )


def _look_up(plans: Iterable[Plan], executor: Executor) -> None:
    """Ask a store at a URL for the results of plans at the same time and not one by one."""
    stages = {stage.digest: stage.kind for plan in plans for stage in plan.stages}
    if not executor.fresh:
        executor.store.look_up(name for name in stages if stages[name] not in _SELDOM_NEEDED)


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
            _raise_failure(self.ensure(stage))
        if stage.digest not in self.values:
            with collect_warnings() as damage:
                value = self.store.load(stage.digest)
            if value is None:
                self.records.pop(stage.digest, None)
                _raise_failure(self._compute(stage, damage))
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
                reason = _skip_because(source, (record and record.failure) or failure)
                return self._record(make_record(stage, failure=reason))
            inputs.append(value)
        return self._call(stage, inputs, damage)

    def _call(self, stage: Stage, inputs: Sequence[Any], damage: Sequence[str]) -> StageRecord:
        """Compute a stage; ``damage`` are warnings for this run only."""
        self.observer.started(stage)
        reset_peak_memory()
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
            stage_context(reply_folder=self.store.reply_folder, run_id=self.run_id),
            stage_context(open_values=find_values(self.store, self.run_id if self.fresh else "")),
        ):
            value, failure = attempt(
                lambda: checkpoints.inputs.call(stage.work, *inputs),
                on_lasting_failure=discard,
            )
        seconds, peak = checkpoints.seconds, checkpoints.peak_memory_mb
        sizes = measure_sizes((*inputs, value), stage.files)
        spent = dict[str, Any](seconds=seconds, sizes=sizes, facts=facts)
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
                failure=_locate_failure(stage, failure),
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
    source, queries = dataset.source, experiment.queries
    split = experiment.split or source
    specs = (source, *experiment.labels, split, queries, queries)
    for stage, spec in zip(context.stages, specs, strict=False):
        try:
            _raise_failure(executor.ensure(stage))
        except Unwritable:  # the disk is at fault and no entry of the spec
            raise
        except UserError as error:
            where, message = spec.where, error.message
            setting, colon, rest = message.partition(": ")
            is_given = stage is not context.split or "train" in split.plugin.gives()
            if not (is_given or len(executor.value(context.dataset).interactions)):
                where = source.where  # there is nothing to split
                if source.parameters.get("interactions") and not dataset.filters:
                    where = (*where, "interactions")
            elif colon and setting in spec.parameters:
                where, message = (*where, setting), rest
            remedy = explain_skipping(error, spec)
            raise experiment.fault(where, message, remedy=remedy) from error


def explain_skipping(error: UserError, spec: PluginSpec) -> str:
    """Return the help of an error in a file, without a setting that what reads it lacks."""
    is_skipping = hasattr(spec.plugin, "bad_lines")
    return error.remedy if is_skipping else error.remedy.replace(SKIP_HINT, "correct the line")


def run_stages(executor: Executor, stages: Sequence[Stage]) -> list[StageRecord]:
    """Compute stages in order; after a failure other than a metric's, skip the rest."""
    records = []
    for stage in stages:
        records.append(executor.ensure(stage))
        if records[-1].failure is not None and stage.kind != "measure":
            break
    read = [each for stage in stages for each in (stage, *stage.inputs)]
    executor.forget(stage for stage in read if stage.keys.model)
    return records


def execute(plan: Plan, store: Store, observer: Observer, run_models: ModelRunner) -> Executor:
    """Compute every stage of a plan, as its options say.

    Raises:
        UserError: A stage that models share failed because of the user's input, or the first
            failure with ``on_error: stop``; otherwise the other models are still run.
        StageError: It failed for another reason.
    """
    executor = Executor(store, observer, fresh=plan.options.fresh)
    _look_up([plan], executor)
    _announce(plan, executor)
    for records in run_models(plan, executor):
        for record in records if plan.options.on_error == "stop" else ():
            _raise_failure(record)
    return executor


def execute_plans(
    plans: Sequence[Plan], store: Store, observer: Observer, run_models: ModelRunner
) -> tuple[Executor, dict[int, str]]:
    """Compute every stage of several plans with the same options once, and go on after failures.

    Returns:
        The executor, and what is wrong with each plan whose shared stages failed, by its ``id``.
    """
    fresh, problems = plans[0].options.fresh, dict[int, str]()
    executor = Executor(store, observer, fresh=fresh)
    _look_up(plans, executor)
    for plan in plans:
        try:
            for context in plan.data_contexts:
                run_shared_stages(executor, context, plan.experiment)
                executor.forget(context.stages)
        except Unwritable:  # the disk is at fault and no plan
            raise
        except (UserError, StageError) as error:
            problems[id(plan)] = getattr(error, "message", str(error))
    sound = [plan for plan in plans if id(plan) not in problems]
    contexts = tuple(context for plan in sound for context in plan.data_contexts)
    whole = replace(plans[0], data_contexts=contexts, model_plans=tuple(_merge_models(sound)))
    _announce(whole, executor)
    for _ in run_models(whole, executor):
        pass
    return executor, problems


def _merge_models(plans: Iterable[Plan]) -> Iterator[ModelPlan]:
    """Yield each model of several plans once, with all metrics, context by context."""
    same: dict[tuple[str, ...], dict[str, list[ModelPlan]]] = {}
    for model_plan in (each for plan in plans for each in plan.model_plans):
        context = tuple(stage.digest for stage in model_plan.data_context.stages)
        answer = getattr(model_plan.answer, "digest", "")
        same.setdefault(context, {}).setdefault(answer, []).append(model_plan)
    for model_plans in (each for answers in same.values() for each in answers.values()):
        pairs = [zip(each.metrics, each.measures, strict=True) for each in model_plans]
        measured = {stage.digest: (metric, stage) for pair in pairs for metric, stage in pair}
        yield replace(
            model_plans[0],
            metrics=tuple(metric for metric, _ in measured.values()),
            measures=tuple(stage for _, stage in measured.values()),
        )


def _announce(plan: Plan, executor: Executor) -> None:
    """Tell the observer which stages a run needs."""
    stages = [stage for context in plan.data_contexts for stage in context.stages]
    for model_plan in plan.model_plans:
        stages += select_needed_stages(executor, model_plan)
    stored = {stage.digest for stage in stages if executor.is_stored(stage)}
    executor.observer.planned(RemainingWork(stages, stored, workers=plan.options.workers))


@dataclass
class Rehearsal(Executor):
    """An executor that stores nothing and asks no language model: its results stay in memory.

    Labels that a language model would give are 0 for all items.
    """

    def _look_again(self, stage: Stage) -> None:
        """Ask for no result twice: the run looks again before it computes one."""

    def _call(self, stage: Stage, inputs: Sequence[Any], damage: Sequence[str]) -> StageRecord:
        work = stage.work
        if isinstance(work, LabelItems) and isinstance(work.detector, AsksAboutItems):
            stage = replace(stage, work=work.rehearse)
        return super()._call(stage, inputs, damage)

    def _save(self, stage: Stage, value: Any, stored: Stored) -> None:
        self.values[stage.digest] = value
