"""Whether `recbias explain` and `multiverse:` keep what they promise, in worlds with known causes.

python studies/calibration/explain_studies.py                # 200 samples of every world, minutes
python studies/calibration/explain_studies.py --samples 50   # quicker

A world of the demo dataset has two cohorts that differ by dials: shorter histories, picks that are
nearer to random, a smaller group, fewer test items, or several. Lists are the ideal ones of the
known odds. The users are divided into samples, each explained by itself; the truth is the
explanation of all users, and the share of a dial is its Shapley value over worlds with and without
each dial.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from recbias.core.dataset import AnyArray, BoolArray, FloatArray
from recbias.core.evidence import rank_ideal_lists
from recbias.data.demo import Demo
from recbias.statistics.decomposition import (
    METHODS,
    compute_shapley,
    decompose_gap,
    find_honest_groups,
)
from recbias.statistics.multiverse import Contrasts, compute_joint_test

N_USERS = 600
CUTOFFS = (5, 10, 20)
TEST_SHARE = 0.2

DIALS: Mapping[str, dict[str, Any]] = {
    "length": {"cohort_length": 0.7},
    "taste": {"cohort_noise": 0.3},
    "test size": {"test_share": 0.5},
}
WORLDS: Mapping[str, tuple[Sequence[str], dict[str, Any]]] = {
    "length": (["length"], {}),
    "length, B is a fifth": (["length"], {"cohort_share": 0.2}),
    "taste": (["taste"], {}),
    "test size": (["test size"], {}),
    "length and taste": (["length", "taste"], {}),
    "length, taste and test size": ([*DIALS], {}),
}


@dataclass(frozen=True, eq=False)
class World:
    """The users of a world: values of universes, ``float64[universes, users]``, and properties."""

    values: FloatArray
    in_a: BoolArray
    properties: list[FloatArray]

    def explain(self, rows: AnyArray, method: str, rng: np.random.Generator, n: int) -> Any:
        """The parts of the gap of nDCG@10 among some users."""
        own = [columns[rows] for columns in self.properties]
        return decompose_gap(self.values[1, rows], self.in_a[rows], own, method, rng, n)


def sample_world(n_users: int, dials: Sequence[str], **settings: Any) -> World:
    """Return nDCG@5, @10, @20 and the same hits of ideal lists, and what is known of the users."""
    own = {key: value for name in dials for key, value in DIALS[name].items()}
    kept = own.pop("test_share", 1.0)
    demo = Demo(n_users=n_users, **own, **settings)
    data = demo.load(Path(), np.random.default_rng(1))
    rng = np.random.default_rng(2)
    users, items = data.interactions.users, data.interactions.items
    in_a = data.users.frame["cohort"].to_numpy() == "A"
    is_test = rng.random(len(users)) < TEST_SHARE
    is_used = is_test & (in_a[users] | (rng.random(len(users)) < kept))
    shape = (n_users, demo.n_items)
    train, test = (
        csr_array((np.ones(rows.sum()), (users[rows], items[rows])), shape=shape)
        for rows in (~is_test, is_used)
    )
    everyone = np.arange(n_users, dtype=np.int32)
    odds = demo.compute_odds(data.users, data.items)
    candidates = np.ones(demo.n_items, dtype=bool)
    hits = np.empty((n_users, max(CUTOFFS)))
    for block in np.array_split(everyone, max(1, n_users // 10_000)):
        lists = rank_ideal_lists(odds, block, train[block], candidates, max(CUTOFFS))
        hits[block] = np.take_along_axis(test[block].toarray(), lists, axis=1)
    n_test = np.diff(test.indptr)
    discounts = 1 / np.log2(np.arange(2, max(CUTOFFS) + 2))
    values = []
    for k in CUTOFFS:
        best = np.cumsum(discounts)[np.clip(n_test, 1, k) - 1]
        values += [hits[:, :k] @ discounts[:k] / best]
    values += [hits[:, :k].any(axis=1).astype(np.float64) for k in CUTOFFS]
    n_train = np.diff(train.indptr)
    asked = n_test > 0
    logs = [np.log1p(counts[asked]).reshape(-1, 1) for counts in (n_train, n_test)]
    return World(np.array(values)[:, asked], in_a[asked], logs)


def divide(world: World, n_samples: int) -> list[AnyArray]:
    return np.array_split(np.random.default_rng(3).permutation(len(world.in_a)), n_samples)


def study_parts(n_samples: int, name: str, resamples: int) -> list[str]:
    """Return the rows of a world: the true parts, and how often intervals hold them."""
    dials, settings = WORLDS[name]
    sample = partial(sample_world, N_USERS * n_samples, **settings)

    def measure_gap(chosen: tuple[int, ...]) -> float:
        world = sample([dials[at] for at in chosen])
        return float(world.values[1, world.in_a].mean() - world.values[1, ~world.in_a].mean())

    shares = compute_shapley(len(dials), measure_gap)
    caused = dict(zip(dials, shares.tolist(), strict=True))
    world, lines = sample(dials), []
    everyone = np.arange(len(world.in_a))
    rng = np.random.default_rng(4)
    for method in METHODS:
        truth = world.explain(everyone, method, rng, 1)
        found = [world.explain(rows, method, rng, resamples) for rows in divide(world, n_samples)]
        held = np.mean([(f.ci_low <= truth.parts) & (truth.parts <= f.ci_high) for f in found], 0)
        parts = " | ".join(
            f"{part:.4f}, {share:.1%}" for part, share in zip(truth.parts, held, strict=True)
        )
        told = ", ".join(f"{dial} {share:.4f}" for dial, share in caused.items())
        lines.append(f"| {name} | {told} | {method} | {truth.gap:.4f} | {parts} |")
    return lines


def study_levels(n_samples: int) -> dict[str, float]:
    """Return how often the joint test and honest trees find something in fair worlds."""
    world, rng = sample_world(N_USERS * n_samples, []), np.random.default_rng(5)
    n_rejected, n_found = 0, 0
    for rows in divide(world, n_samples):
        groups = np.tile(world.in_a[rows].astype(np.int8), (len(world.values), 1))
        test = compute_joint_test(Contrasts(world.values[:, rows], None, groups), rng, n=500)
        n_rejected += test.p["mean_z"] <= 0.05
        columns = np.hstack([columns[rows] for columns in world.properties])
        columns = np.hstack([columns, rng.normal(size=columns.shape)])
        values = rng.permutation(world.values[1, rows])
        n_found += any(leaf.p_adjusted < 0.05 for leaf in find_honest_groups(values, columns, rng))
    return {"joint test": n_rejected / n_samples, "honest groups": n_found / n_samples}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--only", choices=[*WORLDS, "levels"])
    arguments = parser.parse_args()
    if arguments.only in {None, "levels"}:
        print(json.dumps(study_levels(arguments.samples)), flush=True)
    print("| World | Caused by the dials | Method | Gap | History | Test items | Rest |")
    print("|---|---|---|---:|---:|---:|---:|")
    for world_name in WORLDS:
        if arguments.only in {None, world_name}:
            rows = study_parts(arguments.samples, world_name, arguments.resamples)
            print(*rows, sep="\n", flush=True)
