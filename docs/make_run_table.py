"""Print the table of a run: each model's figure beside the published one, its cost and settings.

    python docs/make_run_table.py results/children-a3/latest [nDCG]

Seconds are those of fitting and of making the lists; memory is the peak of the process while it
did so. Both are the stored stages', whichever run made them. The published figures are those of
the run's ``reference.csv``.
"""  # noqa: INP001  a script

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.suggestions import normalize_name

COLUMNS = ("model", "published", "measured", "difference", "seconds", "MB", "settings")


def rows(run: Path, metric: str) -> list[dict[str, str]]:
    """Return the rows of the table, the best model first."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    figures = pd.read_csv(run / "metrics.csv", dtype={"fold": str})
    measured = figures[figures["metric"] == metric].groupby("model", sort=False)["value"].mean()
    published = _published(run, metric)
    known = {each["label"]: each for each in manifest["models"]}
    return [
        {
            "model": model,
            "published": _number(published.get(normalize_name(str(model)))),
            "measured": _number(value),
            "difference": _signed(value, published.get(normalize_name(str(model)))),
            **_cost(manifest["stages"], model),
            "settings": _settings(known[model]["parameters"]),
        }
        for model, value in measured.sort_values(ascending=False).items()
    ]


def markdown(found: list[dict[str, str]]) -> str:
    """Return the rows as a markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|--:|--:|--:|--:|--:|---|"]
    lines += [f"| {' | '.join(each[name] for name in COLUMNS)} |" for each in found]
    return "\n".join(lines)


def _published(run: Path, metric: str) -> dict[str, float]:
    path = run / "reference.csv"
    if not path.exists():
        return {}
    table = pd.read_csv(path)
    table = table[table["metric"] == metric]
    return dict(zip(table["system"].map(normalize_name), table["published"], strict=True))


def _cost(stages: list[dict[str, Any]], model: str) -> dict[str, str]:
    own = [each for each in stages if each["model"] == model and each["kind"] in {"fit", "answer"}]
    seconds = sum(each["seconds"] for each in own)
    reused = all(each["reused"] for each in own)
    peak = max((each["peak_memory_mb"] for each in own), default=0.0)
    if reused:
        return {"seconds": "stored", "MB": ""}
    return {"seconds": f"{seconds:.1f}", "MB": f"{peak:.0f}"}


def _settings(parameters: dict[str, Any]) -> str:
    left_out = {"device", "patience"}
    return ", ".join(f"{name} {each}" for name, each in parameters.items() if name not in left_out)


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4f}"  # noqa: PLR0124  NaN


def _signed(value: float, published: float | None) -> str:
    return "" if published is None else f"{value - published:+.4f}"


if __name__ == "__main__":
    metric_asked = sys.argv[2] if len(sys.argv) > 2 else "nDCG"
    sys.stdout.write(markdown(rows(Path(sys.argv[1]), metric_asked)) + "\n")
