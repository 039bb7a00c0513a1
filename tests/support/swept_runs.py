"""Run folders whose models are settings of one plug-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recbias.reports.run import RunTables, read_run
from support.run_folders import RunSpec, make_run

Settings = Mapping[str, tuple[str, Mapping[str, Any]]]
"""The plug-in and the settings of each model, by its label."""

GRID: Settings = {
    "MostPop": ("MostPop", {}),
    **{
        f"knn {n} {shrink}": ("ItemKNN", {"neighbors": n, "llm": {"shrink": shrink}, "k": 3})
        for shrink in (0, 10)
        for n in (80, 5, 20)
    },
}


def read_swept_run(folder: Path, settings: Settings = GRID, **world: Any) -> RunTables:
    """Write a run of models with these settings, and read it."""
    make_run(folder, RunSpec(models=tuple(settings), **world))
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["models"] = [
        {"label": label, "name": name, "parameters": dict(parameters)}
        for label, (name, parameters) in settings.items()
    ]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return read_run(folder)
