"""An audit of 300,000 users x 20 items x 2 models: fresh, stored, changed a little, and peers.

    python benchmarks/large_audit.py FOLDER [--users 300000] [--lists csv|parquet|trec]

The tables of an invented shop are written to FOLDER once: 3 million interactions for training,
1.5 million for the test, a label of each user with three values, and the lists of two models.
Each job is a process of its own; the table has seconds on the clock, CPU seconds and peak memory,
the least of the rounds. ``fresh`` has an empty store and writes every report; ``stored`` is the
same again; ``metric`` has one metric more, ``format`` one report format more, ``formats`` other
report formats only. ranx and ir_measures, if they are installed, read the same lists and test
items and compute nDCG@20 for every user of both models, their part of the work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

K, N_ITEMS, N_TRAIN, N_TEST = 20, 20_000, 10, 5
MODELS = {"production": 2.0, "candidate": 2.6}
"""The models, and how much each prefers popular items."""

SPEC = """\
name: large-audit
dataset: {{name: tables, users: users.csv}}
split: {{name: given, train: train.csv, test: test.csv}}
k: 20
models:
  - {{name: lists, label: production, path: production.{lists}}}
  - {{name: lists, label: candidate, path: candidate.{lists}}}
metrics:
  - nDCG
  - log_popularity_difference
  - APLT
  - ItemCoverage
  - {{name: nDCG, by: segment, gap: groups}}
  - {{name: nDCG, by: segment, gap: difference}}
{metrics}tests: [{{name: paired_t, correction: holm}}]
report: {{formats: [{formats}]}}
"""
JOBS = {
    "fresh": ("", "html, md, json"),
    "stored": ("", "html, md, json"),
    "metric": ("  - Recall\n", "html, md, json"),
    "format": ("", "html, md, json, latex"),
    "formats": ("", "md, latex"),
}
RANX = """\
import sys, pandas as pd
from ranx import Qrels, Run, evaluate
folder, lists = sys.argv[1:]
def read(name):
    path = f"{folder}/{name}"
    frame = pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path)
    return frame.astype({"user_id": str, "item_id": str})
qrels = Qrels.from_df(read("test.csv").assign(score=1), "user_id", "item_id", "score")
for model in ("production", "candidate"):
    frame = read(f"{model}.{lists}").assign(score=lambda rows: 1.0 / rows["rank"])
    run = Run.from_df(frame, "user_id", "item_id", "score")
    print(evaluate(qrels, run, "ndcg@20", make_comparable=True))
"""
IR_MEASURES = """\
import sys, pandas as pd, ir_measures
folder, lists = sys.argv[1:]
def read(name):
    path = f"{folder}/{name}"
    frame = pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path)
    frame = frame.astype({"user_id": str, "item_id": str})
    return frame.rename(columns={"user_id": "query_id", "item_id": "doc_id"})
evaluator = ir_measures.evaluator([ir_measures.nDCG@20], read("test.csv").assign(relevance=1))
for model in ("production", "candidate"):
    frame = read(f"{model}.{lists}").assign(score=lambda rows: 1.0 / rows["rank"])
    values = [value.value for value in evaluator.iter_calc(frame)]
    print(sum(values) / len(values))
"""


def draw_items(n_users: int, n: int, power: float, rng: np.random.Generator) -> np.ndarray:
    """Return different items of each user, popular ones more often."""
    shelves = (N_ITEMS // n * rng.random((n_users, n)) ** power).astype(np.int64)
    items: np.ndarray = shelves * n + rng.permuted(np.tile(np.arange(n), (n_users, 1)), axis=1)
    return items


def write_table(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Write a table as CSV, as Parquet or, of lists, in the form of TREC."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
    elif path.suffix == ".trec":
        user, item, rank = columns.values()
        words = {"q": user, "0": np.full(user.size, "Q0"), "d": item, "r": rank}
        table = pa.table({**words, "s": 1 / rank, "t": np.full(user.size, path.stem)})
        options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
        csv.write_csv(table, path, options)
    else:
        csv.write_csv(pa.table(columns), path)


def write_inputs(folder: Path, n_users: int, lists: str) -> None:
    """Write the tables that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    bought = draw_items(n_users, N_TRAIN + N_TEST, 2.3, rng)
    users = np.arange(1, n_users + 1)
    for name, part in (("train", bought[:, :N_TRAIN]), ("test", bought[:, N_TRAIN:])):
        if not (path := folder / f"{name}.csv").exists():
            columns = {"user_id": users.repeat(part.shape[1]), "item_id": part.ravel()}
            write_table(path, columns)
    segments = rng.choice(["new", "regular", "loyal"], n_users, p=[0.2, 0.5, 0.3])
    pd.DataFrame({"user_id": users, "segment": segments}).to_csv(folder / "users.csv", index=False)
    for model, power in MODELS.items():
        items = draw_items(n_users, 2 * K, power, rng)
        known = (items[:, :, None] == bought[:, None, :N_TRAIN]).any(axis=2)
        order = np.argsort(known, axis=1, kind="stable")[:, :K]
        items = np.take_along_axis(items, order, axis=1)
        columns = {"user_id": users.repeat(K), "item_id": items.ravel()}
        if not (path := folder / f"{model}.{lists}").exists():
            write_table(path, {**columns, "rank": np.tile(np.arange(1, K + 1), n_users)})


def measure(command: Sequence[str], folder: Path) -> tuple[float, float, float]:
    """Return the seconds, the CPU seconds and the peak memory in MB of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    message = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} exits with {process.returncode}: {message.decode()[-3000:]}")
    seconds = time.perf_counter() - start
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def run_audits(folder: Path, lists: str) -> dict[str, tuple[float, float, float]]:
    """Return what each job of recbias takes, one after the other, with an empty store."""
    results = {}
    with tempfile.TemporaryDirectory(dir=folder) as out:
        for name, (metrics, formats) in JOBS.items():
            spec = folder / "audit.yaml"
            spec.write_text(SPEC.format(lists=lists, metrics=metrics, formats=formats))
            command = (sys.executable, "-m", "recbias", "run", spec.name, "--out", out, "--quiet")
            results[name] = measure(command, folder)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--users", type=int, default=300_000)
    parser.add_argument("--lists", choices=("csv", "parquet", "trec"), default="csv")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    arguments = options.folder, options.users, options.lists
    writer = get_context("spawn").Process(target=write_inputs, args=arguments)
    writer.start()  # a process of its own: the peak of a command begins with that of its parent
    writer.join()
    folder = options.folder.resolve()
    rounds = []
    for _ in range(options.rounds):
        measured = run_audits(folder, options.lists)
        for name, script in (("ranx", RANX), ("ir_measures", IR_MEASURES)):
            if find_spec(name) and options.lists != "trec" and not options.no_peers:
                words = (sys.executable, "-c", script, str(folder), options.lists)
                measured[f"nDCG by {name}"] = measure(words, folder)
        rounds.append(measured)
    least = {
        name: [min(column) for column in zip(*(each[name] for each in rounds), strict=True)]
        for name in rounds[0]
    }
    print(f"{'job':22} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'of fresh':>8}")
    for name, (seconds, cpu, peak) in least.items():
        print(f"{name:22} {seconds:8.1f} {cpu:8.1f} {peak:8.0f} {cpu / least['fresh'][1]:8.2f}")


if __name__ == "__main__":
    main()
