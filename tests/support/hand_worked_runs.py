"""Run folders whose comparisons and values are written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.measures import METRICS, SIGNIFICANCE
from recbias.reports.run import RunTables, read_run
from support.run_folders import RunSpec, make_manifest

FIT = {"dataset": "ml-1m", "seed": 42, "fold": 1, "k": 10, "group": "", "target": ""}
NDCG: Mapping[str, Any] = {"metric": "nDCG", "k": 10, "name": "nDCG", "direction": "higher"}
BY_GENDER = {
    **NDCG,
    "metric": "nDCG(by=gender)",
    "parameters": {"k": 10, "by": "gender", "gap": "groups"},
}

PAIR = {
    **FIT,
    "model": "",
    "test": "paired_t",
    "between": "models",
    "n": 100,
    "df": 99,
    "statistic": 1.0,
    "p": 0.5,
    "p_adjusted": 0.5,
    "correction": "bonferroni",
    "family": "metric",
    "family_size": 1,
    "alpha": 0.05,
    "significant": False,
}


def state(model: str, value: float | None, metric: str = "nDCG", **columns: Any) -> dict[str, Any]:
    """Return a row of ``metrics.csv``."""
    row = {**FIT, "model": model, "metric": metric, "value": value, "n": 100, "undefined": 0}
    return {**row, **columns}


def compare(a: str, b: str, means: Sequence[float], half: float, **columns: Any) -> dict[str, Any]:
    """Return a row of ``significance.csv`` from two means and the half width of the interval."""
    difference = means[0] - means[1]
    bounds = {"ci_low": difference - half, "ci_high": difference + half}
    means_of_sides = {"mean_a": means[0], "mean_b": means[1], "difference": difference}
    return {**PAIR, "metric": "nDCG", "a": a, "b": b, **means_of_sides, **bounds, **columns}


def write_run(
    folder: Path,
    values: Sequence[Mapping[str, Any]],
    comparisons: Sequence[Mapping[str, Any]] = (),
    metrics: Sequence[Mapping[str, Any]] = (NDCG,),
) -> RunTables:
    """Write a run folder with these values and comparisons, and read it."""
    models = list(dict.fromkeys(row["model"] for row in values))
    manifest = {**make_manifest(RunSpec(models=models)), "metrics": list(metrics)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    frame = pd.DataFrame(values, columns=list(METRICS.names))
    frame.to_csv(folder / "metrics.csv", index=False)
    frame = pd.DataFrame(comparisons, columns=list(SIGNIFICANCE.names))
    frame.to_csv(folder / "significance.csv", index=False)
    return read_run(folder)


def write_groups(
    folder: Path,
    *rows: Mapping[str, Any],
    models: Sequence[str],
    metric: Mapping[str, Any] = BY_GENDER,
) -> RunTables:
    """Write a run in which women (mean 0.2, 40 users) and men (0.3, 60 users) are compared."""
    values = [
        state(
            model,
            value,
            metric["metric"],
            group=f"gender={gender}",
            n=n,
            ci_low=value,
            ci_high=value,
        )
        for model in models
        for gender, value, n in (("F", 0.2, 40), ("M", 0.3, 60))
    ]
    return write_run(folder, values, rows, [metric])


def contrast(model: str, half: float, **columns: Any) -> dict[str, Any]:
    """Return the comparison of women and men within a model."""
    sides = {"model": model, "between": "groups", "test": "welch_t", "df": 98.0}
    row = compare("gender=F", "gender=M", (0.2, 0.3), half, **sides)
    return {**row, "metric": BY_GENDER["metric"], **columns}
