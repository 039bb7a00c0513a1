"""Top-10 lists of a million users by a hundred thousand items, beside implicit's own top-k.

    python benchmarks/ranking.py                                   # about a minute
    python benchmarks/ranking.py --users 6040 --items 3500 --asked 6040
    python benchmarks/ranking.py --device cuda                     # ours on a GPU, with tensors

Vectors and histories are drawn by chance. Both sides score all items for the users that are asked,
leave out their own items and keep the best ten. The products alone, without ranking, are the
limit that a matrix library sets. The runs take turns in one process on one
number of threads, and the least time of each is shown; ``ratio`` is implicit's time over ours.
Memory is what the process held at most during a run beyond what it held before it; all the scores
of all the users would be the matrix that is named first.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import psutil

from recbias.core.dataset import Attributes, Interactions, Queries, TrainingData, Vocabulary
from recbias.kernels.sparse import block_size, map_blocks, n_workers
from recbias.models.fitted import FittedFactors
from recbias.models.ranking import BYTES_PER_SCORE, RANKING_LIMIT

K = 10
RUNS = 3


def sample_world(
    n_users: int, n_items: int, per_user: int, rng: np.random.Generator
) -> TrainingData:
    """About as many items a user, by chance."""
    offsets = np.repeat(np.arange(n_users), per_user) * n_items
    pairs = np.unique(offsets + rng.integers(n_items, size=offsets.size))
    users, items = (codes.astype(np.int32) for codes in np.divmod(pairs, n_items))
    names = [Vocabulary(np.arange(n).astype(str).astype(object)) for n in (n_users, n_items)]
    return TrainingData(Interactions(users, items, np.ones(users.size, "f4"), None, *names))


def make_queries(data: TrainingData, users: Any) -> Queries:
    ids = data.train.user_ids.take(users)
    labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "query")
    return Queries(ids, labels, users.astype(np.int32))


def rank_by_implicit(factors: FittedFactors, users: Any, data: TrainingData) -> Any:
    from implicit.cpu.topk import topk
    from scipy.sparse import csr_matrix

    history = csr_matrix(data.train.binary[users])
    threads = n_workers()
    return topk(
        factors.item_factors, factors.user_factors[users], K, None, history, None, threads
    )[0]


def multiply_factors(factors: FittedFactors, users: Any) -> int:
    """Compute the scores in the blocks of the ranking, without ranking them."""
    size = block_size(BYTES_PER_SCORE * len(factors.item_factors), memory_limit=RANKING_LIMIT)
    blocks = map_blocks(
        lambda start, stop: factors.scores(users[start:stop]).size, users.size, size
    )
    return sum(blocks)


def measure_job(job: Callable[[], Any]) -> tuple[float, float, float, Any]:
    """Seconds, CPU seconds, MiB that the process grew by at most, and what came out."""
    process, done = psutil.Process(), threading.Event()
    before = process.memory_info().rss
    peak = [before]

    def watch() -> None:
        while not done.wait(0.002):
            peak.append(max(peak[-1], process.memory_info().rss))

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, cpu = time.perf_counter(), time.process_time()
    result = job()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    done.set()
    watcher.join()
    return seconds, cpu, (peak[-1] - before) / 2**20, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--asked", type=int, default=20_000, help="how many users are ranked")
    parser.add_argument("--per-user", type=int, default=10, help="training items of a user")
    parser.add_argument("--factors", type=int, default=32)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda", "mps"])
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    data = sample_world(arguments.users, arguments.items, arguments.per_user, rng)
    p, q = (
        rng.standard_normal((n, arguments.factors), dtype=np.float32)
        for n in (arguments.users, arguments.items)
    )
    factors = FittedFactors(p, q, device=arguments.device)
    users = np.sort(
        rng.choice(arguments.users, min(arguments.asked, arguments.users), replace=False)
    )
    queries = make_queries(data, users)
    factors.recommend(queries.take(np.arange(2)), K, data)  # the training rows as a matrix
    gigabytes = 4 * arguments.users * arguments.items / 1e9
    print(f"{arguments.users:,} users by {arguments.items:,} items: {gigabytes:,.1f} GB of scores")
    print(
        f"{users.size:,} users asked, {len(data.train):,} training rows, {arguments.factors} "
        f"factors, {arguments.device}, python {sys.version.split()[0]}, {os.cpu_count()} cores"
    )
    ours, theirs, products = [], [], []
    for _ in range(RUNS):
        products.append(measure_job(lambda: multiply_factors(factors, users)))
        ours.append(measure_job(lambda: factors.recommend(queries, K, data).items))
        theirs.append(measure_job(lambda: rank_by_implicit(factors, users, data)))
    same = float((ours[0][-1] == theirs[0][-1]).mean())
    print(f"\n{'top-10 lists':12} {'seconds':>8} {'of CPU':>8} {'users/s':>9} {'MiB':>7}")
    for name, runs in (("recbias", ours), ("implicit", theirs), ("products", products)):
        seconds, cpu = min(run[0] for run in runs), min(run[1] for run in runs)
        speed, memory = users.size / seconds, max(run[2] for run in runs)
        print(f"{name:12} {seconds:8.2f} {cpu:8.2f} {speed:9,.0f} {memory:7.0f}")
    ratio = min(run[0] for run in theirs) / min(run[0] for run in ours)
    share = min(run[1] for run in products) / min(run[1] for run in ours)
    print(f"\nratio {ratio:.2f}; {same:.2%} of the places hold the same item")
    print(f"the products take {share:.0%} of the CPU time of recbias")


if __name__ == "__main__":
    main()
