"""Accuracy and CPU seconds an epoch of the sequential models and LightGCN, beside RecTools.

    python benchmarks/sequential.py                          # ours on MovieLens-100K
    python benchmarks/sequential.py SASRec LightGCN          # some of them
    python benchmarks/sequential.py SASRec --ours '{"negatives": 512}'
    python benchmarks/sequential.py --peers --seeds 2        # beside RecTools
    python benchmarks/sequential.py GRU4Rec --peers --seeds 3 --last 40 --items 512 --epochs 6

MovieLens-100K: the last interaction of each user by time is the test item. With ``--peers``
LightGCN is trained on MovieLens-1M (ratings of 4 and 5, 10-core, a random fifth of each user's
rows held out), whose published copy may have no times. All items with a training row that the user
does not have are ranked, and all lists are evaluated by the code below. The numbers of epochs are
stated, not chosen by accuracy.

RecTools runs in the Python that ``RECTOOLS_PYTHON`` names. Vectors, layers, heads, dropout,
learning rate, epochs and the longest history are alike. A step reads ``--items`` / ``LENGTH``
windows of a history; RecTools trains on the last window of a user only. The rows of RecBole in
``docs/evidence`` are of its own training loop on the same split, with as many items of a step.

``--last`` keeps the last training rows of each user, so that a contest is shorter. A row below the
tools is the paired difference of ours and RecTools': the mean and the standard error over the test
users of the means of the seeds. ``--ours`` has further settings of ours as JSON. ``--store``
names a folder for the lists, from which a repeated call continues; it does not know the code that
made them.

``RECBIAS_DATA`` names the folder with the data. One thread: set ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Queries, Split
from recbias.data.filters_queries import KCore, Threshold
from recbias.data.movielens import MovieLens1M, MovieLens100K
from recbias.data.splits import LeaveOneOut, RandomHoldout
from recbias.registry import REGISTRIES

K, SEED = 10, 0
LENGTH, ITEMS = 20, 2048
"""The longest history, and the predicted items of a step."""

MODELS: dict[str, dict[str, Any]] = {
    "MostPop": {},
    "EASE": {},
    "LightGCN": {"epochs": 15, "learning_rate": 0.005},
    "SASRec": {"epochs": 20},
    "GRU4Rec": {"epochs": 20},
    "BERT4Rec": {"epochs": 60},
}
"""The settings that differ from the defaults, without peers."""


@dataclass(frozen=True)
class Contest:
    """A model of ours and the same of RecTools.

    Args:
        ours: Our settings.
        rectools: The class of RecTools with its settings; blank if it has none.
    """

    ours: dict[str, Any]
    rectools: tuple[str, dict[str, Any]] = ("", {})


@dataclass(frozen=True)
class Size:
    """The size of a contest.

    Args:
        epochs: Number of epochs.
        items: Number of predicted items of a step.
        last: Number of last training rows that are kept for each user; 0 for all.
        store: The folder of the lists, or none.
        ours: Further settings of ours.
    """

    epochs: int
    items: int = ITEMS
    last: int = 0
    store: Path | None = None
    ours: dict[str, Any] = field(default_factory=dict)

    @property
    def windows(self) -> int:
        """The windows of a step of ours and of RecTools'."""
        return self.items // LENGTH


RECTOOLS = {
    "n_factors": 64,
    "n_blocks": 2,
    "dropout_rate": 0.2,
    "session_max_len": LENGTH,
    "lr": 0.001,
    "loss": "softmax",
    "deterministic": True,
    "recommend_torch_device": "cpu",
}
WINDOW = {"max_length": LENGTH}

CONTESTS = {
    "SASRec": Contest(WINDOW, ("SASRecModel", {"n_heads": 1})),
    "GRU4Rec": Contest(WINDOW),
    "BERT4Rec": Contest(WINDOW, ("BERT4RecModel", {"n_heads": 2, "mask_prob": 0.2})),
    "LightGCN": Contest({"batch_size": 16_384, "learning_rate": 0.005}),
}


