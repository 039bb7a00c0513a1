"""Checks of files, models and metrics on the data, before any model is trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from recbias.config.experiment import Experiment, PluginSpec
from recbias.core.errors import Faults, UserError
from recbias.core.outputs.evidence import Evidence
from recbias.core.protocols import ChecksData, ChecksEarly, ChecksFiles, ChecksMachine
from recbias.core.records import StageRecord
from recbias.core.stage_context import collect_warnings
from recbias.runner.boundary import blame_plugin
from recbias.runner.execution.executor import Executor, ModelRunner
from recbias.runner.planning.plan import DataContext, Plan
from recbias.runner.planning.plugin_contracts import raise_faults
from recbias.runner.stage import Stage
from recbias.runner.stages.grouping import form_groups
from recbias.runner.stages.model import build_evidence
from recbias.runner.stages.shared import make_training_data


def add_preflight(run_models: ModelRunner) -> ModelRunner:
    """Return a function that checks files, models and metrics before it runs the models."""

    def run_checked(plan: Plan, executor: Executor) -> Iterable[list[StageRecord]]:
        faults = list(_check_files(plan, executor))
        for context in plan.data_contexts:
            faults += _check_models(plan, executor, context)
            faults += _check_metrics(plan, executor, context)
        raise_faults(faults)
        yield from run_models(plan, executor)

    return run_checked


def _check_files(plan: Plan, executor: Executor) -> Iterator[UserError]:
    """Yield the faults in the files of the models whose answers are not stored."""
    several = len(plan.experiment.datasets) > 1
    for model in plan.experiment.models:
        labels = [
            model_plan.data_context.keys.dataset
            for model_plan in plan.model_plans
            if model_plan.model is model and _is_missing(executor, model_plan.asking)
        ]
        if not labels or not isinstance(model.plugin, ChecksFiles):
            continue
        try:
            with collect_warnings(), blame_plugin(f"check_files() of {model.label}"):
                model.plugin.check_files(tuple(dict.fromkeys(labels)) if several else ("",))
        except UserError as error:
            for fault in error.faults if isinstance(error, Faults) else (error,):
                yield _locate_file_error(model, fault, plan.experiment)


def _check_models(plan: Plan, executor: Executor, context: DataContext) -> Iterator[UserError]:
    """Yield the faults that the data shows in the models whose answers are not stored."""
    models = [
        model_plan.model
        for model_plan in plan.model_plans
        if model_plan.data_context is context and _is_missing(executor, model_plan.asking)
    ]
    data = None
    if any(isinstance(model.plugin, ChecksData) for model in models):
        data = make_training_data(executor.value(context.dataset), executor.value(context.split))
    for model in models:
        try:
            with collect_warnings(), blame_plugin(f"a check of {model.label}"):
                if isinstance(model.plugin, ChecksMachine):
                    model.plugin.check_machine()
                if isinstance(model.plugin, ChecksData):
                    model.plugin.check_data(data)  # type: ignore[arg-type]
        except UserError as error:
            where = (*model.where, error.where) if error.where else model.where
            yield plan.experiment.fault(where, error.message, remedy=error.remedy)


def _locate_file_error(model: PluginSpec, error: UserError, experiment: Experiment) -> UserError:
    """Return a fault in a file at the setting that names the file, as the user wrote it."""
    for key, path in vars(model.plugin).items():
        line = error.where.removeprefix(str(path)) if isinstance(path, Path) else error.where
        if line != error.where and line[:1] in {"", ":"}:
            message = f"{model.parameters[key]}{line}: {error.message}"
            return experiment.fault((*model.where, key), message, remedy=error.remedy)
    return experiment.fault(model.where, str(error), remedy=error.remedy)


def _is_missing(executor: Executor, stage: Stage | None) -> bool:
    return stage is not None and not executor.is_stored(stage)


def _check_metrics(plan: Plan, executor: Executor, context: DataContext) -> list[UserError]:
    """Return the faults that the data shows in the metrics, unless all of them are stored."""
    measures = [
        stage
        for model_plan in plan.model_plans
        if model_plan.data_context is context
        for stage in model_plan.measures
    ]
    metrics = [
        metric
        for metric in plan.experiment.metrics
        if metric.grouping is not None or isinstance(metric.plugin, ChecksEarly)
    ]
    if not metrics or not any(_is_missing(executor, stage) for stage in measures):
        return []
    evidence = build_evidence(
        executor.value(context.dataset),
        executor.value(context.split),
        executor.value(context.queries),
        [executor.value(stage) for stage in context.labels],
    )
    with collect_warnings():
        checks = [_check_metric(metric, evidence, plan.experiment) for metric in metrics]
        faults = [fault for check in checks for fault in check]
    limit = plan.options.limit
    if limit is None:
        return faults
    return [
        type(fault)(
            f"{fault.message}, among the first {limit:,} queries",
            where=fault.where,
            remedy=f"raise --limit; {fault.remedy}",
        )
        for fault in faults
    ]


def _check_metric(
    metric: PluginSpec, evidence: Evidence, experiment: Experiment
) -> Iterator[UserError]:
    if metric.grouping is not None:
        try:
            form_groups(evidence.queries, metric.grouping)
        except UserError as error:
            yield _locate_setting(metric, error.where or "by", error, experiment)
    if isinstance(metric.plugin, ChecksEarly):
        try:
            with blame_plugin(f"check() of {metric.label}"):
                metric.plugin.check(evidence)
        except UserError as error:
            yield _locate_setting(metric, error.where, error, experiment)


def _locate_setting(
    metric: PluginSpec, key: str, error: UserError, experiment: Experiment
) -> UserError:
    is_setting = key in metric.parameters or key in metric.split_settings
    where = (*metric.where, key) if is_setting else metric.where
    return experiment.fault(where, error.message, remedy=error.remedy)
