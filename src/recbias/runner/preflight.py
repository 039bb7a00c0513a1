"""Checks of files, models and metrics on the data, before any model is trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbias.config.experiment import PluginSpec
from recbias.core.context import StageRecord, collect_warnings
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
from recbias.runner.plan import DataContext, ModelPlan, Plan, may_lack_files
from recbias.runner.stage import Stage
from recbias.runner.stages import add_labels, build_evidence, make_training_data

MAX_CHECKED_BYTES = 100 * 2**20
"""The size of a dataset up to which a plan reads it for its checks: MovieLens-1M has 25 MB."""


def add_preflight(run_models: ModelRunner) -> ModelRunner:
    """Return a function that checks files, models and metrics before it runs the models."""

    def run_checked(plan: Plan, executor: Executor) -> Iterable[list[StageRecord]]:
        raise_faults(_Preflight(plan, executor).find_faults(plan.data_contexts))
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
    preflight = _Preflight(plan, executor)
    contexts = {context.keys.dataset: context for context in reversed(plan.data_contexts)}
    unchecked = [name for name in contexts if preflight.takes_long(contexts[name])]
    checked = [contexts[name] for name in contexts if name not in unchecked]
    for context in checked:
        run_shared_stages(executor, context, plan.experiment)
    raise_faults(preflight.find_faults(checked))
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


@dataclass(frozen=True)
class _Preflight:
    plan: Plan
    executor: Executor

    def find_faults(self, contexts: Sequence[DataContext]) -> list[UserError]:
        """Return the faults of files, models, metrics, labels and the claim."""
        faults = [*self._check_files()]
        for context in contexts:
            faults += [*self._check_models(context), *self._check_metrics(context)]
            faults += [*self._check_labels(context), *self._check_claim(context)]
        return faults

    def takes_long(self, context: DataContext) -> bool:
        """Return whether the stages of a dataset that are not stored take too long for a plan."""
        missing = [stage for stage in context.labels if self._is_missing(stage)]
        if any(evaluates_texts(getattr(stage.work, "detector", None)) for stage in missing):
            return True
        if not self._is_missing(context.dataset):
            return False
        return sum(path.stat().st_size for path in context.dataset.files) > MAX_CHECKED_BYTES

    def _is_missing(self, stage: Stage | None) -> bool:
        return stage is not None and not self.executor.is_stored(stage)

    def _list_plans(self, context: DataContext) -> list[ModelPlan]:
        return [each for each in self.plan.model_plans if each.data_context is context]

    def _check_files(self) -> Iterator[UserError]:
        """Yield the faults in the files of the models whose answers are not stored."""
        several = len(self.plan.experiment.datasets) > 1
        for model in self.plan.experiment.models:
            labels = [
                model_plan.data_context.keys.dataset
                for model_plan in self.plan.model_plans
                if model_plan.model.label == model.label and self._is_missing(model_plan.asking)
            ]
            if not labels or not isinstance(model.plugin, ChecksFiles):
                continue
            try:
                with collect_warnings(), blame_plugin(f"check_files() of {model.label}"):
                    model.plugin.check_files(tuple(dict.fromkeys(labels)) if several else ("",))
            except UserError as error:
                for fault in Faults([error]).faults:
                    yield self._locate_in_file(model, fault)

    def _locate_in_file(self, model: PluginSpec, error: UserError) -> UserError:
        """Return a fault in a file at the setting that names the file, as the user wrote it."""
        experiment = self.plan.experiment
        for key, path in vars(model.plugin).items():
            line = error.where.removeprefix(str(path)) if isinstance(path, Path) else error.where
            if line != error.where and line[:1] in {"", ":"}:
                message = f"{model.parameters[key]}{line}: {error.message}"
                return experiment.fault((*model.where, key), message, remedy=error.remedy)
        return experiment.fault(model.where, str(error), remedy=error.remedy)

    def _check_models(self, context: DataContext) -> Iterator[UserError]:
        """Yield the faults that the data shows in the models whose answers are not stored."""
        faults: dict[tuple[str, str, str], tuple[UserError, list[PluginSpec]]] = {}
        for model_plan in self._list_plans(context):
            if self._is_missing(model_plan.asking):
                try:
                    with collect_warnings(), blame_plugin(f"a check of {model_plan.model.label}"):
                        self._check_model(context, model_plan.model)
                except UserError as error:
                    key = (error.where, error.message, error.remedy)
                    faults.setdefault(key, (error, []))[1].append(model_plan.model)
        for fault, faulty in faults.values():
            first, labels = faulty[0], list(dict.fromkeys(model.label for model in faulty))
            message = fault.message
            if len({model.where for model in faulty}) > 1:
                message = f"{message} (models: {', '.join(labels)})"
            where = (*first.where, *filter(None, fault.where.split(".")))
            yield self.plan.experiment.fault(where, message, remedy=fault.remedy)

    def _check_model(self, context: DataContext, model: PluginSpec) -> None:
        """Refuse settings that do not fit the data, or matrices that cannot fit into memory."""
        dataset, split = map(self.executor.value, (context.dataset, context.split))
        n_users, n_items = dataset.interactions.n_users, dataset.interactions.n_items
        require_memory(
            get_least_memory(model.plugin, n_users, n_items),
            f"the matrices of {model.name} for {n_items:,} items",
            where="",
            remedy="filter more (k_core, sample_users), or choose another model",
        )
        if isinstance(model.plugin, ChecksData):
            if model.reranked is not None:  # a re-ranker may read the labels of detectors
                dataset = add_labels(dataset, [*map(self.executor.value, context.labels)])
            model.plugin.check_data(make_training_data(dataset, split))

    def _check_metrics(self, context: DataContext) -> list[UserError]:
        """Return the faults that the data shows in the metrics, unless all values are stored."""
        missing: dict[tuple[str, int | None], bool] = {}
        for model_plan in self._list_plans(context):
            for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
                key = metric.label, metric.cutoff
                missing[key] = missing.get(key, False) or self._is_missing(stage)
        metrics = [
            metric
            for metric in self.plan.experiment.metrics
            if metric.grouping is not None or isinstance(metric.plugin, ChecksEarly)
            if missing.get((metric.label, metric.cutoff), True)
        ]
        is_needed = metrics and not may_lack_files(getattr(context.dataset.work, "source", None))
        is_measured = missing and not any(missing.values())
        if not is_needed or is_measured:  # without measures if every model has a fault
            return []
        with collect_warnings():
            faults = [*self._check_groups(context, metrics), *self._check_early(context, metrics)]
        if (limit := self.plan.options.limit) is None:
            return faults
        return [
            type(fault)(
                f"{fault.message}, among the first {limit:,} queries",
                where=fault.where,
                remedy=f"raise --limit; {fault.remedy}",
            )
            for fault in faults
        ]

    def _check_groups(
        self, context: DataContext, metrics: Iterable[PluginSpec]
    ) -> Iterator[UserError]:
        """Yield the faults of the groups of queries that metrics are reported for."""
        for metric in (each for each in metrics if each.grouping is not None):
            grouping: Any = metric.grouping
            try:
                check_groups(self.executor.value(context.queries), grouping)
            except UserError as error:
                fault = _explain_item_column(error, grouping.by, self._build(context, ()))
                yield self._locate_setting(metric, fault.where or "by", fault)

    def _check_early(
        self, context: DataContext, metrics: Iterable[PluginSpec]
    ) -> Iterator[UserError]:
        """Yield what metrics say of the data."""
        early = [metric for metric in metrics if isinstance(metric.plugin, ChecksEarly)]
        evidence: Any = self._build(context, early) if early else None
        for metric in early:
            try:
                with blame_plugin(f"check() of {metric.label}"):
                    metric.plugin.check(evidence)
            except UserError as error:
                yield self._locate_setting(metric, error.where, error)

    def _build(self, context: DataContext, metrics: Iterable[PluginSpec]) -> Evidence:
        stages = (context.dataset, context.split, context.queries)
        dataset, split, queries = map(self.executor.value, stages)
        labels = [*map(self.executor.value, context.labels)]
        is_judged = any("test" in metric.needs for metric in metrics)
        return build_evidence(dataset, split, queries, labels, is_judged=is_judged)

    def _check_labels(self, context: DataContext) -> Iterator[UserError]:
        """Yield the first fault of each metric in the labels of the models that know theirs."""
        checked: set[str] = set()
        for model_plan in self._list_plans(context):
            model = model_plan.model.plugin
            if not hasattr(model, "list_labels"):
                continue
            for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
                is_read = metric.needs <= set(model.provides) and self._is_missing(stage)
                if metric.label in checked or not (
                    is_read and hasattr(metric.plugin, "check_labels")
                ):
                    continue
                try:
                    queries = self.executor.value(context.queries)
                    metric.plugin.check_labels(model.list_labels(queries))
                except UserError as error:
                    checked.add(metric.label)
                    yield self._locate_setting(metric, error.where, error)

    def _check_claim(self, context: DataContext) -> Iterator[UserError]:
        """Yield the fault of the groups of a claim."""
        claim, experiment = self.plan.experiment.claim, self.plan.experiment
        if claim is None or claim.by is None:
            return
        from recbias.runner.claims import code_pair

        try:
            code_pair(self.executor.value(context.queries), claim.by, claim.groups or ())
        except UserError as error:
            where = ("claim", "groups" if error.where == "groups" and claim.groups else "by")
            yield experiment.fault(where, error.message, remedy=error.remedy, kind=type(error))

    def _locate_setting(self, metric: PluginSpec, key: str, error: UserError) -> UserError:
        is_setting = key in metric.parameters or key in metric.split_settings
        where = (*metric.where, key) if is_setting else metric.where
        return self.plan.experiment.fault(where, error.message, remedy=error.remedy)


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
