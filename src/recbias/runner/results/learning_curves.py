"""The losses of the trainings of a run: ``learning_curves.csv``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.core.measurements.columns import FIT_COLUMNS, LEARNING_CURVE
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import Plan
from recbias.runner.results.metric_rows import make_fit_keys

FILE = "learning_curves.csv"


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
        table.to_csv(folder / FILE, index=False, lineterminator="\n")
