"""The results of searches: ``trials.csv``, ``importances.csv`` and the best settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.results.metric_rows import make_fit_keys
from recbias.runner.tuning.search import IMPORTANCES, SearchResult, make_importance_rows
from recbias.runner.tuning.trial import TRIALS, make_trial_rows


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
