"""The experiment files of recbias, and the values of its runs."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

from peers import job_files as settings

OURS = "recbias"
MODELS = {
    "MostPop": {"name": "MostPop"},
    "ItemKNN": {"name": "ItemKNN", "neighbors": settings.NEIGHBORS},
    "UserKNN": {"name": "UserKNN", "neighbors": settings.NEIGHBORS},
    "PureSVD": {"name": "PureSVD", "factors": settings.SVD_FACTORS},
    "EASE": {"name": "EASE", "reg": settings.REG},
    "ALS": {"name": "implicit/ALS", "embedding_size": settings.FACTORS, **settings.ALS},
    "BPR": {
        "name": "BPR-MF",
        "embedding_size": settings.FACTORS,
        "epochs": settings.BPR["epochs"],
        "learning_rate": settings.BPR["learning_rate"],
        **{f"reg_{part}": settings.BPR["reg"] for part in ("user", "positive", "negative")},
    },
}


def make_spec(names: list[str], split: Path, *, from_ratings: bool) -> dict[str, Any]:
    """Return the spec of a job of recbias."""
    several = len(names) > 1
    spec = {
        "name": "job",
        "seed": settings.SEED,
        "device": "cpu",
        "dataset": {"name": "tables"},
        "split": name_split(split / "train.csv", split / "test.csv"),
        "k": settings.K,
        "models": [{**MODELS[name], "label": name} for name in names],
        "metrics": ["nDCG", "Recall", *(["MRR", "HR"] if several else [])],
        "tests": ["paired_t"] if several else [],
        "report": {"formats": ["csv"]},
    }
    if from_ratings:
        filters = [{"name": "threshold", "at_least": 4}, {"name": "k_core", "k": 10}]
        spec |= {"dataset": {"name": "ml-1m", "filters": filters}}
        spec |= {"split": {"name": "random", "test": 0.2}}
    return spec


def name_split(train: Path, test: Path) -> dict[str, str]:
    return {"name": "given", "train": str(train), "test": str(test)}


def run_recbias(folder: Path, spec: dict[str, Any]) -> list[str]:
    """Write a spec, and return the command that runs it."""
    (folder / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")  # JSON is YAML
    return [sys.executable, "-m", OURS, "run", "spec.yaml", "--out", "out"]


def read_ours(folder: Path) -> dict[str, tuple[float, float]]:
    """Return nDCG and Recall of each model of a run of recbias."""
    (path,) = (folder / "out" / "job").glob("2*/metrics.csv")
    values: dict[tuple[str, str], float] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            values[row["model"], row["metric"]] = float(row["value"])
    return {model: (values[model, "nDCG"], values[model, "Recall"]) for model, _ in values}
