"""The values of each round of a feedback loop: ``rounds.csv``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.measurements.columns import ROUND_COLUMNS
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.results.metric_rows import make_measurement

FILE = "rounds.csv"
"""The file in the run folder."""


def write_rounds(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write ``rounds.csv``; no file for a run without feedback.

    It has a row for each value of a metric in a round. A round whose stages failed has no rows.
    """
    rows = [
        row
        for model_plan in plan.model_plans
        if model_plan.rounds
        for row in _list_rows(model_plan, executor)
    ]
    if rows:
        table = pd.DataFrame(rows, columns=list(ROUND_COLUMNS)).astype({"k": "Int64"})
        table.to_csv(folder / FILE, index=False, lineterminator="\n")


def _list_rows(first: ModelPlan, executor: Executor) -> Iterator[dict[str, Any]]:
    """Yield the rows of a model, round by round."""
    keys = first.data_context.keys
    fit_keys = (keys.dataset, first.model.label, keys.seed or 0, keys.fold or 0)
    for number, plan in enumerate((first, *first.rounds), start=1):
        split = plan.data_context.split
        if not executor.has_succeeded(split):
            return
        counts = {"round": number, "interactions": len(executor.value(split).train)}
        for metric, stage in zip(plan.metrics, plan.measures, strict=True):
            for value in executor.value(stage) if executor.has_succeeded(stage) else ():
                yield make_measurement(fit_keys, metric, value).row() | counts
        executor.forget((split, *plan.measures))
