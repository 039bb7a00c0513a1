"""The manifest: what a run was made of, and what happened to each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.docstrings import read_formula, read_section, read_summary
from recbias.config.experiment import PluginSpec
from recbias.core.dataset.dataset import Dataset
from recbias.runner.environment import describe_environment
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.results.run_folder import found_by, place, stage_records
from recbias.runner.stages.requirements import cutoff
from recbias.runner.tuning.search import Found
from recbias.runner.tuning.trial import or_none

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Clock:
    """When a run began and what it took.

    Args:
        started: The time of day.
        seconds: Wall time.
        peak_memory_mb: The largest peak of its stages and of this process.
    """

    started: datetime
    seconds: float
    peak_memory_mb: float


def manifest(plan: Plan, walk: Executor, clock: Clock, notes: Sequence[str]) -> dict[str, Any]:
    """Return the manifest of a run, as plain data."""
    stages = stage_records(walk)
    return {
        "schema_version": SCHEMA_VERSION,
        "name": plan.experiment.name,
        "spec_digest": plan.spec_digest,
        **describe_environment(),
        "started": clock.started.isoformat(timespec="seconds"),
        "seconds": round(clock.seconds, 3),
        "peak_memory_mb": round(clock.peak_memory_mb, 1),
        "seeds": list(plan.experiment.seeds),
        "limit": plan.options.limit,
        "datasets": _datasets(plan, walk),
        "queries": _queries(plan, walk),
        "split": _chosen(plan.experiment.split) if plan.experiment.split else None,
        "models": [_model(each) for each in plan.experiment.models],
        "searches": [_searched(chain, found) for chain, found in found_by(plan, walk)],
        "metrics": [metric_definition(each) for each in plan.experiment.metrics],
        "tests": [_chosen(each) for each in plan.experiment.tests],
        "stages": stages,
        "failures": [_failure(each) for each in stages if each["failure"] is not None],
        "warnings": _warnings(stages, notes),
    }


def metric_definition(chosen: PluginSpec) -> dict[str, Any]:
    """Return what a reader must know of a metric."""
    plugin = chosen.plugin
    return {
        "metric": chosen.label,
        "k": chosen.parameters.get("k"),
        "name": chosen.name,
        "parameters": chosen.parameters | chosen.split_settings,
        "summary": read_summary(type(plugin)),
        "formula": read_formula(type(plugin)),
        "direction": chosen.direction,
        "values": read_section(type(plugin), "Range"),
        "unit": plugin.unit,
        "source": read_section(type(plugin), "Source"),
    }


def _chosen(chosen: PluginSpec) -> dict[str, Any]:
    return {"label": chosen.label, "name": chosen.name, "parameters": chosen.parameters}


def _model(chosen: PluginSpec) -> dict[str, Any]:
    """Return a model; a setting that is searched is named, and has no value of its own."""
    if chosen.tune is None:
        return _chosen(chosen)
    names = [each.parameter for each in chosen.tune.space]
    kept = {name: each for name, each in chosen.parameters.items() if name not in names}
    return _chosen(chosen) | {"parameters": kept, "searched": names}


def _searched(chain: ModelPlan, found: Found) -> dict[str, Any]:
    """Return the settings that were chosen, and each trial in short."""
    states, tune = [each.state for each in found.trials], chain.model.tune
    return {
        **place(chain),
        "tune": tune.written if tune is not None else None,
        "metric": tune.metric.label if tune is not None else None,
        "k": cutoff(tune.metric) if tune is not None else None,
        "direction": tune.metric.direction if tune is not None else None,
        "settings": found.best.settings,
        "value": found.best.value,
        "trial": found.best.number,
        "failed": states.count("failed"),
        "pruned": states.count("pruned"),
        "seconds": round(sum(each.seconds for each in found.trials), 3),
        "trials": [
            {"trial": each.number, "state": each.state, "value": or_none(each.value)}
            for each in found.trials
        ],
    }


def _datasets(plan: Plan, walk: Executor) -> list[dict[str, Any]]:
    described = []
    for each in plan.experiment.datasets:
        world = next(world for world in plan.data_contexts if world.keys.dataset == each.label)
        dataset: Dataset = walk.value(world.dataset)
        rows = dataset.interactions
        counts = {"users": rows.n_users, "items": rows.n_items, "interactions": len(rows)}
        described.append(
            {
                **_chosen(each.source),
                "label": each.label,
                "filters": [_chosen(step) for step in each.filters],
                "files": dict(plan.files[each.label]),
                "counts": counts | dataset.counts,
            }
        )
    return described


def _queries(plan: Plan, walk: Executor) -> list[dict[str, Any]]:
    found = {}
    for world in plan.data_contexts:
        queries = walk.value(world.queries)
        record = {
            "dataset": world.keys.dataset,
            "asked": len(queries),
            "unit": queries.unit,
            "labels": labels_together(queries.labels.frame),
        }
        found[str(record)] = record | {"parameters": plan.experiment.queries.parameters}
    return list(found.values())


def labels_together(labels: pd.DataFrame) -> dict[str, list[str]]:
    """Return for each label of queries the other labels that some query carries beside it.

    >>> labels_together(pd.DataFrame({"race": ["white", None], "place": [None, "bank"]}))
    {'race': [], 'place': []}
    """
    has = labels.notna().to_numpy().astype(np.float32)
    names, shared = [str(each) for each in labels.columns], has.T @ has
    return {
        name: [other for other, n in zip(names, row, strict=True) if n and other != name]
        for name, row in zip(names, shared, strict=True)
    }


def _failure(stage: dict[str, Any]) -> dict[str, Any]:
    where = {name: stage[name] for name in ("stage", "dataset", "model", "seed", "fold")}
    return {**where, **stage["failure"]}


def _warnings(stages: Sequence[dict[str, Any]], notes: Sequence[str]) -> list[str]:
    said = dict.fromkeys(notes, "")
    for stage in stages:
        for warning in stage["warnings"]:
            where = (stage["dataset"], stage["seed"], stage["fold"], stage["model"])
            said.setdefault(f"{where}{warning}", f"{stage['stage']}: {warning}")
    return list(dict.fromkeys(text or note for note, text in said.items()))
