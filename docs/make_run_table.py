"""Print a table of a run: measured and published values, cost and settings of each model.

    python docs/make_run_table.py results/children-a3/latest [nDCG]

Seconds cover fitting and recommending; memory is the peak of the process during these stages. The
published values are read from the run's ``reference.csv``.
"""  # noqa: INP001  a script

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.text import normalize_name

COLUMNS = ("model", "published", "measured", "difference", "seconds", "MB", "settings")


def read_rows(run: Path, metric: str) -> list[dict[str, str]]:
    """Return the rows of the table, best model first."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    metrics = pd.read_csv(run / "metrics.csv", dtype={"fold": str})
    measured = metrics[metrics["metric"] == metric].groupby("model", sort=False)["value"].mean()
    published = _read_published(run, metric)
    models = {model["label"]: model for model in manifest["models"]}
    return [
        {
            "model": model,
            "published": _format_value(published.get(normalize_name(str(model)))),
            "measured": _format_value(value),
            "difference": _format_difference(value, published.get(normalize_name(str(model)))),
            **_format_cost(manifest["stages"], model),
            "settings": _format_settings(models[model]["parameters"]),
        }
        for model, value in measured.sort_values(ascending=False).items()
    ]


def render_markdown(rows: list[dict[str, str]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|--:|--:|--:|--:|--:|---|"]
    lines += [f"| {' | '.join(row[name] for name in COLUMNS)} |" for row in rows]
    return "\n".join(lines)


def _read_published(run: Path, metric: str) -> dict[str, float]:
    path = run / "reference.csv"
    if not path.exists():
        return {}
    table = pd.read_csv(path)
    table = table[table["metric"] == metric]
    return dict(zip(table["system"].map(normalize_name), table["published"], strict=True))


def _format_cost(stages: list[dict[str, Any]], model: str) -> dict[str, str]:
    model_stages = [
        stage for stage in stages if stage["model"] == model and stage["kind"] in {"fit", "answer"}
    ]
    seconds = sum(stage["seconds"] for stage in model_stages)
    peak = max((stage["peak_memory_mb"] or 0.0 for stage in model_stages), default=0.0)
    if all(stage["reused"] for stage in model_stages):
        return {"seconds": "stored", "MB": ""}
    return {"seconds": f"{seconds:.1f}", "MB": f"{peak:.0f}"}


def _format_settings(parameters: dict[str, Any]) -> str:
    excluded = {"device", "patience"}
    return ", ".join(
        f"{name} {value}" for name, value in parameters.items() if name not in excluded
    )


def _format_value(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4f}"  # noqa: PLR0124  NaN


def _format_difference(value: float, published: float | None) -> str:
    return "" if published is None else f"{value - published:+.4f}"


if __name__ == "__main__":
    selected_metric = sys.argv[2] if len(sys.argv) > 2 else "nDCG"
    sys.stdout.write(render_markdown(read_rows(Path(sys.argv[1]), selected_metric)) + "\n")
