"""Neighbours and lists of ItemKNN and UserKNN beside implicit, from 1 to 25 million interactions.

    python benchmarks/neighbours.py                              # 1 million: about half a minute
    python benchmarks/neighbours.py --size 25000000 --skip UserKNN

Interactions are generated in the layout of MovieLens 32M (see ``growth.py``), all of them
positive. Both sides find 100 neighbours by the cosine with two threads; implicit, which has no
UserKNN, gets the transposed matrix for it. Lists are the top 10 of all users by the neighbours of
items: ours are those of the scored item, implicit's of the item of the history. CPU seconds stand
beside the others because those of a shared machine depend on its other work; ``ratio`` is
implicit's CPU time over ours.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import csv

from growth import write_ratings
from recbias.core.dataset import Interactions, TrainingData, Vocabulary
from recbias.kernels.sparse import n_workers
from recbias.models.knn import ItemKNN, UserKNN

K, NEIGHBOURS = 10, 100


def generate_interactions(size: int) -> TrainingData:
    with tempfile.TemporaryDirectory() as folder:
        write_ratings(Path(folder), size)
        options = csv.ConvertOptions(include_columns=["userId", "movieId"])
        table = csv.read_csv(Path(folder) / "ratings.csv", convert_options=options)
    codes = []
    names = []
    for column in ("userId", "movieId"):
        values, inverse = np.unique(table[column].to_numpy(), return_inverse=True)
        names.append(Vocabulary(values.astype(str).astype(object)))
        codes.append(inverse.astype(np.int32))
    ratings = np.ones(len(table), np.float32)
    return TrainingData(Interactions(codes[0], codes[1], ratings, None, *names))


def fit_implicit(matrix: Any, neighbours: int) -> Any:
    from implicit.nearest_neighbours import CosineRecommender

    model = CosineRecommender(K=neighbours, num_threads=n_workers())
    model.fit(matrix, show_progress=False)
    return model


def measure(name: str, job: Callable[[], Any]) -> tuple[float, Any]:
    start, cpu = time.perf_counter(), time.process_time()
    result = job()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"{name:28} {seconds:9.2f} {cpu:9.2f}", flush=True)
    return cpu, result


def main() -> None:
    from scipy.sparse import csr_matrix

    from ranking import make_queries

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--skip", nargs="*", default=[], help="UserKNN, lists")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="implicit")
    data = generate_interactions(arguments.size)
    train, rng = data.train, np.random.default_rng(1)
    matrix = csr_matrix(train.binary)
    transposed = csr_matrix(train.binary.T.tocsr())
    print(f"{train.n_users:,} users, {train.n_items:,} items, {len(train):,} interactions")
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores\n")
    print(f"{'':28} {'seconds':>9} {'CPU s':>9}")
    ours, items = measure("ItemKNN, fit", lambda: ItemKNN(neighbors=NEIGHBOURS).fit(data, rng))
    theirs, peer = measure("implicit, fit", lambda: fit_implicit(matrix, NEIGHBOURS))
    print(f"{'ratio':28} {'':9} {theirs / ours:9.2f}")
    if "lists" not in arguments.skip:
        users = np.arange(train.n_users)
        queries = make_queries(data, users)
        ours, _ = measure("ItemKNN, lists", lambda: items.recommend(queries, K, data))
        theirs, _ = measure("implicit, lists", lambda: peer.recommend(users, matrix, N=K))
        print(f"{'ratio':28} {'':9} {theirs / ours:9.2f}")
    if "UserKNN" not in arguments.skip:
        ours, _ = measure("UserKNN, fit", lambda: UserKNN(neighbors=NEIGHBOURS).fit(data, rng))
        theirs, _ = measure(
            "implicit, transposed, fit", lambda: fit_implicit(transposed, NEIGHBOURS)
        )
        print(f"{'ratio':28} {'':9} {theirs / ours:9.2f}")


if __name__ == "__main__":
    main()
