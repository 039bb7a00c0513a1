"""Tables of a run's models, stages, libraries and data files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recbias.reports.views.facts import Fact, format_setting
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.rounding import format_duration
from recbias.reports.views.run_tables import RunTables


def build_models_table(run: RunTables) -> Table:
    """Return one row per model with its settings."""
    columns = tuple(map(Column, ("model", "plug-in", "parameters")))
    rows = tuple(
        (
            Cell(str(model.get("label"))),
            Cell(str(model.get("name"))),
            Cell(_describe_parameters(model)),
        )
        for model in run.manifest.get("models", [])
    )
    return Table("Models", columns, rows)


def _describe_parameters(model: Mapping[str, Any]) -> str:
    """Return the settings of a model as text, and which of them were tuned."""
    parameters = format_setting(model.get("parameters") or {})
    tuned = format_setting([name.replace("_", " ") for name in model.get("searched") or []])
    return "; ".join(filter(None, [parameters, f"tuned: {tuned}" if tuned else ""]))


def build_stages_table(run: RunTables) -> Table:
    """Return one row per stage: duration, memory and whether its result came from the cache."""
    columns = (
        *(Column("stage"), Column("kind"), Column("duration", numeric=True)),
        *(Column("peak memory", numeric=True), Column("from cache")),
    )
    rows = []
    for stage in run.manifest.get("stages", []):
        seconds, memory = stage.get("seconds") or 0.0, stage.get("peak_memory_mb") or 0.0
        rows.append(
            (
                Cell(str(stage.get("stage"))),
                Cell(str(stage.get("kind"))),
                Cell(format_duration(seconds), seconds),
                Cell(f"{memory:,.0f} MB", memory),
                Cell("yes" if stage.get("reused") else "no"),
            )
        )
    return Table("Stages", columns, tuple(rows))


def build_files_table(run: RunTables) -> Table:
    """Return one row per data file with its SHA-256 digest."""
    rows = tuple(
        (Cell(str(dataset.get("label"))), Cell(str(name)), Cell(str(digest)))
        for dataset in run.manifest.get("datasets", [])
        for name, digest in (dataset.get("files") or {}).items()
    )
    return Table("Data files", (Column("dataset"), Column("file"), Column("SHA-256")), rows)


def list_libraries(run: RunTables) -> list[Fact]:
    """Return the versions of the libraries."""
    libraries = run.manifest.get("libraries") or {}
    return [Fact(str(name), str(version)) for name, version in libraries.items()]
