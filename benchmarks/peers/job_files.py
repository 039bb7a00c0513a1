"""What the jobs of ``whole_jobs.py`` share: settings, and the files that they read and write.

A job is a process: ``python TOOL_job.py SPLIT MODEL[,MODEL...] [--lists]``. It reads ``train.csv``
and ``test.csv`` (``user_id,item_id``) of the folder SPLIT and writes ``metrics.json`` and
``lists/MODEL.*`` to the folder in which it runs. It runs in the Python of its tool, from 3.8 on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

K = 10
SEED = 1
NEIGHBORS = 100
REG = 500.0
"""Of EASE."""
FACTORS = 64
ALS = {"epochs": 15, "reg": 10.0, "alpha": 1.0}
BPR = {"epochs": 10, "learning_rate": 0.05, "reg": 0.01}
SVD_FACTORS = 22


def read_arguments() -> argparse.Namespace:
    """Return the folder of the split, the names of models, and whether lists are all that counts.

    ``lists`` is set in a run that is not measured, for tools that write no lists by themselves.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("split", type=Path)
    parser.add_argument("models", type=lambda text: text.split(","))
    parser.add_argument("--lists", action="store_true")
    parser.add_argument("--ratings", action="store_true", help="from all ratings, not the split")
    return parser.parse_args()


def read_rows(split: Path) -> list[Any]:
    """Return the training and the test rows as tables with whole numbers."""
    import pandas as pd

    return [pd.read_csv(split / f"{part}.csv") for part in ("train", "test")]


def write_metrics(model: str, ndcg: float, recall: float) -> None:
    """Add the values of a model, as the tool defines them, to ``metrics.json``."""
    path = Path("metrics.json")
    metrics = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    metrics[model] = {"nDCG": float(ndcg), "Recall": float(recall)}
    path.write_text(json.dumps(metrics), encoding="utf-8")


def write_lists(model: str, users: Any, items: Any) -> None:
    """Write a list of at most K items for each user as a table."""
    with name_lists(model).open("w", encoding="utf-8") as file:
        file.write("user_id,item_id,rank\n")
        for place, user in enumerate(users):
            ranked = enumerate(items[place], 1)
            file.writelines(f"{user},{item},{rank}\n" for rank, item in ranked)


def name_lists(model: str, suffix: str = "csv") -> Path:
    """Return the file of a model's lists, in a folder that exists."""
    Path("lists").mkdir(exist_ok=True)
    return Path("lists", f"{model}.{suffix}")
