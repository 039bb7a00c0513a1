"""All of Goodreads: generate interactions of its shape, and run a spec on them end to end.

The file ``goodreads_interactions.csv`` has the columns of the published one: ``user_id``,
``book_id``, ``is_read``, ``rating`` and ``is_reviewed``, and at ``--share 1`` its counts:
228,648,342 shelved books of 876,145 users and 2,360,650 books. The number of books of a user is
log-normal; books are drawn by the inverse of the distribution P(rank) ~ (rank + SHIFT)^-EXPONENT,
so that the most shelved one is on the shelves of about 40 % of the users and about half of the
books have less than ten readers. A smaller share has fewer users, books and rows.

The spec loads the file, takes the 10-core, holds out a fifth, trains five models, writes lists for
100,000 users (or all, if there are fewer), measures them and compares the models by paired tests.
Wall and CPU seconds and the peak memory of each stage are printed. Reads and writes need the disk
space of twice the file.

    python benchmarks/goodreads.py --share 0.01 [--folder DIR] [--models Random,MostPop]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import recbias
from recbias import api
from recbias.core.dataset import AnyArray
from recbias.core.errors import UserError

USERS, BOOKS, ROWS = 876_145, 2_360_650, 228_648_342
SHIFT, EXPONENT = 150.0, 1.2
"""The distribution of popularity at the full size; the shift shrinks with the share."""

SPREAD, MOST = 1.3, 0.03
"""The standard deviation of the logarithm of a user's books, and the largest share of the books
that one user shelves."""

RATINGS = np.array([0.543, 0.009, 0.026, 0.104, 0.158, 0.16])
"""The shares of the ratings 0 (none) to 5."""

REVIEWED = 0.15
"""The share of the rated books that are reviewed."""

POPULAR_ROUNDS = 3
"""A book that a user has already is drawn again by popularity so often, and then uniformly."""

BLOCK = 1_000_000
"""Rows that are drawn and written at once."""

FILE = "goodreads_interactions.csv"
MODELS: dict[str, dict[str, Any]] = {
    "Random": {},
    "MostPop": {},
    "PureSVD": {"factors": 8},
    "implicit/ALS": {"embedding_size": 8, "epochs": 3},
    "BPR-MF": {"embedding_size": 8, "epochs": 1, "patience": 0, "device": "cpu"},
    "ItemKNN": {"neighbors": 20},
}
"""The models that can be chosen, with their settings; the first five are the default."""


def draw_activity(rng: np.random.Generator, n_users: int, n_rows: int, most: int) -> AnyArray:
    """Return the number of books of each user, ``int64[n_users]``, which sum to ``n_rows``."""
    weights = rng.lognormal(0.0, SPREAD, n_users)
    counts = np.minimum(1 + weights / weights.sum() * (n_rows - n_users), most).astype(np.int64)
    while missing := n_rows - int(counts.sum()):
        np.add.at(counts, rng.integers(0, n_users, missing), 1)
    return counts


def draw_books(rng: np.random.Generator, n: int, n_books: int, shift: float) -> AnyArray:
    """Return ``n`` ranks of books by the inverse of the distribution function, ``int64[n]``."""
    power = 1.0 - EXPONENT
    low, high = shift**power, (n_books + shift) ** power
    ranks = (low + rng.random(n) * (high - low)) ** (1.0 / power) - shift
    return np.minimum(ranks.astype(np.int64), n_books - 1)


def draw_pairs(
    rng: np.random.Generator, counts: AnyArray, n_books: int, shift: float
) -> tuple[AnyArray, AnyArray]:
    """Return distinct (user, rank) pairs, so many for each user, by user and rank."""
    users = np.arange(counts.size, dtype=np.int64)
    pairs, missing, n_rounds = np.empty(0, dtype=np.int64), counts, 0
    while n_missing := int(missing.sum()):
        ranks = (
            draw_books(rng, n_missing, n_books, shift)
            if n_rounds < POPULAR_ROUNDS
            else rng.integers(0, n_books, n_missing)
        )
        drawn = np.unique(np.repeat(users, missing) * n_books + ranks)
        is_new = np.ones(drawn.size, dtype=bool)
        if pairs.size:
            places = np.minimum(np.searchsorted(pairs, drawn), pairs.size - 1)
            is_new = pairs[places] != drawn
        pairs = np.sort(np.concatenate([pairs, drawn[is_new]]), kind="stable")
        missing = counts - np.bincount(pairs // n_books, minlength=counts.size)
        n_rounds += 1
    return pairs // n_books, pairs % n_books


def iterate_tables(rng: np.random.Generator, share: float) -> Iterator[Any]:
    """Yield the rows in blocks of whole users, as Arrow tables."""
    n_users, n_books, n_rows = (round(share * n) for n in (USERS, BOOKS, ROWS))
    counts = draw_activity(rng, n_users, n_rows, max(1, round(MOST * n_books)))
    book_ids = rng.permutation(n_books)  # the identifiers do not tell the popularity
    starts = np.searchsorted(np.cumsum(counts), np.arange(0, n_rows, BLOCK))
    bounds = np.unique(np.append(starts, n_users))
    for first, last in pairwise(bounds):
        users, ranks = draw_pairs(rng, counts[first:last], n_books, SHIFT * share)
        ratings = rng.choice(RATINGS.size, users.size, p=RATINGS / RATINGS.sum())
        is_rated = ratings > 0
        yield pa.table(
            {
                "user_id": (users + first).astype(np.int32),
                "book_id": book_ids[ranks].astype(np.int32),
                "is_read": (is_rated | (rng.random(users.size) < 0.06)).astype(np.int8),
                "rating": ratings.astype(np.int8),
                "is_reviewed": (is_rated & (rng.random(users.size) < REVIEWED)).astype(np.int8),
            }
        )


def write_interactions(path: Path, share: float, seed: int = 1) -> None:
    """Write the file; the same share and seed give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial, writer = path.with_suffix(".part"), None
    for table in iterate_tables(np.random.default_rng(seed), share):
        if writer is None:
            plain = csv.WriteOptions(quoting_style="none")
            writer = csv.CSVWriter(partial, table.schema, write_options=plain)
        writer.write_table(table)
    if writer is not None:
        writer.close()
        partial.rename(path)