def load_last_out(last: int = 0) -> Split:
    """Return MovieLens-100K, the last interaction of each user as the test part.

    Of the others the ``last`` of each user are the training part, all if 0.
    """
    rng = np.random.default_rng(SEED)
    dataset = MovieLens100K().load(Path(os.environ["RECBIAS_DATA"]), rng)
    split = LeaveOneOut().split(dataset, 0, rng)
    assert split.train.times is not None
    order = np.lexsort((split.train.times, split.train.users))[::-1]
    counts = split.train.user_counts()[::-1]
    ranks = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.ones(order.size, dtype=bool)
    kept[order[ranks >= (last or order.size)]] = False
    return replace(split, train=split.train.take(kept))


def load_holdout() -> Split:
    """Return MovieLens-1M, a random fifth of each user's rows as the test part."""
    rng = np.random.default_rng(SEED)
    dataset = MovieLens1M().load(Path(os.environ["RECBIAS_DATA"]), rng)
    for data_filter in (Threshold(at_least=4), KCore(k=10)):
        dataset = data_filter.apply(dataset, rng)
    return RandomHoldout(test=0.2).split(dataset, 0, rng)


def evaluate(items: np.ndarray, split: Split) -> np.ndarray:
    """Return the hits and the nDCG of lists of all users with test rows, ``(2, n)``."""
    assert split.test is not None
    counts = split.test.user_counts()
    keys = split.test.users.astype(np.int64) * split.test.n_items + split.test.items
    users = np.arange(len(items))[:, None]
    hits: np.ndarray = np.logical_and(
        np.isin(users * split.test.n_items + items, keys), items >= 0
    )
    discounts = 1 / np.log2(np.arange(K) + 2)
    ideal = np.append(0, np.cumsum(discounts))[np.minimum(counts, K)]
    tested = np.flatnonzero(counts)
    return np.stack([hits[tested].any(axis=1), (hits @ discounts)[tested] / ideal[tested]])


def run_model(model: Any, split: Split, seed: int) -> tuple[np.ndarray, float]:
    """Return the lists of all users, and the CPU seconds an epoch of this process."""
    data = split.training_data()
    ids = data.train.user_ids
    labels = Attributes(ids, pd.DataFrame(index=range(len(ids))), "query")
    queries = Queries(ids, labels, np.arange(len(ids), dtype=np.int32))
    with collect_warnings():
        start = time.process_time()
        fitted = model.fit(data, np.random.default_rng(seed))
        seconds = (time.process_time() - start) / getattr(model, "epochs", 1)
        return fitted.recommend(queries, K, data).items, seconds


def run_ours(name: str, settings: dict[str, Any], split: Split, seed: int) -> tuple[Any, float]:
    trained = {"device": "cpu", "patience": 0} if "epochs" in settings else {}
    return run_model(REGISTRIES["models"].load(name)(**settings, **trained), split, seed)


def run_rectools(name: str, size: Size, split: Split, seed: int) -> tuple[Any, float]:
    kind, settings = CONTESTS[name].rectools
    train = split.train
    settings = RECTOOLS | settings | {"epochs": size.epochs, "batch_size": size.windows}
    request = {"model": kind, "settings": settings, "seed": seed, "k": K}
    script = Path(__file__).with_name("sequential_rectools.py")
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        np.savez(folder / "rows.npz", users=train.users, items=train.items, times=train.times)
        command = [os.environ["RECTOOLS_PYTHON"], str(script), name_of_folder]
        environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
        subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
        with np.load(folder / "lists.npz") as lists:
            return lists["items"], json.loads((folder / "seconds.json").read_text("utf-8"))


def print_row(
    cells: list[str], run: Callable[[int], tuple[Any, float]], split: Split, n: int
) -> np.ndarray:
    """Print the mean of n seeds: seconds an epoch, hit rate, and nDCG with its range.

    Returns:
        The hits and nDCG of the users, means of the seeds, ``(2, n_users)``.
    """
    seconds, values = [], []
    for seed in range(n):
        items, spent = run(seed)
        seconds.append(spent)
        values.append(evaluate(items, split))
    hit_rate, ndcg = np.mean(values, axis=(0, 2))
    means = [value[1].mean() for value in values]
    spread = f" ({min(means):.4f} to {max(means):.4f})" if n > 1 else ""
    cells = [*cells, f"{np.mean(seconds):.2f}", f"{hit_rate:.4f}", f"{ndcg:.4f}{spread}"]
    print(f"| {' | '.join(cells)} |", flush=True)
    means_of_users: np.ndarray = np.mean(values, axis=0)
    return means_of_users


