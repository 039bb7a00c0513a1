"""The manifest of a run: its spec, its environment and the record of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core.dataset.dataset import Dataset
from recbias.core.docstrings import read_formula, read_section, read_summary
from recbias.core.queries.uncertain_groups import parse_uncertain_label
from recbias.core.records import Failure, StageRecord
from recbias.formats import manifest
from recbias.formats.manifest import Manifest
from recbias.runner.environment import describe_environment, name_gpus
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.devices import describe_devices
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.results.metric_rows import make_fit_keys
from recbias.runner.results.training_tables import list_searches
from recbias.runner.tuning.search import SearchResult
from recbias.runner.tuning.trial import nan_to_none
from recbias.statistics.gap_definitions import DEFINITIONS, UNCERTAIN_MEANS


@dataclass(frozen=True)
class RunTiming:
    """The start, duration and memory of a run.

    Args:
        peak_memory_mb: The largest peak of its stages and of this process.
    """

    started: datetime
    seconds: float
    peak_memory_mb: float


def build_manifest(
    plan: Plan, executor: Executor, timing: RunTiming, warnings: Sequence[str]
) -> Manifest:
    """Return the manifest of a run, as far as its plan and stages determine it."""
    records = [*executor.records.values()]
    experiment, searches = plan.experiment, list_searches(plan, executor)
    failed = [
        _describe_failure(record, record.failure)
        for record in records
        if record.failure is not None
    ]
    return Manifest(
        schema_version=1,
        name=experiment.name,
        spec_digest=plan.spec_digest,
        **describe_environment(),
        started=timing.started.isoformat(timespec="seconds"),
        seconds=round(timing.seconds, 3),
        peak_memory_mb=round(timing.peak_memory_mb, 1),
        seeds=list(experiment.seeds),
        limit=plan.options.limit,
        datasets=_describe_datasets(plan, executor),
        queries=_describe_queries(plan, executor),
        split=_describe_plugin(experiment.split) if experiment.split else None,
        models=[_describe_model(model, plan) for model in experiment.models],
        gpus=name_gpus(device for stage in plan.stages for device in stage.devices),
        searches=[_describe_search(model_plan, search) for model_plan, search in searches],
        metrics=[describe_metric(metric) for metric in experiment.metrics],
        undefined=[
            manifest.Undefined(
                metric=metric.label, k=metric.cutoff, model=model.label, missing=missing
            )
            for metric, model, missing in plan.undefined
        ],
        tests=[_describe_plugin(test) for test in experiment.tests],
        addresses=[
            manifest.Address(
                **make_fit_keys(model_plan),
                metric=metric.label,
                k=metric.cutoff,
                address=stage.digest,
            )
            for model_plan in plan.model_plans
            for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True)
        ],
        stages=[_describe_stage(record) for record in records],
        failures=failed,
        warnings=_merge_warnings(records, warnings),
    )


def describe_metric(metric: PluginSpec) -> manifest.Metric:
    """Return the definition of a metric."""
    plugin = metric.plugin
    definition: dict[str, Any] = {
        "metric": metric.label,
        "k": metric.parameters.get("k"),
        "name": metric.name,
        "parameters": metric.parameters | metric.split_settings,
        "summary": read_summary(type(plugin)),
        "formula": read_formula(type(plugin)),
        "direction": metric.direction,
        "values": read_section(type(plugin), "Range"),
        "unit": plugin.unit,
        "source": read_section(type(plugin), "Source"),
    }
    gap = metric.grouping.gap if metric.grouping else ""
    label = parse_uncertain_label(metric.grouping.by) if metric.grouping else None
    if label is not None:
        means = UNCERTAIN_MEANS[label.assumption]
        definition["formula"] = f"{means}. x: {definition['formula']}"
    if gap not in DEFINITIONS:
        return manifest.Metric(**definition)
    words = DEFINITIONS[gap]
    definition |= {
        "summary": f"The {words.text} of the groups g of queries. Metric: {definition['summary']}",
        "formula": f"{words.formula}, where {words.subject}\n\n{definition['formula']}",
        "values": words.values or definition["values"],
        "group_direction": plugin.direction,
    }
    return manifest.Metric(**definition)


def _describe_plugin(spec: PluginSpec) -> manifest.Plugin:
    return manifest.Plugin(label=spec.label, name=spec.name, parameters=spec.parameters)


def _describe_model(model: PluginSpec, plan: Plan) -> manifest.Model:
    """Return a model with its device; its tuned settings are listed without a value."""
    placed = next(each.model for each in plan.model_plans if each.model.label == model.label)
    parameters, settings = dict(model.parameters), describe_devices(placed.plugin)
    if model.reranked is not None:
        settings["baseline"] = model.reranked.base.label
    if model.tune is not None:
        tuned = [dimension.parameter for dimension in model.tune.space]
        parameters = {name: value for name, value in parameters.items() if name not in tuned}
        settings["searched"] = tuned
    return manifest.Model(label=model.label, name=model.name, parameters=parameters, **settings)


def _describe_search(model_plan: ModelPlan, search: SearchResult) -> manifest.Search:
    states, tune = [trial.state for trial in search.trials], model_plan.model.tune
    prefix = "p of " if tune is not None and tune.objective == "largest_p" else ""
    return manifest.Search(
        **make_fit_keys(model_plan),
        tune=tune and tune.written,
        metric=f"{prefix}{tune.metric.label}" if tune else None,
        k=tune.metric.cutoff if tune else None,
        direction=tune.direction if tune else None,
        settings=dict(search.best.settings),
        value=search.best.value,
        trial=search.best.number,
        failed=states.count("failed"),
        pruned=states.count("pruned"),
        excluded=states.count("excluded"),
        seconds=round(sum(trial.seconds for trial in search.trials), 3),
        trials=[
            {"trial": trial.number, "state": trial.state, "value": nan_to_none(trial.value)}
            for trial in search.trials
        ],
    )


def _describe_datasets(plan: Plan, executor: Executor) -> list[manifest.Dataset]:
    descriptions = []
    for spec in plan.experiment.datasets:
        context = next(
            context for context in plan.data_contexts if context.keys.dataset == spec.label
        )
        dataset: Dataset = executor.value(context.dataset)
        rows = dataset.interactions
        counts = {"users": rows.n_users, "items": rows.n_items, "interactions": len(rows)}
        descriptions.append(
            manifest.Dataset(
                label=spec.label,
                name=spec.source.name,
                parameters=spec.source.parameters,
                filters=[_describe_plugin(data_filter) for data_filter in spec.filters],
                files=dict(plan.files[spec.label]),
                counts={name: int(n) for name, n in (counts | dataset.counts).items()},
            )
        )
    return descriptions


def _describe_queries(plan: Plan, executor: Executor) -> list[manifest.Asked]:
    """Return the queries of each data context, without repetitions."""
    descriptions = {}
    for context in plan.data_contexts:
        queries = executor.value(context.queries)
        description = manifest.Asked(
            dataset=context.keys.dataset,
            asked=len(queries),
            unit=queries.unit,
            labels=list_cooccurring_labels(queries.labels.frame),
            parameters=plan.experiment.queries.parameters,
        )
        descriptions[str(description)] = description
    return list(descriptions.values())


def list_cooccurring_labels(labels: pd.DataFrame) -> dict[str, list[str]]:
    """Return for each label the other labels that occur with it in a query.

    >>> labels = {"race": ["white", None], "age": ["old", None], "place": [None, "bank"]}
    >>> list_cooccurring_labels(pd.DataFrame(labels))
    {'race': ['age'], 'age': ['race'], 'place': []}
    """
    present = labels.notna().to_numpy().astype(np.float32)
    names, counts = [str(name) for name in labels.columns], present.T @ present
    return {
        name: [other for other, n in zip(names, row, strict=True) if n and other != name]
        for name, row in zip(names, counts, strict=True)
    }


def _describe_stage(record: StageRecord) -> manifest.Stage:
    return manifest.Stage.model_validate(record, from_attributes=True, strict=False)


def _describe_failure(record: StageRecord, failure: Failure) -> manifest.FailedStep:
    keys = {name: getattr(record, name) for name in ("stage", "dataset", "model", "seed", "fold")}
    return manifest.FailedStep(**keys, **asdict(failure))


def _merge_warnings(stages: Sequence[StageRecord], warnings: Sequence[str]) -> list[str]:
    """Return the warnings of the run, then those of its stages, once per fitted model."""
    merged = dict.fromkeys(warnings)
    for stage in stages:
        keys = (stage.dataset, stage.seed, stage.fold, stage.model)
        for warning in stage.warnings:
            merged.setdefault(f"{keys}{warning}", f"{stage.stage}: {warning}")
    return list(dict.fromkeys(text or warning for warning, text in merged.items()))
