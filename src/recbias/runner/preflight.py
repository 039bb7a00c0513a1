"""Errors about columns that cannot group queries.

Models that plainly need more memory than this process may use are refused before training.
Checks of files, models and metrics on the data, before any model is trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from recbias.config.experiment import Experiment
from recbias.config.experiment import PluginSpec as PluginSpec_of_experiment
from recbias.config.specs import PluginSpec
from recbias.core.context import StageRecord, collect_warnings
from recbias.core.dataset import Interactions
from recbias.core.errors import Faults, UnknownColumn, UserError
from recbias.core.evidence import Evidence
from recbias.core.grouping import list_part_columns, split_crossing
from recbias.core.machine import require_memory
from recbias.core.plugins import (
    ChecksData,
    ChecksEarly,
    ChecksFiles,
    evaluates_texts,
    get_least_memory,
)
from recbias.runner.boundary import blame_plugin
from recbias.runner.contracts import raise_faults
from recbias.runner.execute import Executor, ModelRunner, run_shared_stages, to_error
from recbias.runner.grouping import check_groups
from recbias.runner.plan import DataContext, Plan, may_lack_files
from recbias.runner.stage import Stage
from recbias.runner.stages import add_labels, build_evidence, make_training_data


def _explain_item_column(error: UserError, by: str, evidence: Evidence) -> UserError:
    """Return the error of a label that no query has; another one if it is a column of items."""
    if not isinstance(error, UnknownColumn) or evidence.items is None:
        return error
    labels = evidence.queries.labels
    names = [name for part in split_crossing(by) for name in list_part_columns(part, labels)]
    columns = [name for name in names if name in set(evidence.items.names) - set(labels.names)]
    if not columns:
        return error
    texts = [name for name in labels.names if labels.column(name).dtype.kind != "f"]
    column, label = columns[0], next(iter(texts), "LABEL")
    message = f"{column!r} is a column of the items; by groups queries, that is users or prompts"
    remedy = (
        f"to compare groups of items, name the column in a metric of items, such as "
        f"{{name: association, label: {label}, attribute: {column}}}; "
        f"to group queries, name one of {', '.join(labels.names) or 'their labels'}"
    )
    return UnknownColumn(message, where=error.where, remedy=remedy)


def _check_memory(model: PluginSpec, interactions: Interactions) -> None:
    """Refuse a model whose matrices of the items cannot fit into memory."""
    n_users, n_items = interactions.n_users, interactions.n_items
    require_memory(
        get_least_memory(model.plugin, n_users, n_items),
        f"the matrices of {model.name} for {n_items:,} items",
        where="",
        remedy="filter more (k_core, sample_users), or choose another model",
    )


MAX_CHECKED_BYTES = 100 * 2**20
"""The size of a dataset up to which a plan reads it for its checks: MovieLens-1M has 25 MB."""


def add_preflight(run_models: ModelRunner) -> ModelRunner:
    """Return a function that checks files, models and metrics before it runs the models."""

    def run_checked(plan: Plan, executor: Executor) -> Iterable[list[StageRecord]]:
        raise_faults(_find_faults(plan, executor, plan.data_contexts))
        yield from run_models(plan, executor)

    return run_checked


def check_inputs(plan: Plan, executor: Executor) -> list[str]:
    """Refuse what a run of a plan would refuse for its data, labels, groups and given lists.

    The datasets, splits, queries and labels of one data context per dataset are computed where
    they are not stored, and the files of given lists are read.

    Returns:
        The labels of the datasets that are too large to be read for this, or whose texts a
        language model would have to label.

    Raises:
        Faults: There is one or more.
    """
    contexts = {context.keys.dataset: context for context in reversed(plan.data_contexts)}
    unchecked = [name for name in contexts if _takes_long(executor, contexts[name])]
    checked = [contexts[name] for name in contexts if name not in unchecked]
    for context in checked:
        run_shared_stages(executor, context, plan.experiment)
    raise_faults(_find_faults(plan, executor, checked))
    answers = [
        executor.ensure(model_plan.answer)
        for model_plan in plan.model_plans
        if model_plan.data_context in checked
        and model_plan.answer is not None
        and isinstance(plugin := model_plan.model.plugin, ChecksFiles)
        and getattr(plugin, "provides", None) == {"lists"}
    ]
    failures = [to_error(record) for record in answers if record.failure is not None]
    raise_faults(error for error in failures if isinstance(error, UserError))
    return unchecked


def _takes_long(executor: Executor, context: DataContext) -> bool:
    """Return whether the stages of a dataset that are not stored take too long for a plan."""
    missing = [stage for stage in context.labels if _is_missing(executor, stage)]
    if any(evaluates_texts(getattr(stage.work, "detector", None)) for stage in missing):
        return True
    if not _is_missing(executor, context.dataset):
        return False
    return sum(path.stat().st_size for path in context.dataset.files) > MAX_CHECKED_BYTES


def _find_faults(
    plan: Plan, executor: Executor, contexts: Sequence[DataContext]
) -> list[UserError]:
    """Return the faults of files, models, metrics and labels."""
    faults = [*_check_files(plan, executor)]
    for context in contexts:
        faults += _check_models(plan, executor, context)
        faults += _check_metrics(plan, executor, context)
        faults += _check_labels(plan, executor, context)
        faults += _check_claim(plan, executor, context)
    return faults


def _check_claim(plan: Plan, executor: Executor, context: DataContext) -> Iterator[UserError]:
    """Yield the fault of the groups of a claim."""
    claim = plan.experiment.claim
    if claim is None or claim.by is None:
        return
    try:
        from recbias.runner.claims import code_pair

        code_pair(executor.value(context.queries), claim.by, claim.groups or ())
    except UserError as error:
        where = ("claim", "groups" if error.where == "groups" and claim.groups else "by")
        yield plan.experiment.fault(where, error.message, remedy=error.remedy, kind=type(error))


def _check_files(plan: Plan, executor: Executor) -> Iterator[UserError]:
    """Yield the faults in the files of the models whose answers are not stored."""
    several = len(plan.experiment.datasets) > 1
    for model in plan.experiment.models:
        labels = [
            model_plan.data_context.keys.dataset
            for model_plan in plan.model_plans
            if model_plan.model.label == model.label and _is_missing(executor, model_plan.asking)
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
    faults: dict[tuple[str, str, str], tuple[UserError, list[PluginSpec_of_experiment]]] = {}
    for model in models:
        seen = data
        if model.reranked is not None:  # a re-ranker may read the labels of detectors
            labels = [executor.value(stage) for stage in context.labels]
            dataset = add_labels(executor.value(context.dataset), labels)
            seen = make_training_data(dataset, executor.value(context.split))
        try:
            with collect_warnings(), blame_plugin(f"a check of {model.label}"):
                _check_memory(model, executor.value(context.dataset).interactions)
                if isinstance(model.plugin, ChecksData):
                    model.plugin.check_data(seen)  # type: ignore[arg-type]
        except UserError as error:
            key = (error.where, error.message, error.remedy)
            faults.setdefault(key, (error, []))[1].append(model)
    for fault, faulty in faults.values():
        first, labels = faulty[0], list(dict.fromkeys(model.label for model in faulty))
        message = fault.message
        if len({model.where for model in faulty}) > 1:
            message = f"{message} (models: {', '.join(labels)})"
        where = (*first.where, *filter(None, fault.where.split(".")))
        yield plan.experiment.fault(where, message, remedy=fault.remedy)


def _locate_file_error(
    model: PluginSpec_of_experiment, error: UserError, experiment: Experiment
) -> UserError:
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
    """Return the faults that the data shows in the metrics, unless stored or short of files."""
    missing: dict[tuple[str, int | None], bool] = {}
    for model_plan in plan.model_plans:
        if model_plan.data_context is context:
            for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
                key = metric.label, metric.cutoff
                missing[key] = missing.get(key, False) or _is_missing(executor, stage)
    metrics = [
        metric
        for metric in plan.experiment.metrics
        if metric.grouping is not None or isinstance(metric.plugin, ChecksEarly)
        if missing.get((metric.label, metric.cutoff), True)
    ]
    is_needed = metrics and not may_lack_files(getattr(context.dataset.work, "source", None))
    is_measured = missing and not any(missing.values())
    if not is_needed or is_measured:  # without measures if every model has a fault
        return []
    with collect_warnings():
        faults = [*_check_groupings(metrics, plan, executor, context)]
        early = [metric for metric in metrics if isinstance(metric.plugin, ChecksEarly)]
        evidence = _build_evidence(executor, context, early) if early else None
        for metric in early:
            try:
                with blame_plugin(f"check() of {metric.label}"):
                    metric.plugin.check(evidence)
            except UserError as error:
                faults.append(_locate_setting(metric, error.where, error, plan.experiment))
    if (limit := plan.options.limit) is None:
        return faults
    return [
        type(fault)(
            f"{fault.message}, among the first {limit:,} queries",
            where=fault.where,
            remedy=f"raise --limit; {fault.remedy}",
        )
        for fault in faults
    ]


def _build_evidence(
    executor: Executor, context: DataContext, metrics: Iterable[PluginSpec_of_experiment]
) -> Evidence:
    dataset, split, queries = map(
        executor.value, (context.dataset, context.split, context.queries)
    )
    labels = [executor.value(stage) for stage in context.labels]
    is_judged = any("test" in metric.needs for metric in metrics)
    return build_evidence(dataset, split, queries, labels, is_judged=is_judged)


def _check_groupings(
    metrics: Iterable[PluginSpec_of_experiment],
    plan: Plan,
    executor: Executor,
    context: DataContext,
) -> Iterator[UserError]:
    """Yield the faults of the groups of queries that metrics are reported for."""
    for metric in metrics:
        if metric.grouping is None:
            continue
        try:
            check_groups(executor.value(context.queries), metric.grouping)
        except UserError as error:
            evidence = _build_evidence(executor, context, ())
            fault = _explain_item_column(error, metric.grouping.by, evidence)
            yield _locate_setting(metric, fault.where or "by", fault, plan.experiment)


def _check_labels(plan: Plan, executor: Executor, context: DataContext) -> Iterator[UserError]:
    """Yield the first fault of each metric in the labels of the models that know theirs."""
    checked: set[str] = set()
    for model_plan in plan.model_plans:
        model = model_plan.model.plugin
        if model_plan.data_context is not context or not hasattr(model, "list_labels"):
            continue
        for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
            is_read = metric.needs <= set(model_plan.model.plugin.provides)
            if not (is_read and hasattr(metric.plugin, "check_labels")):
                continue
            if metric.label in checked or not _is_missing(executor, stage):
                continue
            try:
                metric.plugin.check_labels(model.list_labels(executor.value(context.queries)))
            except UserError as error:
                checked.add(metric.label)
                yield _locate_setting(metric, error.where, error, plan.experiment)


def _locate_setting(
    metric: PluginSpec_of_experiment, key: str, error: UserError, experiment: Experiment
) -> UserError:
    is_setting = key in metric.parameters or key in metric.split_settings
    where = (*metric.where, key) if is_setting else metric.where
    return experiment.fault(where, error.message, remedy=error.remedy)
