"""How long files take to load, as a ratio to what pyarrow and polars take to parse them only.

``load`` is ours from the file to codes, values and times, checked; ``parse`` is ours from the file
to columns of numbers, checked, and theirs likewise (polars reads only the
columns that are needed).
Each round runs every reader once, in turn; the best of the rounds is shown.

    python benchmarks/loading.py [--data DIR] [--rounds 15]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import csv as arrow_csv

from recbias.data.books_yelp import Goodbooks10K
from recbias.data.movielens import MovieLens1M
from recbias.formats.delimited import Layout, read_table
from recbias.formats.identifiers import encode


def load(path: Path, layout: Layout) -> None:
    rows = read_table(path, layout)
    user, item, *rest = layout.columns
    encode(rows[user])
    encode(rows[item])
    for name in rest:
        rows.numbers(name)


def read_by_arrow(path: Path, delimiter: str) -> None:
    header = arrow_csv.ReadOptions(autogenerate_column_names=delimiter == ":")
    arrow_csv.read_csv(path, header, arrow_csv.ParseOptions(delimiter=delimiter))


def read_by_polars(path: Path, delimiter: str) -> None:
    columns = [0, 2, 4, 6] if delimiter == ":" else None
    pl.read_csv(path, separator=delimiter, has_header=delimiter != ":", columns=columns)


def compare(file_name: str, readers: Mapping[str, Callable[[], object]], rounds: int) -> None:
    best = dict.fromkeys(readers, np.inf)
    for _ in range(rounds):
        for name, read in readers.items():
            began = time.perf_counter()
            read()
            best[name] = min(best[name], time.perf_counter() - began)
    print(f"{file_name}: load {best['load'] * 1e3:.0f} ms, parse {best['parse'] * 1e3:.0f} ms")
    for name in ("pyarrow", "polars"):
        load, parse = best["load"] / best[name], best["parse"] / best[name]
        took = f"{best[name] * 1e3:.0f} ms"
        print(f"  {name} {took}: load / {name} = {load:.2f}, parse / {name} = {parse:.2f}")


def write_with_times(path: Path, into: Path) -> Path:
    """Put real-looking timestamps where they stand as 0, so that the file has its full size."""
    text = path.read_bytes()
    target = into / "ratings.dat"
    target.write_bytes(text.replace(b"::0\n", b"::978300760\n"))
    return target


def write_ratings_like_goodbooks(into: Path) -> Path:
    rng = np.random.default_rng(1)
    n = 5_976_479
    columns = {
        "user_id": rng.integers(1, 53_425, n),
        "book_id": rng.integers(1, 10_001, n),
        "rating": rng.integers(1, 6, n),
    }
    plain = arrow_csv.WriteOptions(quoting_style="none")
    arrow_csv.write_csv(pa.table(columns), into / "ratings.csv", plain)
    return into / "ratings.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RECBIAS_DATA", "data")))
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if not (arguments.data / "ml-1m" / "ratings.dat").is_file():
        print("loading: skipped, set RECBIAS_DATA to a folder that holds ml-1m/")
        return
    with tempfile.TemporaryDirectory() as folder:
        files = [
            (
                write_with_times(arguments.data / "ml-1m" / "ratings.dat", Path(folder)),
                MovieLens1M().read_tables()["interactions"].layout,
            ),
            (
                write_ratings_like_goodbooks(Path(folder)),
                Goodbooks10K().read_tables()["interactions"].layout,
            ),
        ]
        for path, layout in files:
            mark = layout.delimiter[0]
            readers = {
                "load": lambda path=path, layout=layout: load(path, layout),
                "parse": lambda path=path, layout=layout: read_table(path, layout),
                "pyarrow": lambda path=path, mark=mark: read_by_arrow(path, mark),
                "polars": lambda path=path, mark=mark: read_by_polars(path, mark),
            }
            compare(path.name, readers, arguments.rounds)


if __name__ == "__main__":
    main()
