"""What trainings and searches recorded: losses by step, trials and the best settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from recbias.core.measurements.columns import FIT_COLUMNS, LEARNING_CURVE
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.results.metric_rows import make_fit_keys
from recbias.runner.tuning.search import IMPORTANCES, SearchResult, make_importance_rows
from recbias.runner.tuning.trial import TRIALS, make_trial_rows

CURVES = "learning_curves.csv"
"""The file of the losses."""


def list_searches(plan: Plan, executor: Executor) -> list[tuple[ModelPlan, SearchResult]]:
    """Return the results of the searches that succeeded, each once, in the order of the plan."""
    searches: dict[str, tuple[ModelPlan, SearchResult]] = {}
    for model_plan in plan.model_plans:
        stage = model_plan.search
        is_new = stage is not None and stage.digest not in searches
        if stage is not None and is_new and executor.has_succeeded(stage):
            searches[stage.digest] = model_plan, executor.value(stage)
            executor.forget((stage,))
    return [*searches.values()]


def write_searches(folder: Path, searches: Sequence[tuple[ModelPlan, SearchResult]]) -> None:
    """Write ``trials.csv`` and ``importances.csv``."""
    trials, importances = [], []
    for model_plan, search in searches:
        fit_keys = make_fit_keys(model_plan)
        trials += make_trial_rows(search.trials, fit_keys)
        importances += make_importance_rows(search, fit_keys)
    trial_table = pd.DataFrame(trials, columns=list(TRIALS)).astype({"epochs": "Int64"})
    importance_table = pd.DataFrame(importances, columns=list(IMPORTANCES))
    for name, table in (("trials.csv", trial_table), ("importances.csv", importance_table)):
        table.to_csv(folder / name, index=False, lineterminator="\n")


def describe_searches(searches: Sequence[tuple[ModelPlan, SearchResult]]) -> Iterator[str]:
    """Yield the best settings as comments, so that the spec itself still searches."""
    for model_plan, search in searches:
        keys = model_plan.data_context.keys
        fit = f"{model_plan.model.label} on {keys.dataset}, seed {keys.seed}, fold {keys.fold}"
        yield f"# chosen for {fit}: {json.dumps(search.best.settings, ensure_ascii=False)}\n"


def write_learning_curves(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write the losses of every training that recorded them; no file if there is none."""
    tables = []
    for model_plan in plan.model_plans:
        answer = model_plan.shared_answer or model_plan.answer
        if answer is None or not executor.has_succeeded(answer):
            continue
        curve = executor.value(answer).learning_curve
        if curve is not None:
            tables.append(curve[list(LEARNING_CURVE)].assign(**make_fit_keys(model_plan)))
        executor.forget((answer,))
    if tables:
        table = pd.concat(tables, ignore_index=True)[[*FIT_COLUMNS, *LEARNING_CURVE]]
        table.to_csv(folder / CURVES, index=False, lineterminator="\n")
