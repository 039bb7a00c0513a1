"""Train a sequential model of RecTools on a file of rows, and write its lists.

    /path/to/rectools/bin/python benchmarks/sequential_rectools.py FOLDER

Started by ``benchmarks/sequential.py``: it imports nothing of recbias. It reads ``request.json``
(model, settings and seed) and ``rows.npz`` (users, items, times) and writes ``lists.npz`` (items,
-1 where there is none) and ``seconds.json`` (CPU seconds an epoch).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd


def main() -> None:
    import pytorch_lightning
    import rectools.models
    import torch
    from rectools import Columns
    from rectools.dataset import Dataset

    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    with np.load(folder / "rows.npz") as rows:
        columns = {
            Columns.User: rows["users"],
            Columns.Item: rows["items"],
            Columns.Datetime: pd.to_datetime(rows["times"], unit="s"),
        }
    torch.set_num_threads(1)
    pytorch_lightning.seed_everything(request["seed"])
    frame = pd.DataFrame(columns).assign(**{Columns.Weight: 1.0})
    dataset = Dataset.construct(frame)
    model = getattr(rectools.models, request["model"])(**request["settings"], verbose=0)
    start = time.process_time()
    model.fit(dataset)
    seconds = (time.process_time() - start) / request["settings"]["epochs"]
    users, k = np.unique(columns[Columns.User]), request["k"]
    lists = model.recommend(users, dataset, k=k, filter_viewed=True)
    items = np.full((users.max() + 1, k), -1)
    items[lists[Columns.User], lists[Columns.Rank] - 1] = lists[Columns.Item]
    np.savez(folder / "lists.npz", items=items)
    (folder / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
