"""Accuracy metrics, coverage and paired tests, each beside a named library in the same process.

    python benchmarks/evaluation.py            # 5,949 and 500,000 users
    python benchmarks/evaluation.py --quick    # 5,949 users only

The data is generated, of the size of MovieLens 1M after its filters (2,810 items, about 20 test
items a user) and of a service of 500,000 users (27,000 items, about 18). Every job is timed best
of several runs; ``ratio`` is the peer's time over ours. Before anything is timed, ours and the
peer's answers are compared.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from recbias.core.dataset import Attributes, Queries, Vocabulary
from recbias.core.evidence import Evidence, RankedLists
from recbias.metrics.accuracy import MAP, MRR, NDCG, HitRate
from recbias.metrics.popularity import Entropy, Gini, ItemCoverage
from recbias.statistics.compare import SystemEstimates, compare
from recbias.statistics.paired import PairedT, SignFlip, Wilcoxon

K = 10
METRICS = (NDCG(k=K), MRR(k=K), MAP(k=K), HitRate(k=K))


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    job: str
    seconds: float
    peer: str = ""
    peer_seconds: float = float("nan")

    def format_line(self) -> str:
        ratio = self.peer_seconds / self.seconds
        beside = f"{self.peer_seconds * 1e3:11.1f}  {ratio:7.0f}x" if self.peer else " " * 21
        return f"{self.job:52} {self.seconds * 1e3:10.2f}  {self.peer:34} {beside}"


def find_best_time(job: Callable[[], Any], runs: int) -> float:
    """The least time of several runs: what the job takes when nothing else gets in its way."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def sample_lists(n_users: int, n_items: int, n_rows: int) -> tuple[RankedLists, Any]:
    """Lists of ten and test items, both with a long tail."""
    rng = np.random.default_rng(0)
    shelves = (n_items // K * rng.random((n_users, K)) ** 3).astype(np.int32)
    items = shelves * K + rng.permutation(K).astype(np.int32)  # no item twice in a list
    scores = np.broadcast_to(-np.arange(K, dtype=np.float32), items.shape).copy()
    users = rng.integers(0, n_users, n_rows)
    test_items = (n_items * rng.random(n_rows) ** 2).astype(np.int32)
    shape = (n_users, n_items)
    relevant = csr_array((np.ones(n_rows, np.float32), (users, test_items)), shape=shape)
    relevant.sum_duplicates()
    return RankedLists(items, scores), relevant


def make_evidence(lists: RankedLists, relevant: Any) -> Evidence:
    n_users, n_items = relevant.shape
    ids = Vocabulary(np.arange(n_users).astype(str).astype(object))
    labels = Attributes(ids, pd.DataFrame(index=range(n_users)), "query")
    queries = Queries(ids, labels, np.arange(n_users, dtype=np.int32))
    catalogue = Vocabulary(np.arange(n_items).astype(str).astype(object))
    candidates = np.ones(n_items, dtype=bool)
    return Evidence(
        queries=queries, item_ids=catalogue, lists=lists, relevant=relevant, candidates=candidates
    )


def measure_means(evidence: Evidence) -> list[float]:
    """The means of the four metrics, from the arrays: hits are looked up anew."""
    for name in ("hits", "n_relevant", "in_catalogue"):
        vars(evidence).pop(name, None)
    return [metric.measure(evidence)[0].value for metric in METRICS]


def time_evaluation(n_users: int, n_items: int, n_rows: int, *, peers: bool) -> list[Row]:
    lists, relevant = sample_lists(n_users, n_items, n_rows)
    evidence = make_evidence(lists, relevant)
    job = f"nDCG, MRR, MAP, HR of {n_users:,} users"
    ours = find_best_time(lambda: measure_means(evidence), 9)
    if not peers:
        return [Row(job, ours)]
    return [
        time_ir_measures(job, ours, evidence),
        *time_lenskit(job, ours, evidence),
    ]


def make_frames(evidence: Evidence) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Test items and lists as tables of text, which is what the peers take."""
    relevant: Any = evidence.relevant
    users = np.repeat(np.arange(relevant.shape[0]), np.diff(relevant.indptr))
    truth = pd.DataFrame({"user": users.astype(str), "item": relevant.indices.astype(str)})
    items = evidence.ranked.items
    run = pd.DataFrame(
        {
            "user": np.repeat(np.arange(len(items)), K).astype(str),
            "item": items.ravel().astype(str),
            "score": np.tile(-np.arange(K, dtype=float), len(items)),
        }
    )
    return truth, run


def time_ir_measures(job: str, ours: float, evidence: Evidence) -> Row:
    import ir_measures
    from ir_measures import AP, RR, Success, nDCG

    truth, run = make_frames(evidence)
    names = {"user": "query_id", "item": "doc_id"}
    qrels = truth.rename(columns=names).assign(relevance=1)
    scored = run.rename(columns=names)
    measures = [nDCG @ K, RR @ K, AP @ K, Success @ K]
    evaluator = ir_measures.evaluator(measures, qrels)  # the test items are read once, not timed
    theirs = evaluator.calc_aggregate(scored)
    values = np.array(measure_means(evidence))[[0, 1, 3]]
    if not np.allclose(
        [theirs[measures[0]], theirs[measures[1]], theirs[measures[3]]], values, rtol=1e-9
    ):
        raise SystemExit(f"ir-measures says {theirs}, we say {values}")
    peer = find_best_time(lambda: evaluator.calc_aggregate(scored), 3)
    return Row(job, ours, "ir-measures (pytrec_eval)", peer)


def time_lenskit(job: str, ours: float, evidence: Evidence) -> list[Row]:
    from lenskit.data import ItemList, ItemListCollection
    from lenskit.metrics import NDCG as LKNDCG
    from lenskit.metrics import Hit, RecipRank, RunAnalysis
    from lenskit.metrics.ranking import AveragePrecision

    truth, run = make_frames(evidence)

    def collect_lists(table: pd.DataFrame) -> ItemListCollection[Any]:
        lists: Any = ItemListCollection.empty(["user_id"])
        for user, part in table.groupby("user", sort=False):
            lists.add(ItemList(item_ids=part["item"].to_numpy(), ordered=True), user_id=user)
        return lists

    start = time.perf_counter()
    recommended, tested = collect_lists(run), collect_lists(truth)
    build = time.perf_counter() - start
    analysis = RunAnalysis(LKNDCG(K), RecipRank(K), AveragePrecision(K), Hit(K))
    peer = find_best_time(lambda: analysis.measure(recommended, tested), 1)
    return [
        Row(job, ours, "LensKit RunAnalysis.measure", peer),
        Row(job, ours, "LensKit, its lists built too", peer + build),
    ]


def time_coverage(n_users: int, n_items: int, metrics: Sequence[Any], runs: int) -> list[Row]:
    lists, relevant = sample_lists(n_users, n_items, 1000)
    evidence = make_evidence(lists, relevant)
    rows = []
    for metric in metrics:
        job = f"{type(metric).__name__} of {n_users:,} users, 1,000 samples"
        ours = find_best_time(lambda metric=metric: metric.measure(evidence), runs)  # type: ignore[misc]
        rows.append(Row(job, ours))
    return rows


def time_paired_tests() -> list[Row]:
    from scipy import stats

    rng = np.random.default_rng(0)
    taste = rng.normal(0, 0.3, 6000)
    values = [np.clip(rng.normal(0.2, 0.2, (19, 6000)) + taste, 0, 1) for _ in range(4)]
    a, b = np.triu_indices(19, 1)

    def run_ours(test: Any, metric_values: Sequence[Any] = values) -> list[Any]:
        return [
            test.pairs(system_values, np.random.default_rng(0)) for system_values in metric_values
        ]

    def run_scipy_pair_by_pair() -> list[float]:
        pairs = zip(a, b, strict=True)
        return [
            stats.ttest_rel(system_values[i], system_values[j]).pvalue
            for i, j in pairs
            for system_values in values
        ]

    def run_scipy_at_once() -> list[Any]:
        return [
            stats.ttest_rel(system_values[a], system_values[b], axis=1).pvalue
            for system_values in values
        ]

    def run_wilcoxon() -> Any:
        wilcoxon: Any = stats.wilcoxon  # its stubs do not know all of its methods
        system_values = values[0]
        return wilcoxon(
            system_values[a], system_values[b], axis=1, correction=False, method="asymptotic"
        ).pvalue

    for columns, expected in zip(run_ours(PairedT()), run_scipy_at_once(), strict=True):
        np.testing.assert_allclose(columns["p"], expected, rtol=1e-10)
    np.testing.assert_allclose(run_ours(Wilcoxon())[0]["p"], run_wilcoxon(), rtol=1e-9)
    t = find_best_time(lambda: run_ours(PairedT()), 15)
    job = "paired_t, 171 pairs x 4 metrics x 6,000 users"
    return [
        Row(job, t, "scipy ttest_rel, axis=1", find_best_time(run_scipy_at_once, 3)),
        Row(job, t, "scipy ttest_rel, one by one", find_best_time(run_scipy_pair_by_pair, 3)),
        Row(
            "the same as rows of significance.csv",
            find_best_time(lambda: compare_systems(values), 5),
        ),
        Row(
            "wilcoxon, 171 pairs x 6,000 users",
            find_best_time(lambda: run_ours(Wilcoxon(), values[:1]), 3),
            "scipy wilcoxon, axis=1",
            find_best_time(run_wilcoxon, 3),
        ),
        Row(
            "sign_flip, 171 pairs x 6,000 users, 10,000 draws",
            find_best_time(lambda: run_ours(SignFlip(), values[:1]), 2),
        ),
    ]


def compare_systems(values: Sequence[Any]) -> pd.DataFrame:
    keys = {"dataset": "d", "seed": 1, "fold": 1, "k": K, "group": "", "target": ""}
    systems = tuple(f"model {number}" for number in range(19))
    figures = [
        SystemEstimates(
            systems,
            system_values,
            system_values.mean(axis=1),
            None,
            {**keys, "metric": str(index)},
        )
        for index, system_values in enumerate(values)
    ]
    return compare(figures, PairedT(), name="paired_t", seed=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5,949 users only")
    quick = parser.parse_args().quick
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, best of runs, ms"
    )
    print(f"{'job':52} {'ours':>10}  {'peer':34} {'peer':>11}  {'ratio':>8}")
    rows = time_evaluation(5_949, 2_810, 121_000, peers=True)
    rows += time_coverage(5_949, 2_810, (ItemCoverage(k=K), Gini(k=K), Entropy(k=K)), 5)
    rows += time_paired_tests()
    if not quick:
        rows += time_evaluation(500_000, 27_000, 9_500_000, peers=False)
        rows += time_coverage(500_000, 27_000, (ItemCoverage(k=K),), 1)
    for row in rows:
        print(row.format_line())


if __name__ == "__main__":
    main()
