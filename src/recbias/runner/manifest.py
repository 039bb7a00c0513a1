"""The manifest of a run: its spec, its environment, its data and the record of each stage."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core.context import Failure, StageRecord
from recbias.core.dataset import Dataset, Split
from recbias.core.docstrings import read_formula, read_section, read_summary
from recbias.core.grouping import parse_uncertain_label
from recbias.core.machine import measure_peak_memory_mb
from recbias.formats.manifest import Manifest
from recbias.runner.address import describe_environment, name_gpus
from recbias.runner.execute import Executor
from recbias.runner.plan import ModelPlan, Plan
from recbias.runner.planner import describe_devices
from recbias.runner.results import locate, make_fit_keys
from recbias.runner.tuning import SearchResult
from recbias.statistics.groups import DEFINITIONS, UNCERTAIN_MEANS


@dataclass
class RunCost:
    """What a run takes from the moment that this object is made: seconds, and the largest peak."""

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    peak_memory_mb: float = 0.0
    _start: float = field(default_factory=time.perf_counter)

    def measure(self) -> dict[str, Any]:
        """Return what the run has taken so far, as the manifest has it."""
        self.peak_memory_mb = max(self.peak_memory_mb, measure_peak_memory_mb())
        return {
            "seconds": round(time.perf_counter() - self._start, 3),
            "peak_memory_mb": round(self.peak_memory_mb, 1),
        }


def describe_inputs(plan: Plan, executor: Executor) -> dict[str, Any]:
    """Return what the manifest has of the datasets and queries, as plain values."""
    return {
        "datasets": _describe_datasets(plan, executor),
        "queries": _describe_queries(plan, executor),
        "evaluated": [*_digest_contents(plan, executor)],
    }


def build_manifest(
    plan: Plan,
    executor: Executor,
    cost: RunCost,
    warnings: Sequence[str],
    facts: Mapping[str, Any],
) -> Manifest:
    """Return the manifest of a run; ``facts`` are its datasets, queries and checks."""
    records, experiment = [*executor.records.values()], plan.experiment
    measured = [
        (model_plan, metric, stage)
        for model_plan in plan.model_plans
        for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True)
    ]
    return Manifest.model_validate(
        {
            "schema_version": 1,
            "name": experiment.name,
            "spec_digest": plan.spec_digest,
            **describe_environment(),
            "started": cost.started.isoformat(timespec="seconds"),
            **cost.measure(),
            "seeds": [*experiment.seeds],
            **plan.options.recorded,
            **facts,
            "split": _describe_plugin(experiment.split) if experiment.split else None,
            "models": [_describe_model(model, plan) for model in experiment.models],
            "gpus": name_gpus(device for stage in plan.stages for device in stage.devices),
            "searches": [_describe_search(*pair) for pair in list_searches(plan, executor)],
            "metrics": [describe_metric(metric) for metric in experiment.metrics],
            "undefined": [
                {**_name(metric), "model": model.label, "missing": missing}
                for metric, model, missing in plan.undefined
            ],
            "tests": [_describe_plugin(test) for test in experiment.tests],
            "addresses": [
                {**make_fit_keys(model_plan), **_name(metric), "address": stage.digest}
                for model_plan, metric, stage in measured
            ],
            "stages": [asdict(record) for record in records],
            "failures": [
                describe_failure(record.stage, record.failure, record)
                for record in records
                if record.failure is not None
            ],
            "warnings": _merge_warnings(records, warnings),
        }
    )


def _name(metric: PluginSpec) -> dict[str, Any]:
    return {"metric": metric.label, "k": metric.cutoff}


def describe_metric(metric: PluginSpec) -> dict[str, Any]:
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
        "needs": sorted(metric.needs),
        "values": read_section(type(plugin), "Range"),
        "unit": plugin.unit,
        "source": read_section(type(plugin), "Source"),
        "family": _name_family(type(plugin)),
    }
    if metric.grouping is None:
        return definition
    if (label := parse_uncertain_label(metric.grouping.by)) is not None:
        means = UNCERTAIN_MEANS[label.assumption]
        definition["formula"] = f"{means}. x: {definition['formula']}"
    if (words := DEFINITIONS.get(metric.grouping.gap or "")) is None:
        return definition
    return definition | {
        "summary": f"The {words.text} of the groups g of queries. Metric: {definition['summary']}",
        "formula": f"{words.formula}, where {words.subject}\n\n{definition['formula']}",
        "values": words.values or definition["values"],
        "group_direction": plugin.direction,
    }


def _name_family(plugin: type) -> str:
    """Return the family of a metric of recbias, as in ``accuracy``; blank for others."""
    package, _, module = plugin.__module__.partition(".metrics.")
    name = module.partition(".")[0].replace("_", " ") if package == "recbias" else ""
    return {"labels": "labelled items", "templates": "prompts"}.get(name, name)


def _describe_plugin(spec: PluginSpec) -> dict[str, Any]:
    return {"label": spec.label, "name": spec.name, "parameters": spec.parameters}


def _describe_model(model: PluginSpec, plan: Plan) -> dict[str, Any]:
    """Return a model with its device; its tuned settings are listed without a value."""
    placed = next(each.model for each in plan.model_plans if each.model.label == model.label)
    described = _describe_plugin(model) | describe_devices(placed.plugin)
    described["is_baseline"] = model.is_baseline
    if model.reranked is not None:
        described["baseline"] = model.reranked.base.label
    if model.tune is not None:
        tuned = [dimension.parameter for dimension in model.tune.space]
        described["searched"] = tuned
        described["parameters"] = {
            name: value for name, value in model.parameters.items() if name not in tuned
        }
    return described


def list_searches(plan: Plan, executor: Executor) -> list[tuple[ModelPlan, SearchResult]]:
    """Return the results of the searches that succeeded, each once, in the order of the plan."""
    searches: dict[str, tuple[ModelPlan, SearchResult]] = {}
    for model_plan in plan.model_plans:
        stage = model_plan.search
        if stage and stage.digest not in searches and executor.has_succeeded(stage):
            searches[stage.digest] = model_plan, executor.value(stage)
            executor.forget((stage,))
    return [*searches.values()]


def _describe_search(model_plan: ModelPlan, search: SearchResult) -> dict[str, Any]:
    tune: Any = model_plan.model.tune
    states = [trial.state for trial in search.trials]
    prefix = "p of " if tune.objective == "largest_p" else ""
    return {
        **make_fit_keys(model_plan),
        "tune": tune.written,
        "metric": f"{prefix}{tune.metric.label}",
        "k": tune.metric.cutoff,
        "direction": tune.direction,
        "settings": dict(search.best.settings),
        "value": search.best.value,
        "trial": search.best.number,
        **{state: states.count(state) for state in ("failed", "pruned", "excluded")},
        "seconds": round(sum(trial.seconds for trial in search.trials), 3),
        "trials": [
            {
                "trial": trial.number,
                "state": trial.state,
                "value": None if math.isnan(trial.value) else trial.value,
            }
            for trial in search.trials
        ],
    }


def _describe_datasets(plan: Plan, executor: Executor) -> list[dict[str, Any]]:
    descriptions = []
    for spec in plan.experiment.datasets:
        context = next(each for each in plan.data_contexts if each.keys.dataset == spec.label)
        dataset: Dataset = executor.value(context.dataset)
        rows = dataset.interactions
        users = rows.n_users if dataset.unit == "user" else 0  # of a log that names none
        counts = {"users": users, "items": rows.n_items, "interactions": len(rows)}
        descriptions.append(
            {
                "label": spec.label,
                "name": spec.source.name,
                "parameters": spec.source.parameters,
                "filters": [_describe_plugin(data_filter) for data_filter in spec.filters],
                "files": dict(plan.files[spec.label]),
                "counts": {name: int(n) for name, n in (counts | dataset.counts).items()},
                "value_labels": getattr(spec.source.plugin, "value_labels", {}),
            }
        )
    return descriptions


def _describe_queries(plan: Plan, executor: Executor) -> list[dict[str, Any]]:
    """Return the queries of each data context, without repetitions."""
    descriptions = {}
    for context in plan.data_contexts:
        queries = executor.value(context.queries)
        description = {
            "dataset": context.keys.dataset,
            "asked": len(queries),
            "unit": queries.unit,
            "labels": _list_cooccurring_labels(queries.labels.frame),
            "parameters": plan.experiment.queries.parameters,
        }
        descriptions[str(description)] = description
    return [*descriptions.values()]


def _digest_contents(plan: Plan, executor: Executor) -> Iterator[dict[str, Any]]:
    """Yield the digests of what the lists of each data context are for, and compared with."""
    for context in plan.data_contexts:
        (dataset, seed, fold), split = locate(context.keys), executor.value(context.split)
        test = split.test if isinstance(split, Split) else None
        yield {
            "dataset": dataset,
            "seed": seed,
            "fold": fold,
            "queries": executor.value(context.queries).ids.digest,
            "test": "" if test is None else test.digest_pairs(),
        }
        executor.forget((context.split,))


def _list_cooccurring_labels(labels: pd.DataFrame) -> dict[str, list[str]]:
    """Return for each label the other labels that occur with it in a query.

    >>> labels = {"race": ["white", None], "age": ["old", None], "place": [None, "bank"]}
    >>> _list_cooccurring_labels(pd.DataFrame(labels))
    {'race': ['age'], 'age': ['race'], 'place': []}
    """
    present = labels.notna().to_numpy().astype(np.float32)
    names, counts = [str(name) for name in labels.columns], present.T @ present
    return {
        name: [other for other, n in zip(names, row, strict=True) if n and other != name]
        for name, row in zip(names, counts, strict=True)
    }


def describe_failure(
    step: str, failure: Failure, record: StageRecord | None = None
) -> dict[str, Any]:
    """Return the failure of a stage, or of a step after the stages, as the manifest lists it."""
    names = ("dataset", "model", "seed", "fold")
    keys = {name: getattr(record or StageRecord(step, "", ""), name) for name in names}
    return {"stage": step, **keys, **asdict(failure)}


def _merge_warnings(stages: Sequence[StageRecord], warnings: Sequence[str]) -> list[str]:
    """Return the warnings of the run, then those of its stages, once per fitted model."""
    merged = dict.fromkeys(warnings)
    for stage in stages:
        keys = (stage.dataset, stage.seed, stage.fold, stage.model)
        for warning in stage.warnings:
            merged.setdefault(f"{keys}{warning}", f"{stage.stage}: {warning}")
    return list(dict.fromkeys(text or warning for warning, text in merged.items()))
