"""Nanoseconds of BPR-MF to sample a triple and to make its step, by the order of the triples.

Data are those of ``growth.py``, of which a random fifth is left out and films with few ratings
too. Independent triples are compared with those of random blocks of users, which from 16,384
users on is the order of BPR-MF on a CPU. Both take turns in this process; the least time of each
is shown, of one thread.

    python benchmarks/triples.py [--sizes 200000] [--turns 3]

``--sizes 1000000,10000000,32000000`` takes ten minutes, most of them to generate the data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from growth import draw_pairs
from recbias.kernels.sparse import compile_loop
from recbias.models.factorization import FactorTables
from recbias.models.gpu import initialize_normal
from recbias.models.sgd import Sampler, UserBlocks, step_bpr

TEST_SHARE, LEAST, FACTORS = 0.2, 10, 64
CPU = torch.device("cpu")
SETTINGS = tuple(np.array([0.05, 0.01, 0.01, 0.01, 0.0], dtype=np.float32))
"""The learning rate and the weights of squares, as by default."""


def create_sampler(n: int) -> Sampler:
    """Return the sampler of the training part of about ``n`` ratings."""
    rng = np.random.default_rng(n)
    users, films = draw_pairs(n, rng)
    is_train = rng.random(users.size) >= TEST_SHARE
    is_train &= np.bincount(films)[films] >= LEAST
    codes = rng.permutation(films.max() + 1)[films[is_train]]
    _, items = np.unique(codes, return_inverse=True)
    _, users = np.unique(users[is_train], return_inverse=True)
    order = np.argsort(users * (items.max() + 1) + items)
    starts = np.append(0, np.cumsum(np.bincount(users)))
    return Sampler(
        users.astype(np.int32), items[order].astype(np.int32), starts, int(items.max()) + 1
    )


def measure(sample: Callable[..., Any], tables: Any, rng: np.random.Generator) -> list[float]:
    """Return nanoseconds a triple: of samples and of steps."""
    start = time.process_time()
    triples = sample(rng)
    middle = time.process_time()
    compile_loop(step_bpr)(triples, tables, SETTINGS)
    end = time.process_time()
    return [1e9 * seconds / len(triples[0]) for seconds in (middle - start, end - middle)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="200000")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    print("| interactions | users | items | order | sample | step |\n|--:|--:|--:|---|--:|--:|")
    for size in map(int, arguments.sizes.split(",")):
        sampler, rng = create_sampler(size), np.random.default_rng(1)
        shape = (sampler.starts.size - 1, sampler.n_items)
        vectors = [initialize_normal((rows, FACTORS), 0.1, CPU, rng) for rows in shape]
        tables = FactorTables(*vectors).add_biases(users=False).arrays()
        orders = {
            "independent": partial(sampler.sample_triples, sampler.users.size),
            "blocks of users": UserBlocks(sampler).sample,
        }
        times: dict[str, list[list[float]]] = {name: [] for name in orders}
        for _ in range(1 + arguments.turns):
            for name, sample in orders.items():
                times[name].append(measure(sample, tables, rng))
        for name, turns in times.items():
            best = " | ".join(f"{value:.0f}" for value in np.min(turns[1:], axis=0))
            counts = f"{sampler.users.size:,} | {shape[0]:,} | {shape[1]:,}"
            print(f"| {counts} | {name} | {best} |", flush=True)


if __name__ == "__main__":
    main()
