"""Synthetic run folders for tests of reports."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr

from recbias.core.measures import METRICS, SIGNIFICANCE

HOSTILE = (
    "<script>alert(1)</script>",
    "a|b & \"c\" 'd' $x_1$ 100%",
    "new\nline\\end{document}",
    "🦊 emoji ~^{}#",
    "*bold* _it_ `code` [x](http://example.org)",
)
"""Labels that would break a report that does not escape."""

DIRECTIONS = {
    "nDCG": "higher",
    "HR": "higher",
    "MRR": "higher",
    "MAP": "higher",
    "mean_precision": "higher",
    "log_popularity_difference": "zero",
    "ARP": "lower",
    "Gini": "none",
}

QUALITY = {"Random": 0.01, "MostPop": 0.16, "ItemKNN": 0.29, "UserKNN": 0.30, "PureSVD": 0.31}
SEVEN_MODELS = ("Random", "MostPop", "ItemKNN", "UserKNN", "PureSVD", "EASE", "ALS")
NINETEEN_MODELS = (
    *("MostPop", "Random", "ItemKNN", "UserKNN", "AttributeItemKNN", "AttributeUserKNN", "BPRMF"),
    *("FunkSVD", "MF", "MF2020", "PMF", "PureSVD", "SLIM", "ConvMF", "DeepFM", "NeuMF", "AMF"),
    *("MultiVAE", "VSM"),
)


@dataclass(frozen=True)
class RunSpec:
    """The content of a run folder; equal contents give equal folders."""

    models: Sequence[str] = SEVEN_MODELS
    metrics: Sequence[str] = ("nDCG", "HR", "MRR", "log_popularity_difference")
    datasets: Sequence[str] = ("ml-1m",)
    seeds: Sequence[int] = (42,)
    folds: int = 1
    users: int = 200
    items: int = 300
    k: int = 10
    parts: Sequence[tuple[str, str]] = ()
    lists: bool = True
    popularity: bool = True
    significance: bool = True
    failures: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)


def make_run(folder: Path, world: RunSpec | None = None) -> Path:
    """Write a run folder and return it."""
    world = world or RunSpec()
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    units = _sample_units(world, rng)
    _make_metrics(world, units).to_csv(folder / "metrics.csv", index=False)
    if world.significance:
        _make_significance(world, units).to_csv(folder / "significance.csv", index=False)
    _make_per_unit(world, units).to_parquet(folder / "per_unit.parquet", index=False)
    if world.lists:
        _sample_lists(world, rng).to_parquet(folder / "lists.parquet", index=False)
    if world.popularity:
        _make_popularity(world).to_parquet(folder / "popularity.parquet", index=False)
    (folder / "spec.yaml").write_text(_make_spec(world), encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(make_manifest(world)), encoding="utf-8")
    return folder


Units = dict[tuple[str, int, int, str, str], np.ndarray[Any, np.dtype[np.float64]]]


def _sample_units(world: RunSpec, rng: np.random.Generator) -> Units:
    """Return values of (dataset, seed, fold, metric, model)."""
    units: Units = {}
    for dataset, seed, fold in itertools.product(
        world.datasets, world.seeds, range(1, world.folds + 1)
    ):
        for metric in world.metrics:
            for position, model in enumerate(world.models):
                name = world.names.get(model, model)
                centre = QUALITY.get(name, 0.2 + 0.01 * position)
                if metric == "log_popularity_difference":
                    centre = 0.3 * position - 0.6
                noise = rng.normal(0, 0.1, world.users)
                units[dataset, seed, fold, metric, model] = centre + noise
    return units


def _summarize(values: Sequence[float]) -> dict[str, float]:
    mean = math.fsum(values) / len(values)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1))
    half = 1.96 * std / math.sqrt(len(values))
    return {"value": mean, "std": std, "ci_low": mean - half, "ci_high": mean + half}


def _make_metrics(world: RunSpec, units: Units) -> pd.DataFrame:
    rows = []
    for (dataset, seed, fold, metric, model), values in units.items():
        head = {"dataset": dataset, "model": model, "seed": seed, "fold": fold}
        tail = {"metric": metric, "k": world.k, "n": values.size, "undefined": 0}
        rows.append(head | tail | {"group": "", "target": ""} | _summarize(values.tolist()))
        rows += [
            head | tail | {"group": group, "target": target, "value": 0.1 * position, "std": 0.1}
            for position, (group, target) in enumerate(world.parts, start=1)
        ]
    frame = pd.DataFrame(rows)
    for column in ("fold", "seed", "dataset"):
        if len(frame[column].unique()) > 1:
            keys = ["dataset", "model", "seed", "fold", "metric", "k", "group", "target"]
            other_columns = [column_name for column_name in keys if column_name != column]
            mean = frame.groupby(other_columns, sort=False, as_index=False)[
                ["value", "undefined"]
            ].mean()
            frame = pd.concat([frame, mean.assign(**{column: "all"})])
    return frame.reindex(columns=list(METRICS.names))


def _make_significance(world: RunSpec, units: Units) -> pd.DataFrame:
    family = len(world.models) * (len(world.models) - 1) // 2
    rows = []
    for dataset, seed, fold in dict.fromkeys(key[:3] for key in units):
        for metric in world.metrics:
            for a, b in itertools.combinations(world.models, 2):
                scores_a, scores_b = (
                    units[dataset, seed, fold, metric, model] for model in (a, b)
                )
                fit = {"dataset": dataset, "model": "", "seed": seed, "fold": fold}
                key = {"metric": metric, "k": world.k, "group": "", "target": "", "a": a, "b": b}
                rows.append(fit | key | _compare(scores_a, scores_b, family))
    return pd.DataFrame(rows, columns=list(SIGNIFICANCE.names))


def _compare(scores_a: Any, scores_b: Any, family: int) -> dict[str, Any]:
    difference = scores_a - scores_b
    error = float(difference.std(ddof=1)) / math.sqrt(difference.size)
    statistic = float(difference.mean()) / error
    p = 2 * float(stdtr(difference.size - 1, -abs(statistic)))
    return {
        "test": "paired_t",
        "between": "models",
        "n": difference.size,
        "mean_a": float(scores_a.mean()),
        "mean_b": float(scores_b.mean()),
        "difference": float(difference.mean()),
        "ci_low": float(difference.mean()) - 1.97 * error,
        "ci_high": float(difference.mean()) + 1.97 * error,
        "statistic": statistic,
        "df": difference.size - 1,
        "p": p,
        "p_adjusted": min(1.0, p * family),
        "correction": "bonferroni",
        "family": "metric",
        "family_size": family,
        "alpha": 0.05,
        "significant": p * family < 0.05,
        "effect_size": float(difference.mean() / difference.std(ddof=1)),
    }


def _make_per_unit(world: RunSpec, units: Units) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "dataset": dataset,
                "model": model,
                "seed": str(seed),
                "fold": str(fold),
                "unit": "query",
                "unit_id": [f"u{user}" for user in range(values.size)],
                "metric": metric,
                "k": world.k,
                "group": "",
                "target": "",
                "value": values,
            }
        )
        for (dataset, seed, fold, metric, model), values in units.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _make_popularity(world: RunSpec) -> pd.DataFrame:
    """Item i has 1000 / (i + 1) training interactions."""
    rows = itertools.product(world.datasets, world.seeds, range(1, world.folds + 1))
    ids = [f"i{item}" for item in range(world.items)]
    counts = [1000 // (item + 1) for item in range(world.items)]
    frames = [
        pd.DataFrame(
            {
                "dataset": dataset,
                "seed": str(seed),
                "fold": str(fold),
                "item_id": ids,
                "interactions": counts,
            }
        )
        for dataset, seed, fold in rows
    ]
    return pd.concat(frames, ignore_index=True)


def _sample_lists(world: RunSpec, rng: np.random.Generator) -> pd.DataFrame:
    """Sample items from a power law whose exponent grows with the position of the model."""
    frames = []
    for dataset, seed, fold, (position, model) in itertools.product(
        world.datasets, world.seeds, range(1, world.folds + 1), enumerate(world.models)
    ):
        weights = 1.0 / np.arange(1, world.items + 1) ** (0.2 + 1.8 * position / len(world.models))
        size = world.users * world.k
        items = rng.choice(world.items, size=size, p=weights / weights.sum())
        frames.append(
            pd.DataFrame(
                {
                    "dataset": dataset,
                    "model": model,
                    "seed": str(seed),
                    "fold": str(fold),
                    "query_id": np.repeat([f"u{user}" for user in range(world.users)], world.k),
                    "rank": np.tile(np.arange(1, world.k + 1), world.users),
                    "item_id": np.char.add("i", items.astype(str)).astype(object),
                    "score": 0.5,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _make_spec(world: RunSpec) -> str:
    return (
        f"name: ml-1m\ndataset:\n  name: {world.datasets[0]}\n  filters:\n"
        "    - {name: threshold, at_least: 4}\n    - {name: k_core, k: 10}\n"
        f"split: {{name: random, test: 0.2, validation: 0.0, folds: {world.folds}}}\n"
        f"queries: {{name: users, where: 'age < 18', sample: null}}\nk: {world.k}\n"
        "models: [Random]\n"
    )


def make_manifest(world: RunSpec) -> dict[str, Any]:
    """Return the manifest of a world."""
    return {
        "schema_version": 1,
        "recbias": "0.1.0",
        "name": "ml-1m",
        "spec_digest": "0123abcd" * 8,
        "started": "2026-01-02T03:04:05+00:00",
        "seconds": 12.3,
        "peak_memory_mb": 512.0,
        "commit": None,
        "python": "3.11.7",
        "platform": "Linux x86_64",
        "libraries": {"numpy": "2.4", "pandas": "2.3.3"},
        "seeds": list(world.seeds),
        "datasets": [
            {
                "label": label,
                "name": label,
                "filters": [
                    {"label": "threshold", "name": "threshold", "parameters": {"at_least": 4}},
                    {"label": "k_core", "name": "k_core", "parameters": {"k": 10}},
                ],
                "files": {"ratings.dat": "f" * 64},
                "counts": {"users": 5949, "items": 2810, "interactions": 571531, "bad_lines": 0},
            }
            for label in world.datasets
        ],
        "queries": [
            {
                "dataset": name,
                "asked": 5949,
                "unit": "user",
                "parameters": {"where": "age < 18", "sample": None},
            }
            for name in world.datasets
        ],
        "models": [
            {"label": name, "name": world.names.get(name, name), "parameters": {"neighbors": 100}}
            for name in world.models
        ],
        "metrics": [_define_metric(name, world.k) for name in world.metrics],
        "tests": [
            {
                "label": "paired_t",
                "name": "paired_t",
                "parameters": {"alpha": 0.05, "correction": "bonferroni"},
            }
        ],
        "stages": [
            {
                "stage": f"fit {name}",
                "kind": "fit",
                "model": name,
                "dataset": world.datasets[0],
                "seed": 42,
                "fold": 1,
                "digest": "9" * 64,
                "seconds": 0.4,
                "peak_memory_mb": 300.0,
                "reused": False,
                "failure": None,
            }
            for name in world.models
        ],
        "failures": list(world.failures),
        "warnings": list(world.warnings),
    }


def _define_metric(metric: str, k: int) -> dict[str, Any]:
    name = metric.partition("(")[0]
    return {
        "metric": metric,
        "k": k,
        "name": name,
        "parameters": {"k": k},
        "summary": f"What {name} says of a list, in one sentence.",
        "formula": f"{name}@k = (1 / |U|) * sum over u of <gain> / ideal",
        "direction": DIRECTIONS.get(name, "none"),
        "values": "0 to 1",
        "source": 'Järvelin and Kekäläinen, "Cumulated gain", TOIS 2002.',
        "unit": "query",
    }
