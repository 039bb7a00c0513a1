"""Association in vectors: its permutation tests beside scipy's, in the same process.

    python benchmarks/association.py           # 500 + 500 vectors of 64, and MovieLens 1M's size
    python benchmarks/association.py --quick   # 500 + 500 vectors only

Groups and sets of random vectors. ``all`` is a whole measure from vectors to figures, intervals
and tests; ``test`` is the permutation test of 10,000 draws alone, beside the vectorised
``permutation_test`` of ``scipy.stats`` with the same values and draws. Every job is timed best of
several runs; ``ratio`` is scipy's time over ours. Before anything is timed, both p-values are
compared.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes, Interactions, Queries, Vocabulary
from recbias.core.evidence import Embeddings, Evidence
from recbias.metrics.embeddings.association import DEAA, EAA, GEAA, RRipa
from recbias.metrics.embeddings.classification import AttributeClassification
from recbias.metrics.embeddings.directions import DirectionChecks
from recbias.metrics.embeddings.sets import GroupPair, TargetPair
from recbias.statistics.permutation import permute_sets

DRAWS = 10_000
GROUPS = GroupPair(attribute="label", a="A", b="B")
TARGETS = TargetPair(attribute="label", e="A", p="B")


def find_best_time(job: Callable[[], Any], runs: int) -> float:
    """The least time of several runs: what the job takes when nothing else gets in its way."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def make_table(n: int, share: float, kind: str) -> tuple[Vocabulary, Attributes]:
    ids = Vocabulary(np.arange(n).astype(str).astype(object))
    labels = np.where(np.arange(n) < share * n, "A", "B")
    return ids, Attributes(ids, pd.DataFrame({"label": labels}), kind)


def make_evidence(n_users: int, n_items: int, d: int, share: float) -> Evidence:
    """Random vectors of which the first share is A, a little farther along the first axis."""
    rng = np.random.default_rng(0)
    (user_ids, users), (item_ids, items) = (
        make_table(n_users, share, "user"),
        make_table(n_items, 0.5, "item"),
    )
    vectors = [rng.standard_normal((n, d)).astype(np.float32) for n in (n_users, n_items)]
    vectors[0][: round(share * n_users), 0] += 0.3
    vectors[1][: n_items // 2, 0] += 0.3
    n_rows = 95 * n_users
    train = Interactions(
        rng.integers(0, n_users, n_rows).astype(np.int32),
        rng.integers(0, n_items, n_rows).astype(np.int32),
        rng.integers(4, 6, n_rows).astype(np.float32),
        None,
        user_ids,
        item_ids,
    )
    queries = Queries(user_ids, users, np.arange(n_users, dtype=np.int32))
    return Evidence(
        queries=queries,
        item_ids=item_ids,
        train=train,
        users=users,
        items=items,
        embeddings=Embeddings(*vectors),
    )


def time_tests(sizes: tuple[int, int], runs: int) -> list[str]:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(1)
    first, second = rng.normal(0.08, 1, sizes[0]), rng.normal(0, 1, sizes[1])

    def run_ours() -> float:
        rng, sets = np.random.default_rng(0), (first[:, None], second[:, None])
        return permute_sets(*sets, np.subtract, n_permutations=DRAWS, rng=rng)

    def compute_gap(x: Any, y: Any, axis: int = -1) -> Any:
        return np.abs(x.mean(axis=axis) - y.mean(axis=axis))

    def run_scipy() -> Any:
        run_test: Any = permutation_test
        return run_test(
            *((first, second), compute_gap),
            vectorized=True,
            alternative="greater",
            n_resamples=DRAWS,
            batch=500,
            rng=np.random.default_rng(0),
        ).pvalue

    if abs(run_ours() - run_scipy()) > 0.03:
        raise SystemExit(f"scipy says {run_scipy()}, we say {run_ours()}")
    job = f"test of {sizes[0]:,} and {sizes[1]:,} values, {DRAWS:,} draws"
    return [
        format_row(
            job,
            find_best_time(run_ours, runs),
            "scipy permutation_test",
            find_best_time(run_scipy, 2),
        )
    ]


def format_row(job: str, ours: float, peer: str = "", theirs: float = float("nan")) -> str:
    beside = f"{theirs * 1e3:11.1f}  {theirs / ours:7.1f}x" if peer else ""
    return f"{job:56} {ours * 1e3:10.1f}  {peer:24} {beside}".rstrip()


def time_metrics(evidence: Evidence, size: str, runs: int) -> list[str]:
    both = {"groups": GROUPS, "targets": TARGETS}
    metrics = {
        "EAA": EAA(**both, permutations=DRAWS),
        "GEAA": GEAA(**both, permutations=DRAWS),
        "DEAA": DEAA(**both, permutations=DRAWS),
        "R-RIPA centroid": RRipa(**both, permutations=DRAWS),
        "R-RIPA svc": RRipa(**both, direction_="svc", permutations=DRAWS),
        "direction_checks": DirectionChecks(groups=GROUPS),
        "attribute_classification": AttributeClassification(**both),
    }
    return [
        format_row(
            f"all of {name}, {size}",
            find_best_time(lambda metric=metric: metric.measure(evidence), runs),  # type: ignore[misc]
        )
        for name, metric in metrics.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="500 + 500 vectors only")
    quick = parser.parse_args().quick
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, best of runs, ms"
    )
    print(f"{'job':56} {'ours':>10}  {'peer':24} {'peer':>11}  {'ratio':>8}")
    rows = [*time_tests((250, 250), 5), *time_tests((500, 500), 5)]
    rows += time_metrics(
        make_evidence(500, 500, 64, 0.5), "500 users, 500 items, 64 dimensions", 3
    )
    if not quick:
        rows += time_tests((1_682, 4_267), 2)
        rows += time_metrics(make_evidence(5_949, 2_810, 64, 0.28), "5,949 users, 2,810 items", 2)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
