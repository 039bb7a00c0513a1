"""How time and memory grow with the data, from 1 to 32 million interactions.

Ratings are generated in the layout of MovieLens 32M: its mean of 159 ratings a user, a log-normal
activity of at least 20, and the popularity of its 87,585 films, of which small data meet few.
Each stage runs in a process of its own on stored inputs: the seconds are those of processors, the
memory is the peak of the process. The exponent is the slope of a line through the logarithms of
the sizes and the seconds; less than 0.2 s is not counted. Loops that numba has not compiled yet on
a machine are compiled in the first process that needs them, so run it twice.

    python benchmarks/growth.py [--sizes 50000,200000] [--models ItemKNN,EASE] [--folder DIR]
    python benchmarks/growth.py --models NeuMF,DeepFM --settings epochs=1 --queries 2000

``--sizes 1000000,3200000,10000000,32000000`` takes hours on two cores. ``--settings`` are those of
every model; ``--queries`` is the number of users, drawn at random, who get lists.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from pyarrow import csv

import recbias
from recbias import api
from recbias.core.dataset import AnyArray
from recbias.core.errors import UserError
from recbias.core.machine import measure_peak_memory_mb
from recbias.runner.execute import Executor
from recbias.runner.plan import Observer

N_FILMS, RATINGS_PER_USER, LEAST_RATINGS = 87_585, 159.2, 20
SPREAD = 1.15
"""The standard deviation of the logarithm of a user's ratings beyond the least."""
DECAY, POWER = 0.2415, 0.35
"""A film of rank r has exp(-DECAY r^POWER) times the ratings of the most popular one."""
HALF_STARS = np.array([1.6, 3.1, 1.6, 6.6, 5.0, 19.6, 12.7, 26.6, 8.8, 14.4])
"""The percent of ratings of 0.5 to 5."""
MODELS = ("MostPop", "PureSVD", "ItemKNN", "UserKNN", "EASE", "SLIM")
LEAST_SECONDS = 0.2


