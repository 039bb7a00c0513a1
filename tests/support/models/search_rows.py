"""Hyperparameter searches in run folders."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.reports.run import RunTables, read_run
from support.run_folders import RunSpec, make_run

FIT = {"dataset": "ml-1m", "model": "SLIM", "seed": 42, "fold": 1}

FIVE_TRIALS = (
    (0.20, "done", {"alpha": 0.5, "similarity": "cosine"}),
    (0.05, "pruned", {"alpha": 0.001, "similarity": "dice"}),
    (0.35, "done", {"alpha": 1e-5, "similarity": None}),
    (math.nan, "failed", {"alpha": 9.0, "similarity": "dice"}),
    (0.30, "done", {"alpha": 0.25, "similarity": "cosine"}),
)
"""The value, state and settings of five trials; the third is the best."""

Rows = Sequence[tuple[float, str, Mapping[str, Any]]]


def add_search(
    folder: Path,
    *,
    rows: Rows = FIVE_TRIALS,
    importances: Mapping[str, float] | None = None,
    fit: Mapping[str, Any] | None = None,
    entry: Mapping[str, Any] | None = None,
) -> None:
    """Add a search to the files of a run folder."""
    key = FIT | dict(fit or {})
    trials = [
        {
            **key,
            "trial": number,
            "value": value,
            "state": state,
            "seconds": 1.5 * number,
            "epochs": 10 if state == "pruned" else None,
            "settings": json.dumps(settings),
        }
        for number, (value, state, settings) in enumerate(rows, 1)
    ]
    weights = {"alpha": 0.75, "similarity": 0.25} if importances is None else importances
    importance_rows = [
        {**key, "setting": name, "importance": weight} for name, weight in weights.items()
    ]
    columns = {"trials.csv": None, "importances.csv": [*key, "setting", "importance"]}
    for name, added in {"trials.csv": trials, "importances.csv": importance_rows}.items():
        path = folder / name
        tables = [pd.read_csv(path)] if path.exists() else []
        pd.concat([*tables, pd.DataFrame(added, columns=columns[name])]).to_csv(path, index=False)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    search = {**key, "metric": "nDCG", "k": 10, "direction": "higher", "trial": 3}
    manifest.setdefault("searches", []).append(search | dict(entry or {}))
    path.write_text(json.dumps(manifest))


def write_search_run(folder: Path, **options: Any) -> RunTables:
    """Write a run with one search and read it."""
    make_run(folder, RunSpec(models=("SLIM", "EASE"), users=20))
    add_search(folder, **options)
    return read_run(folder)
