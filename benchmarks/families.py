"""Thirty-five measures of all families for 500,000 users with lists of ten, on two cores.

    python benchmarks/families.py                  # two threads
    python benchmarks/families.py --threads 1
    python benchmarks/families.py --users 50000    # quicker

The data is generated, of the size of a service: 27,000 items of 18 genres, about 18 training and
18 test items a user. Two threads take the measures in turn. The peak of the memory is that of the
process, with the data. Data are generated before the time is taken.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evaluation import K, make_evidence, sample_lists
from recbias.core.dataset import Attributes, Interactions
from recbias.core.evidence import Evidence
from recbias.registry import REGISTRIES

N_ITEMS, N_GENRES, PER_USER = 27_000, 18, 18
LIMIT_SECONDS, LIMIT_GB = 20.0, 4.0

MEASURES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    *((name, {}) for name in ("nDCG", "HR", "MRR", "MAP", "Recall", "Precision", "F1")),
    *((name, {}) for name in ("log_popularity_difference", "popularity_lift", "APLT", "ARP")),
    *((name, {}) for name in ("PopREO", "PopRSP", "gini_difference")),
    *((name, {}) for name in ("ItemCoverage", "Gini", "Entropy", "corrected_Jain")),
    *((name, {}) for name in ("corrected_QF", "corrected_FSat", "II-F", "AI-F", "IAA")),
    *((name, {"attribute": "genres"}) for name in ("EE-L", "EE-R", "AWRF", "EXP", "EXPU")),
    *((name, {"attribute": "genres"}) for name in ("calibration_kl", "calibration_js")),
    ("intra_list_distance", {"attribute": "genres"}),
    *((name, {}) for name in ("inter_user_distance", "self_information")),
    *((name, {}) for name in ("unexpectedness", "serendipity")),
)


def make_service(n_users: int) -> Evidence:
    """Lists, training and test items of users, and the genres of the items."""
    lists, relevant = sample_lists(n_users, N_ITEMS, PER_USER * n_users)
    evidence = make_evidence(lists, relevant)
    rng = np.random.default_rng(1)
    users = np.repeat(np.arange(n_users, dtype=np.int32), PER_USER)
    items = (N_ITEMS * rng.random(users.size) ** 2).astype(np.int32)
    pairs = np.unique(users.astype(np.int64) * N_ITEMS + items)
    users, items = (part.astype(np.int32) for part in np.divmod(pairs, N_ITEMS))
    ones = np.ones(users.size, dtype=np.float32)
    train = Interactions(users, items, ones, None, evidence.queries.ids, evidence.item_ids)
    names = np.array([f"genre {number}" for number in range(N_GENRES)])
    first, second = rng.integers(N_GENRES, size=(2, N_ITEMS))
    genres = np.where(first == second, names[first], names[first] + np.array("|") + names[second])
    table = Attributes(evidence.item_ids, pd.DataFrame({"genres": genres.astype(object)}))
    counts = train.item_counts().astype(np.float64)
    return replace(evidence, train=train, item_counts=counts, items=table)


def create_metric(name: str, settings: Mapping[str, Any]) -> Any:
    return REGISTRIES["metrics"].load(name)(**settings)


def time_measure(evidence: Evidence, name: str, settings: Mapping[str, Any]) -> tuple[str, float]:
    start = time.thread_time()
    create_metric(name, settings).measure(replace(evidence, metric=name))
    return name, time.thread_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, settings in MEASURES:
        create_metric(name, settings)  # modules are imported before the time is taken
    evidence = make_service(options.users)
    data_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    start, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(options.threads) as pool:
        rows = list(pool.map(lambda measure: time_measure(evidence, *measure), MEASURES))
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    for name, seconds in sorted(rows, key=lambda row: -row[1]):
        print(f"{name:28} {seconds:6.2f} s of CPU")
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(rows)} measures of {options.users:,} lists of {K} on {options.threads} threads:")
    print(f"{wall:.1f} s, {cpu:.1f} s of CPU, {peak_gb:.2f} GB ({data_gb:.2f} GB before)")
    if wall > LIMIT_SECONDS or peak_gb > LIMIT_GB:
        print(f"above the aim of {LIMIT_SECONDS:.0f} s or {LIMIT_GB:.0f} GB")


if __name__ == "__main__":
    main()