def make_spec(path: Path, models: list[str], queries: int) -> dict[str, Any]:
    """Return the spec that is run."""
    return {
        "name": "goodreads",
        "seed": 1,
        "dataset": {
            "name": "tables",
            "interactions": str(path),
            "columns": {"book_id": "item_id"},
            "filters": [{"name": "k_core", "k": 10}],
        },
        "split": {"name": "random", "test": 0.2},
        "queries": {"name": "users", "sample": queries},
        "k": 10,
        "models": [{"name": name, **MODELS[name]} for name in models],
        "metrics": ["nDCG", "HR", "item_coverage", "log_popularity_difference"],
        "tests": ["paired_t"],
        "report": {"formats": ["csv", "json"]},
    }


def print_costs(manifest: dict[str, Any]) -> None:
    """Print what each stage took."""
    print("\n| stage | wall, s | peak, MB |\n|---|--:|--:|")
    for stage in manifest["stages"]:
        peak = stage["peak_memory_mb"] or 0.0
        print(f"| {stage['stage']} | {stage['seconds']:.1f} | {peak:,.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--folder", type=Path, help="where the data are written, and stay")
    parser.add_argument("--models", default=",".join([*MODELS][:5]))
    parser.add_argument("--queries", type=int, default=100_000)
    arguments = parser.parse_args()
    models, share = arguments.models.split(","), arguments.share
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)) / f"{share:g}"
        path, began = folder / FILE, time.perf_counter()
        if not path.exists():
            write_interactions(path, share)
        size, seconds = path.stat().st_size / 2**20, time.perf_counter() - began
        print(f"share {share:g}: {size:,.0f} MB written in {seconds:.0f} s", flush=True)
        spec = make_spec(path, models, min(arguments.queries, round(share * USERS / 2)))
        try:
            api.plan(spec, out=folder / "results", data=folder)
        except UserError as error:  # a model whose package is absent, say
            print(f"skipped: {error}")
            return
        began, cpu_began = time.perf_counter(), time.process_time()
        run = recbias.run(spec, out=folder / "results", data=folder, fresh=True)
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        manifest = json.loads((run.folder / "manifest.json").read_text(encoding="utf-8"))
        print_costs(manifest)
        print(f"| whole run | {wall:.1f} | {cpu:.1f} | {manifest['peak_memory_mb']:,.0f} |")
        print(run.metrics[["model", "metric", "value", "n"]].to_string())


if __name__ == "__main__":
    main()
