"""Rows of the measures that pictures are drawn from, put into run folders made by hand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.reports.views.run_tables import RunTables, read_run
from support.run_folders import World, make_run

MODELS = ("Random", "MostPop", "BERT")
LEVELS = ("$", "$$", "$$$", "$$$$")
FOODS = (
    *("Bars", "Nightlife", "Pubs", "Wine Bars", "Gay Bars", "Beer Gardens", "Cocktail Bars"),
    *("Coffee & Tea", "Bakeries", "Desserts", "Tea Rooms", "Soul Food", "Southern", "Steakhouses"),
    *("Barbeque", "Burgers", "Fast Food", "Chicken Wings", "Caribbean", "African", "Halal"),
    *("Vegan", "Vegetarian", "Salad", "Juice Bars", "Sushi Bars", "Japanese", "Chinese", "Thai"),
    *("Korean", "Vietnamese", "Indian", "Mexican", "Tacos", "Italian", "Pizza", "French"),
    *("Mediterranean", "Greek", "Seafood"),
)
PLACES = (
    *("office", "school", "museum", "hospital", "church", "mosque", "synagogue", "temple"),
    *("gas station", "beach", "library", "gym", "airport", "concert hall", "courthouse"),
)


@dataclass(frozen=True)
class Measure:
    """A metric of a run, and its figures: (group, target) to value and half its interval.

    Args:
        name: The plug-in.
        figures: Of every model, or of each by its label.
        parameters: The settings, in the metric's label too.
        direction: Which way is better.
        spread: How far models differ from each other.
    """

    name: str
    figures: Mapping[tuple[str, str], tuple[float, float]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    direction: str = "none"
    spread: float = 0.0

    @property
    def label(self) -> str:
        """What heads its column."""
        inner = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.name}({inner})" if inner else self.name


def run_with(
    folder: Path, measures: Sequence[Measure], world: World | None = None, units: Any = None
) -> RunTables:
    """Return a run with these measures beside those of its world.

    Args:
        folder: Where it is written.
        measures: What is added.
        world: The rest.
        units: Rows of ``per_unit.parquet`` with ``metric``, ``model``, ``group``, ``target``,
            ``unit_id`` and ``value``.
    """
    world = world or World(models=MODELS, metrics=("nDCG",), users=12, items=30)
    make_run(folder, world)
    if measures:
        _add_figures(folder, measures, world)
        _add_definitions(folder, measures)
    if units is not None:
        _add_units(folder, units, world)
    return read_run(folder)


def _add_figures(folder: Path, measures: Sequence[Measure], world: World) -> None:
    rows = []
    several = len(world.datasets) > 1
    places = [*world.datasets, "all"] if several else list(world.datasets)
    for dataset, (at, model), each in itertools.product(places, enumerate(world.models), measures):
        for (group, target), (value, half) in each.figures.items():
            ours = value + each.spread * at
            known = half > 0 and dataset != "all"
            rows.append(
                {
                    "dataset": dataset,
                    "model": model,
                    "seed": "42",
                    "fold": "1",
                    "metric": each.label,
                    "k": np.nan,
                    "group": group,
                    "target": target,
                    "value": ours,
                    "std": np.nan,
                    "n": 40,
                    "undefined": int(np.isnan(ours)),
                    "ci_low": ours - half if known else np.nan,
                    "ci_high": ours + half if known else np.nan,
                }
            )
    path = folder / "metrics.csv"
    own = pd.read_csv(path, dtype={"seed": str, "fold": str}, keep_default_na=False)
    pd.concat([own, pd.DataFrame(rows, columns=own.columns)]).to_csv(path, index=False)


def _add_definitions(folder: Path, measures: Sequence[Measure]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["metrics"] += [
        {
            "metric": each.label,
            "k": None,
            "name": each.name,
            "parameters": dict(each.parameters),
            "direction": each.direction,
            "unit": "query",
        }
        for each in measures
    ]
    path.write_text(json.dumps(manifest), encoding="utf-8")


def _add_units(folder: Path, units: Any, world: World) -> None:
    path = folder / "per_unit.parquet"
    own = pd.read_parquet(path)
    given = pd.DataFrame(units)
    usual: dict[str, Any] = {
        "dataset": world.datasets[0],
        "seed": "42",
        "fold": "1",
        "unit": "user",
        "k": np.nan,
    }
    for column, value in usual.items():
        if column not in given:
            given[column] = value
    pd.concat([own, given[own.columns]]).to_parquet(path, index=False)


def shares(label: str = "race", values: Sequence[str] = ("black", "white")) -> Measure:
    """Return the shares of each price level by label: the first has 0.7 at $, less further up."""
    figures = {}
    for at, level in enumerate(LEVELS):
        first = 0.7 - 0.1 * at
        rest = (1 - first) / max(len(values) - 1, 1)
        for place, value in enumerate(values):
            share = first if place == 0 else rest
            figures[f"{label}={value}", f"price={level}"] = (share, 0.04)
    return Measure("price_percentage", figures, {"label": label})


def association(label: str, ends: tuple[str, str], seed: int, n: int = len(FOODS)) -> Measure:
    """Return associations of foods with a label, drawn from a seed."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(0, 0.3, n)
    figures = {}
    for food, value in zip(FOODS[:n], drawn.tolist(), strict=True):
        for sign, end in zip((1, -1), ends, strict=True):
            figures[f"{label}={end}", f"categories={food}"] = (sign * value, 0.08)
    parameters = {"attribute": "categories", "label": label}
    return Measure("association", figures, parameters, "zero")


