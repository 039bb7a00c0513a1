"""Run folders with the metric rows that plots show."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.reports.run import RunTables, read_run
from support.run_folders import RunSpec, make_run

MODELS = ("Random", "MostPop", "BERT")
LEVELS = ("$", "$$", "$$$", "$$$$")


@dataclass(frozen=True)
class Measure:
    """A metric of a run with its values.

    Args:
        name: The plug-in.
        figures: The value and half its interval, by (group, target).
        parameters: The settings, which are part of the label.
        direction: Whether higher or lower is better.
        spread: The difference between one model and the next.
    """

    name: str
    figures: Mapping[tuple[str, str], tuple[float, float]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    direction: str = "none"
    spread: float = 0.0

    @property
    def label(self) -> str:
        """The heading of its column."""
        inner = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.name}({inner})" if inner else self.name


def write_run(
    folder: Path, measures: Sequence[Measure], world: RunSpec | None = None, units: Any = None
) -> RunTables:
    """Write a run with additional measures and read it.

    Args:
        folder: The run folder.
        measures: The additional measures.
        world: The other content.
        units: Rows of ``per_unit.parquet`` with ``metric``, ``model``, ``group``, ``target``,
            ``unit_id`` and ``value``.
    """
    world = world or RunSpec(models=MODELS, metrics=("nDCG",), users=12, items=30)
    make_run(folder, world)
    if measures:
        _add_figures(folder, measures, world)
        _add_definitions(folder, measures)
    if units is not None:
        _add_units(folder, units, world)
    return read_run(folder)


def _add_figures(folder: Path, measures: Sequence[Measure], world: RunSpec) -> None:
    rows = []
    has_several = len(world.datasets) > 1
    datasets = [*world.datasets, "all"] if has_several else list(world.datasets)
    for dataset, (position, model), measure in itertools.product(
        datasets, enumerate(world.models), measures
    ):
        for (group, target), (value, half) in measure.figures.items():
            estimate = value + measure.spread * position
            has_interval = half > 0 and dataset != "all"
            rows.append(
                {
                    "dataset": dataset,
                    "model": model,
                    "seed": "42",
                    "fold": "1",
                    "metric": measure.label,
                    "k": np.nan,
                    "group": group,
                    "target": target,
                    "value": estimate,
                    "std": np.nan,
                    "n": 40,
                    "undefined": int(np.isnan(estimate)),
                    "ci_low": estimate - half if has_interval else np.nan,
                    "ci_high": estimate + half if has_interval else np.nan,
                }
            )
    path = folder / "metrics.csv"
    metrics = pd.read_csv(path, dtype={"seed": str, "fold": str}, keep_default_na=False)
    pd.concat([metrics, pd.DataFrame(rows, columns=metrics.columns)]).to_csv(path, index=False)


def _add_definitions(folder: Path, measures: Sequence[Measure]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["metrics"] += [
        {
            "metric": measure.label,
            "k": None,
            "name": measure.name,
            "parameters": dict(measure.parameters),
            "direction": measure.direction,
            "unit": "query",
        }
        for measure in measures
    ]
    path.write_text(json.dumps(manifest), encoding="utf-8")


def _add_units(folder: Path, units: Any, world: RunSpec) -> None:
    path = folder / "per_unit.parquet"
    table = pd.read_parquet(path)
    rows = pd.DataFrame(units)
    defaults: dict[str, Any] = {
        "dataset": world.datasets[0],
        "seed": "42",
        "fold": "1",
        "unit": "user",
        "k": np.nan,
    }
    for column, value in defaults.items():
        if column not in rows:
            rows[column] = value
    pd.concat([table, rows[table.columns]]).to_parquet(path, index=False)


def make_shares(label: str = "race", values: Sequence[str] = ("black", "white")) -> Measure:
    """Return proportions of price levels by label: the first label has 0.7 at $, then less."""
    figures = {}
    for position, level in enumerate(LEVELS):
        first_share = 0.7 - 0.1 * position
        other_share = (1 - first_share) / max(len(values) - 1, 1)
        for value in values:
            share = first_share if value == values[0] else other_share
            figures[f"{label}={value}", f"price={level}"] = (share, 0.04)
    return Measure("price_percentage", figures, {"label": label})


def make_group_measure(groups: Sequence[str], metric: str = "nDCG") -> Measure:
    """Return a metric by group: 0.2, 0.23, 0.26, ..."""
    figures = {(group, ""): (0.2 + 0.03 * position, 0.02) for position, group in enumerate(groups)}
    return Measure(metric, figures, {"by": "gender", "gap": "groups"}, "higher", 0.02)


EXPOSURE = Measure("REC-ST", {("", ""): (0.6, 0.01)}, direction="lower", spread=0.05)


def make_exposure_units(models: Sequence[str], n: int = 60) -> dict[str, list[Any]]:
    """Return REC-ST of users: model m has 0, 1/n, 2/n, ... times (m + 1) / 10."""
    rows = [
        {
            "metric": EXPOSURE.label,
            "model": model,
            "group": "",
            "target": "",
            "unit_id": f"u{user}",
            "value": (user / n) * 0.1 * (position % 9 + 1),
        }
        for position, model in enumerate(models)
        for user in range(n)
    ]
    return {key: [row[key] for row in rows] for key in rows[0]}


SETS = {"gender=F": (1.0, 0.0), "gender=M": (-1.0, 0.0), "genres=Romance": (2.0, 1.0)}
PROJECTION = Measure(
    "latent_projection", {(group, axis): (0.0, 0.1) for group in SETS for axis in ("PC1", "PC2")}
)


def make_projection_units(
    models: Sequence[str], n: int = 80, sets: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, list[Any]]:
    """Return positions in latent space, which are scattered around the centre of their set."""
    rng = np.random.default_rng(3)
    rows = []
    for model, (group, centre) in itertools.product(models, (sets or SETS).items()):
        points = rng.normal(0, 0.6, (n, 2))
        points += np.array(centre) - points.mean(axis=0)
        for unit, axis in itertools.product(range(n), (0, 1)):
            rows.append(
                {
                    "metric": PROJECTION.label,
                    "model": model,
                    "group": group,
                    "target": ("PC1", "PC2")[axis],
                    "unit_id": f"{group}{unit}",
                    "value": float(points[unit, axis]),
                }
            )
    return {key: [row[key] for row in rows] for key in rows[0]}


def merge_units(*units: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Concatenate per-unit rows."""
    return {key: [value for rows in units for value in rows[key]] for key in units[0]}
