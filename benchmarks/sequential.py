"""Accuracy and CPU seconds per epoch of the sequential models and LightGCN on MovieLens-100K.

    python benchmarks/sequential.py [NAME ...]

The last interaction of each user by time is the test item, and all items that the user does not
have are ranked. The numbers of epochs are stated, not chosen by accuracy. ``RECBIAS_DATA`` names
the folder that holds ``ml-100k/``. One thread: set ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import Split
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import collect_warnings
from recbias.data.datasets.movielens import MovieLens100K
from recbias.data.splits.leave_one_out import LeaveOneOut
from recbias.registry import REGISTRIES

K, SEED = 10, 0
MODELS: dict[str, dict[str, Any]] = {
    "MostPop": {},
    "EASE": {},
    "LightGCN": {"epochs": 15, "learning_rate": 0.005},
    "SASRec": {"epochs": 20},
    "GRU4Rec": {"epochs": 20},
    "BERT4Rec": {"epochs": 60},
}
"""The settings that differ from the defaults."""


def load_split() -> Split:
    """Return all ratings as interactions, the last one of each user as the test part."""
    rng = np.random.default_rng(SEED)
    dataset = MovieLens100K().load(Path(os.environ["RECBIAS_DATA"]), rng)
    return LeaveOneOut().split(dataset, 0, rng)


def measure(name: str, split: Split) -> str:
    """Return a row of the table: seconds per epoch, HR and nDCG."""
    data, settings = split.training_data(), MODELS[name]
    trained = {"device": "cpu", "patience": 0} if "epochs" in settings else {}
    model: Any = REGISTRIES["models"].load(name)(**settings, **trained)
    with collect_warnings():
        start = time.process_time()
        fitted = model.fit(data, np.random.default_rng(SEED))
        seconds = (time.process_time() - start) / getattr(model, "epochs", 1)
        ids = data.train.user_ids
        labels = Attributes(ids, pd.DataFrame(index=range(len(ids))), "query")
        queries = Queries(ids, labels, np.arange(len(ids), dtype=np.int32))
        lists = fitted.recommend(queries, K, data)
    assert split.test is not None
    hits = lists.items[split.test.users] == split.test.items[:, None]
    gains = (hits / np.log2(np.arange(K) + 2)).sum(axis=1)
    written = ", ".join(f"{key} {value}" for key, value in settings.items())
    shown = f"{seconds:.2f}" if trained else ""
    return f"| {name} | {written} | {shown} | {hits.any(axis=1).mean():.4f} | {gains.mean():.4f} |"


def main() -> None:
    """Print the table."""
    split = load_split()
    print(f"| model | settings | CPU s an epoch | HR@{K} | nDCG@{K} |\n|---|---|--:|--:|--:|")
    for name in sys.argv[1:] or MODELS:
        print(measure(name, split), flush=True)


if __name__ == "__main__":
    main()