def draw_pairs(n: int, rng: np.random.Generator) -> tuple[AnyArray, AnyArray]:
    """Return users and films, by rank, of about ``n`` ratings in ascending order."""
    n_users = max(50, round(n / RATINGS_PER_USER))
    activity = rng.lognormal(0.0, SPREAD, n_users)
    activity *= (RATINGS_PER_USER - LEAST_RATINGS) / activity.mean()
    counts = np.minimum(LEAST_RATINGS + activity, N_FILMS / 10).astype(np.int64)
    popularity = np.cumsum(np.exp(-DECAY * np.arange(1, N_FILMS + 1) ** POWER))
    pairs = np.empty(0, dtype=np.int64)
    missing = counts
    while missing.sum() > n / 100:  # a film that a user has already is drawn again
        users = np.repeat(np.arange(n_users, dtype=np.int64), missing)
        films = np.searchsorted(popularity, rng.random(users.size) * popularity[-1])
        pairs = np.unique(np.concatenate([pairs, users * N_FILMS + films]))
        missing = np.maximum(counts - np.bincount(pairs // N_FILMS, minlength=n_users), 0)
    return np.divmod(pairs, N_FILMS)


def write_ratings(folder: Path, n: int) -> None:
    """Write ``ratings.csv`` and ``movies.csv`` with about ``n`` ratings."""
    rng = np.random.default_rng(n)
    folder.mkdir(parents=True, exist_ok=True)
    users, films = draw_pairs(n, rng)
    table = {
        "userId": users + 1,
        "movieId": rng.permutation(N_FILMS)[films] + 1,
        "rating": rng.choice(np.arange(1, 11) / 2, users.size, p=HALF_STARS / HALF_STARS.sum()),
        "timestamp": 800_000_000
        + rng.integers(0, 9e8, users[-1] + 1)[users]
        + np.arange(users.size),
    }
    csv.write_csv(pa.table(table), folder / "ratings.csv", csv.WriteOptions(quoting_style="none"))
    titles = [f"Film {film} (19{film % 90 + 10})" for film in range(1, N_FILMS + 1)]
    movies = {"movieId": np.arange(1, N_FILMS + 1), "title": titles, "genres": ["Drama"] * N_FILMS}
    csv.write_csv(pa.table(movies), folder / "movies.csv")


def make_spec(models: list[dict[str, Any]], n_queries: int) -> dict[str, Any]:
    """Return the spec whose stages are measured, with lists of all users if the number is 0."""
    return {
        "name": "growth",
        "seed": 1,
        "dataset": {"name": "ml-32m", "filters": [{"name": "k_core", "k": 10}]},
        "split": {"name": "random", "test": 0.2},
        "k": 10,
        "models": models,
        **({"queries": {"sample": n_queries}} if n_queries else {}),
        "metrics": ["nDCG", "HR", "item_coverage", "log_popularity_difference"],
        "tests": ["paired_t"],
        "report": {"formats": ["csv"]},
    }


LOAD, FILTER, REST = "load", "load and 10-core", "tests and tables"


def list_names(spec: dict[str, Any]) -> list[str]:
    """Return the names of what is measured, in order."""
    models = [model["name"] for model in spec["models"]]
    stages = [f"{what} {model}" for model in models for what in ("fit", "lists", "measures")]
    return [LOAD, FILTER, "split", "queries", *stages, REST]


def measure(folder: Path, spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Compute one stage in this process, and return its cost."""
    out = folder / "results"
    if name == LOAD:
        spec = spec | {"dataset": spec["dataset"] | {"filters": []}}
    if name == REST:
        began = time.process_time()
        recbias.run(spec, out=out, data=folder)
        return {"cpu": time.process_time() - began, "peak": measure_peak_memory_mb()}
    run_plan, store = api.plan(spec, out=out, data=folder)
    executor = Executor(store, Observer())
    began = time.process_time()
    records = [executor.ensure(stage) for stage in run_plan.stages if _name(stage) == name]
    seconds = time.process_time() - began
    for record in records:
        if record.failure is not None:
            raise SystemExit(f"{record.stage}: {record.failure.message}")
    return {
        "cpu": seconds,
        "peak": max((record.peak_memory_mb or 0.0 for record in records), default=0.0),
        "sizes": records[-1].sizes if records else {},
    }


def _name(stage: Any) -> str:
    filtered = len(stage.work.filters) if stage.kind == "dataset" else 0
    names = {"dataset": FILTER if filtered else LOAD, "split": "split", "queries": "queries"}
    words = {"fit": "fit", "answer": "lists", "measure": "measures"}
    return names.get(stage.kind) or f"{words[stage.kind]} {stage.keys.model}"


def measure_all(folder: Path, spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the cost of each stage on the files of a folder, each in a process of its own."""
    costs = {}
    shutil.rmtree(folder / "results", ignore_errors=True)
    context = get_context("forkserver")  # it forks after the slow imports
    context.set_forkserver_preload(["recbias.api", "recbias.reports.write", "scipy.sparse"])
    for name in list_names(spec):
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            costs[name] = pool.submit(measure, folder, spec, name).result()
        print(f"  {name}: {costs[name]['cpu']:.2f} s, {costs[name]['peak']:,.0f} MB", flush=True)
    return costs


def fit_exponent(sizes: list[int], seconds: list[float]) -> str:
    """Return the slope of the logarithms where the time is long enough to be known."""
    points = [(n, time) for n, time in zip(sizes, seconds, strict=True) if time >= LEAST_SECONDS]
    if len(points) < 2:
        return ""
    return f"{np.polyfit(*np.log(np.array(points).T), 1)[0]:.2f}"


def _split(setting: str) -> tuple[str, str]:
    key, _, value = setting.partition("=")
    return key, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="50000,200000")
    parser.add_argument("--models", default=",".join(MODELS[:3]))
    parser.add_argument("--folder", type=Path, help="where the data are written, and stay")
    parser.add_argument("--settings", nargs="*", default=[], help="KEY=VALUE of every model")
    parser.add_argument("--queries", type=int, default=0, help="users who get lists; 0: all")
    arguments = parser.parse_args()
    settings = {key: yaml.safe_load(value) for key, value in map(_split, arguments.settings)}
    models = [{"name": name, **settings} for name in arguments.models.split(",")]
    spec = make_spec(models, arguments.queries)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    costs = []
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            folder = (arguments.folder or Path(temporary)) / str(size)
            print(f"{size:,} interactions", flush=True)
            if not (folder / "ml-32m" / "movies.csv").exists():
                write_ratings(folder / "ml-32m", size)
            try:
                api.plan(spec, out=folder / "results", data=folder)
            except UserError as error:  # a model whose package is absent, say
                print(f"skipped: {error}")
                return
            costs.append(measure_all(folder, spec))
    print(f"\n| stage | {' | '.join(f'{size:,}' for size in sizes)} | exponent |")
    print(f"|---|{'--:|' * (len(sizes) + 1)}")
    for name in list_names(spec):
        row = [cost[name] for cost in costs]
        cells = [f"{cost['cpu']:.1f} s, {cost['peak']:,.0f} MB" for cost in row]
        exponent = fit_exponent(sizes, [cost["cpu"] for cost in row])
        print(f"| {name} | {' | '.join(cells)} | {exponent} |")


if __name__ == "__main__":
    main()