def averages(places: Sequence[str] = PLACES) -> Measure:
    """Return mean prices by location, 1.5 at the first and 0.05 more at each other."""
    figures = {
        (f"location={place}", ""): (1.5 + 0.05 * at, 0.06) for at, place in enumerate(places)
    }
    return Measure("mean_attribute", figures, {"attribute": "price", "label": "location"})


def by_group(groups: Sequence[str], metric: str = "nDCG") -> Measure:
    """Return a metric by group: 0.2 in the first and 0.03 more in each other."""
    figures = {(each, ""): (0.2 + 0.03 * at, 0.02) for at, each in enumerate(groups)}
    return Measure(metric, figures, {"by": "gender", "gap": "groups"}, "higher", 0.02)


EXPOSURE = Measure("REC-ST", {("", ""): (0.6, 0.01)}, direction="lower", spread=0.05)


def exposure_units(models: Sequence[str], n: int = 60) -> dict[str, list[Any]]:
    """Return REC-ST of users: model number m has 0, 1/n, 2/n, ... squeezed to m + 1 tenths."""
    rows = [
        {
            "metric": EXPOSURE.label,
            "model": model,
            "group": "",
            "target": "",
            "unit_id": f"u{user}",
            "value": (user / n) * 0.1 * (at % 9 + 1),
        }
        for at, model in enumerate(models)
        for user in range(n)
    ]
    return {key: [row[key] for row in rows] for key in rows[0]}


SETS = {"gender=F": (1.0, 0.0), "gender=M": (-1.0, 0.0), "genres=Romance": (2.0, 1.0)}
PROJECTION = Measure(
    "latent_projection",
    {(group, axis): (0.0, 0.1) for group in SETS for axis in ("PC1", "PC2")},
)


def projection_units(
    models: Sequence[str], n: int = 80, sets: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, list[Any]]:
    """Return places in latent space: each set lies around its own centre."""
    rng = np.random.default_rng(3)
    rows = []
    for model, (group, centre) in itertools.product(models, (sets or SETS).items()):
        drawn = rng.normal(0, 0.6, (n, 2))
        drawn += np.array(centre) - drawn.mean(axis=0)
        for unit, axis in itertools.product(range(n), (0, 1)):
            rows.append(
                {
                    "metric": PROJECTION.label,
                    "model": model,
                    "group": group,
                    "target": ("PC1", "PC2")[axis],
                    "unit_id": f"{group}{unit}",
                    "value": float(drawn[unit, axis]),
                }
            )
    return {key: [row[key] for row in rows] for key in rows[0]}


def both(*units: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return several sets of per-unit rows as one."""
    return {key: [value for each in units for value in each[key]] for key in units[0]}


def places(picture: Any) -> dict[str, list[tuple[float, float]]]:
    """Return where the marks of a picture stand, by what they are called: ``row-0-1``."""
    from xml.etree import ElementTree as ET

    found = {}
    for group in ET.fromstring(picture.document()).iter("{http://www.w3.org/2000/svg}g"):
        name = group.get("id", "").removeprefix(f"{picture.name}.")
        marks = list(group.iter("{http://www.w3.org/2000/svg}use"))
        if marks and "-" in name:
            found[name] = [(float(m.get("x", "")), float(m.get("y", ""))) for m in marks]
    return found


def words(picture: Any) -> list[str]:
    """Return what is said over the marks of a picture."""
    from xml.etree import ElementTree as ET

    root = ET.fromstring(picture.document())
    found = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    return found[1:]


def texts(picture: Any) -> list[str]:
    """Return every line of text of a picture."""
    from xml.etree import ElementTree as ET

    root = ET.fromstring(picture.document())
    return [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