def print_difference(cells: list[str], ours: np.ndarray, others: np.ndarray) -> None:
    """Print the mean paired difference of the users with its standard error."""
    differences = ours - others
    errors = differences.std(axis=1, ddof=1) / np.sqrt(differences.shape[1])
    pairs = zip(differences.mean(axis=1), errors, strict=True)
    written = [f"{mean:+.4f} ± {error:.4f}" for mean, error in pairs]
    print(f"| {' | '.join([*cells, '', *written])} |", flush=True)


def list_tools(name: str) -> list[str]:
    """Return ours, and RecTools if it has the model and its Python is named."""
    has_peer = CONTESTS[name].rectools[0] and os.environ.get("RECTOOLS_PYTHON")
    return ["recbias", "RecTools"] if has_peer else ["recbias"]


def run_tool(tool: str, name: str, size: Size, split: Split, seed: int) -> tuple[Any, float]:
    """Return the lists of a model of a tool, and its CPU seconds an epoch."""
    parts = [tool, name, size.epochs, size.items, size.last, seed]
    if tool == "recbias":
        parts += [f"{key}={value}" for key, value in size.ours.items()]
    stem = f"{'-'.join(map(str, parts))}.npz"
    if size.store and (size.store / stem).exists():
        with np.load(size.store / stem) as stored:
            return stored["items"], float(stored["seconds"])
    if tool == "recbias":
        settings = {"batch_size": size.windows} | CONTESTS[name].ours | {"epochs": size.epochs}
        settings |= size.ours
        items, seconds = run_ours(name, settings, split, seed)
    else:
        items, seconds = run_rectools(name, size, split, seed)
    if size.store:
        size.store.mkdir(exist_ok=True)
        np.savez(size.store / stem, items=items, seconds=seconds)
    return items, seconds


def compare_peers(names: list[str], tools: list[str], size: Size, n: int) -> None:
    """Print our models beside those of RecTools."""
    print(f"| model | tool | CPU s an epoch | HR@{K} | nDCG@{K} |\n|---|---|--:|--:|--:|")
    for name in names:
        split = load_holdout() if name == "LightGCN" else load_last_out(size.last)
        chosen = [tool for tool in list_tools(name) if not tools or tool in tools]
        rows = {}
        for tool in chosen:
            rows[tool] = print_row(
                [name, tool], partial(run_tool, tool, name, size, split), split, n
            )
        for tool in chosen:
            if tool != "recbias" and "recbias" in rows:
                print_difference([name, f"recbias - {tool}"], rows["recbias"], rows[tool])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="models; by default all")
    parser.add_argument("--peers", action="store_true", help="beside RecTools")
    parser.add_argument("--tools", nargs="*", default=[], help="with --peers: only these")
    parser.add_argument("--epochs", type=int, default=10, help="with --peers")
    parser.add_argument("--items", type=int, default=ITEMS, help="with --peers: those of a step")
    parser.add_argument("--last", type=int, default=0, help="with --peers: rows of a user; 0: all")
    parser.add_argument("--store", type=Path, help="with --peers: folder of the lists")
    parser.add_argument("--ours", type=json.loads, default={}, help="settings of ours")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, from 0")
    options = parser.parse_args()
    if options.peers:
        names = options.names or list(CONTESTS)
        size = Size(options.epochs, options.items, options.last, options.store, options.ours)
        compare_peers(names, options.tools, size, options.seeds)
        return
    split = load_last_out()
    print(f"| model | settings | CPU s an epoch | HR@{K} | nDCG@{K} |\n|---|---|--:|--:|--:|")
    for name in options.names or MODELS:
        settings = MODELS[name] | options.ours
        written = ", ".join(f"{key} {value}" for key, value in settings.items())
        print_row([name, written], partial(run_ours, name, settings, split), split, options.seeds)


if __name__ == "__main__":
    main()
