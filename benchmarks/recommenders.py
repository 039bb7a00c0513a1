"""Recommenders on MovieLens 1M, each beside a named library or plain code in the same process.

    RECBIAS_DATA=/path/to/data python benchmarks/recommenders.py          # about a minute
    RECBIAS_DATA=/path/to/data python benchmarks/recommenders.py --slim   # SLIM too: minutes

The split is that of the tests: ratings of 4 and 5, 10-core, a random fifth of each user's held
out. A job is to fit and to make the top-10 lists of all users. Ours and the peer's runs take
turns, and the least time of each is shown; ``ratio`` is the peer's time over ours. nDCG@10 is
binary, with the ideal over min(n_test, 10), and shows whether the two do the same work: implicit
keeps the neighbours of the history item, and plain code and ours those of the scored item.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes, Queries, Split
from recbias.data.filters_queries import KCore, Threshold
from recbias.data.movielens import MovieLens1M
from recbias.data.splits import RandomHoldout
from recbias.models.baselines import MostPop, Random
from recbias.models.knn import ItemKNN, UserKNN
from recbias.models.linear import EASE, SLIM, PureSVD

K = 10
RUNS = 5


@dataclass(frozen=True)
class Job:
    """Our model, and what it is held against: both return items, (n_users, K)."""

    model: Any
    peer: str = ""
    theirs: Callable[[Any], Any] | None = None


def load_movielens(folder: Path) -> Split:
    rng = np.random.default_rng(42)
    dataset = MovieLens1M().load(folder, rng)
    for data_filter in (Threshold(at_least=4), KCore(k=10)):
        dataset = data_filter.apply(dataset, rng)
    return RandomHoldout(test=0.2).split(dataset, 0, rng)


def run_ours(model: Any, split: Split) -> Any:
    """A job of ours from the matrix on, as the peers have theirs."""
    data = split.training_data()
    ids = data.train.user_ids
    labels = Attributes(ids, pd.DataFrame(index=range(len(ids))), "query")
    queries = Queries(ids, labels, np.arange(len(ids), dtype=np.int32))
    return model.fit(data, np.random.default_rng(1)).recommend(queries, K, data).items


def make_plain_lists(scores: Any, matrix: Any) -> Any:
    """The usual way: mask, argpartition, argsort."""
    scores[matrix.nonzero()] = -np.inf
    top = np.argpartition(-scores, K, axis=1)[:, :K]
    order = np.argsort(-np.take_along_axis(scores, top, 1), axis=1)
    return np.take_along_axis(top, order, 1)


def run_plain_most_popular(matrix: Any) -> Any:
    counts = np.asarray(matrix.sum(axis=0), dtype=np.float32)
    return make_plain_lists(np.tile(counts, (matrix.shape[0], 1)), matrix)


def find_plain_neighbours(dots: Any, keep: int) -> Any:
    """Cosine, the nearest of each column by argpartition, on dense matrices."""
    norms = np.sqrt(dots.diagonal())
    similar = dots / np.maximum(norms[:, None] * norms, 1e-9)
    np.fill_diagonal(similar, 0)
    nearest = np.argpartition(-similar, keep, axis=0)[:keep]
    weights = np.zeros_like(similar)
    np.put_along_axis(weights, nearest, np.take_along_axis(similar, nearest, 0), 0)
    return weights


def run_plain_item_knn(matrix: Any) -> Any:
    dense = matrix.toarray()
    return make_plain_lists(dense @ find_plain_neighbours(dense.T @ dense, 100), matrix)


def run_plain_user_knn(matrix: Any) -> Any:
    dense = matrix.toarray()
    return make_plain_lists(find_plain_neighbours(dense @ dense.T, 100).T @ dense, matrix)


def run_plain_svd(matrix: Any) -> Any:
    from scipy.sparse.linalg import svds

    left, values, right = svds(matrix, k=22, v0=np.ones(min(matrix.shape)))
    return make_plain_lists((left * values) @ right, matrix)


def run_plain_ease(matrix: Any) -> Any:
    dense = matrix.toarray()
    inverse = np.linalg.inv(dense.T @ dense + 500 * np.eye(dense.shape[1], dtype=np.float32))
    weights = inverse / -inverse.diagonal()
    np.fill_diagonal(weights, 0)
    return make_plain_lists(dense @ weights, matrix)


def run_implicit_item_knn(matrix: Any) -> Any:
    from implicit.nearest_neighbours import CosineRecommender
    from scipy.sparse import csr_matrix

    model = CosineRecommender(K=100)
    model.fit(csr_matrix(matrix), show_progress=False)
    return model.recommend(np.arange(matrix.shape[0]), csr_matrix(matrix), N=K)[0]


def run_implicit_user_knn(matrix: Any) -> Any:
    """Neighbours by implicit on the transposed matrix (it has no UserKNN), scores as usual."""
    from implicit.nearest_neighbours import CosineRecommender
    from scipy.sparse import csr_matrix

    model = CosineRecommender(K=101)  # a user is one of its own neighbours there
    model.fit(csr_matrix(matrix.T.tocsr()), show_progress=False)
    similar = model.similarity.tolil()
    similar.setdiag(0)
    return make_plain_lists((similar.tocsr() @ matrix).toarray(), matrix)


JOBS = [
    Job(Random()),
    Job(MostPop(), "numpy", run_plain_most_popular),
    Job(ItemKNN(neighbors=100), "numpy, dense", run_plain_item_knn),
    Job(ItemKNN(neighbors=100), "implicit", run_implicit_item_knn),
    Job(ItemKNN(neighbors=200)),
    Job(UserKNN(neighbors=100), "numpy, dense", run_plain_user_knn),
    Job(UserKNN(neighbors=100), "implicit, transposed", run_implicit_user_knn),
    Job(UserKNN(neighbors=291, variant="elliot")),
    Job(PureSVD(factors=22), "scipy svds, dense", run_plain_svd),
    Job(EASE(reg=500), "numpy inv, dense", run_plain_ease),
]


def compute_mean_ndcg(items: Any, split: Split) -> float:
    if split.test is None:
        raise SystemExit("the split has no test part")
    relevant = split.test.binary.toarray() > 0
    n_relevant = relevant.sum(axis=1)
    hits = np.take_along_axis(relevant, np.maximum(items, 0), 1) & (items >= 0)
    discounts = 1 / np.log2(np.arange(K) + 2)
    ideal = np.append(0, np.cumsum(discounts))[np.minimum(n_relevant, K)]
    tested = n_relevant > 0
    return float(((hits * discounts).sum(axis=1)[tested] / ideal[tested]).mean())


def time_job(job: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = job()
    return time.perf_counter() - start, result


def time_models(job: Job, split: Split) -> str:
    """One line: both sides taking turns, the least time of each."""
    matrix = split.train.binary
    mine, theirs = [], []
    for _ in range(RUNS):
        mine.append(time_job(lambda: run_ours(job.model, split)))
        if job.theirs is not None:
            theirs.append(time_job(partial(job.theirs, matrix)))
    seconds = min(run_seconds for run_seconds, _ in mine)
    name = (
        type(job.model).__name__
        + "("
        + ", ".join(
            f"{key}={value}"
            for key, value in vars(job.model).items()
            if value != vars(type(job.model)())[key] or key in {"neighbors", "factors", "reg"}
        )
        + ")"
    )
    line = f"{name:40} {seconds:8.3f} {compute_mean_ndcg(mine[-1][1], split):8.4f}"
    if not theirs:
        return line
    peer_seconds = min(run_seconds for run_seconds, _ in theirs)
    quality = compute_mean_ndcg(theirs[-1][1], split)
    return (
        f"{line}   {job.peer:22} {peer_seconds:8.3f} {quality:8.4f} {peer_seconds / seconds:7.1f}x"
    )


def time_slim(split: Split) -> str:
    """SLIM once, beside scikit-learn on a sample of the items."""
    from scipy.sparse import csc_array
    from sklearn.linear_model import ElasticNet

    model = SLIM()
    seconds, items = time_job(lambda: run_ours(model, split))
    matrix = split.train.binary.astype(np.float64)
    net = ElasticNet(
        alpha=model.alpha, l1_ratio=model.l1_ratio, positive=True, fit_intercept=False
    )
    columns = np.linspace(0, matrix.shape[1] - 1, 20).astype(int)

    def fit_sample() -> None:
        for column in columns:
            other_items = csc_array(matrix)
            target = other_items[:, [column]].toarray().ravel()
            other_items.data[other_items.indptr[column] : other_items.indptr[column + 1]] = 0
            net.fit(other_items, target)

    peer_seconds = time_job(fit_sample)[0] * matrix.shape[1] / columns.size
    line = f"{'SLIM()':40} {seconds:8.3f} {compute_mean_ndcg(items, split):8.4f}"
    ratio = peer_seconds / seconds
    return f"{line}   {'scikit-learn, by 20 items':22} {peer_seconds:8.1f} {'':8} {ratio:7.1f}x"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slim", action="store_true", help="SLIM too: minutes")
    arguments = parser.parse_args()
    folder = Path(os.environ.get("RECBIAS_DATA", ""))
    if not (folder / "ml-1m" / "ratings.dat").is_file():
        print("recommenders: skipped, set RECBIAS_DATA to a folder that holds ml-1m/")
        return
    warnings.filterwarnings("ignore", module="implicit")  # it converts a matrix of its own
    split = load_movielens(folder)
    train = split.train
    print(f"{train.n_users:,} users, {train.n_items:,} items, {len(train):,} training rows")
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, best of {RUNS}\n")
    print(
        f"{'fit + top-10':40} {'seconds':>8} {'nDCG@10':>8}   {'beside':22} {'seconds':>8} "
        f"{'nDCG@10':>8} {'ratio':>8}"
    )
    for job in JOBS:
        print(time_models(job, split), flush=True)
    if arguments.slim:
        print(time_slim(split), flush=True)


if __name__ == "__main__":
    main()
