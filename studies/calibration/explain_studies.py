"""Whether `recbias explain` and `multiverse:` keep what they promise, in worlds with known causes.

python studies/calibration/explain_studies.py                 # 200 samples of every world
python studies/calibration/explain_studies.py --samples 1000  # more

The users of a world are those of the demo dataset; two cohorts differ by dials, each of which can
be turned off alone. The true share of a dial is its Shapley value over the gaps of worlds with
every subset of the dials. Users are divided into samples, each of which is explained by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from tally import LEVEL, compute_band

from recbias.core.dataset import AnyArray, Attributes, BoolArray, FloatArray, Odds
from recbias.core.evidence import rank_ideal_lists
from recbias.data.demo import Demo, sample_without_replacement
from recbias.statistics.decomposition import (
    METHODS,
    add_curves,
    compute_shapley,
    decompose_gap,
    find_honest_groups,
)
from recbias.statistics.multiverse import Contrasts, compute_joint_test

N_USERS, N_SAMPLES = 600, 200
CUTOFFS = (5, 10, 20)
TEST_SHARE = 0.2
SHORTER, NOISE, SHARE = 0.7, 0.3, 0.2
HISTORY, TEST, TASTE, SIZE = "history", "test items", "taste", "group size"
PARTS = (HISTORY, TEST)
"""The dials that are properties; the others are what properties do not explain."""

WORLDS: Sequence[tuple[str, ...]] = (
    (HISTORY,),
    (TEST,),
    (TASTE,),
    (SIZE,),
    (HISTORY, TEST),
    (HISTORY, SIZE),
    (HISTORY, TEST, TASTE),
    (HISTORY, TEST, TASTE, SIZE),
)


@dataclass(frozen=True, eq=False)
class World:
    """The users of a world: values of universes, ``float64[universes, users]``, and properties."""

    values: FloatArray
    in_a: BoolArray
    properties: list[FloatArray]

    @property
    def gap(self) -> float:
        """The gap of nDCG@10."""
        return float(self.values[1, self.in_a].mean() - self.values[1, ~self.in_a].mean())


def sample_world(n_users: int, dials: Collection[str], *, is_small: bool = False) -> World:
    """Return nDCG@5, @10, @20 and the same hits of lists, and what is known of the users.

    The dials make the histories of cohort B shorter, its test sets smaller, its picks nearer to
    random, or its weight smaller in the one list of all, which else weighs both cohorts alike.
    Lists are the ideal ones of each user; where group size is a cause in a world (``is_small``) B
    is a fifth of the users, likes other films, and all have the same list.
    """
    noise = NOISE if TASTE in dials else 0.0
    demo = Demo(n_users=n_users, cohort_noise=noise, cohort_share=SHARE if is_small else 0.5)
    data = replace(demo, per_user=1.0).load(Path(), np.random.default_rng(1))
    users, items = data.users, data.items
    assert users is not None
    assert items is not None
    in_a = users.frame["cohort"].to_numpy() == "A"
    odds = demo.compute_odds(users, items)
    shown = odds
    if is_small:
        odds, shown = _divide_tastes(demo, users, items, weight=SHARE if SIZE in dials else 0.5)
    n_train, n_test = _sample_counts(demo, users, dials)
    train, test = _sample_picks(odds, n_train, n_test)
    everyone, most = np.arange(n_users, dtype=np.int32), max(CUTOFFS)
    candidates = np.ones(demo.n_items, dtype=bool)
    hits = np.empty((n_users, most))
    for block in np.array_split(everyone, max(1, n_users // 10_000)):
        lists = rank_ideal_lists(shown, block, train[block], candidates, most)
        hits[block] = np.take_along_axis(test[block].toarray(), lists, axis=1)
    discounts = 1 / np.log2(np.arange(2, most + 2))
    values = []
    for k in CUTOFFS:
        best = np.cumsum(discounts)[np.clip(n_test, 1, k) - 1]
        values += [hits[:, :k] @ discounts[:k] / best]
    values += [hits[:, :k].any(axis=1).astype(np.float64) for k in CUTOFFS]
    asked = n_test > 0
    logs = [np.log1p(counts[asked]).reshape(-1, 1) for counts in (n_train, n_test)]
    return World(np.array(values)[:, asked], in_a[asked], logs)


def _divide_tastes(
    demo: Demo, users: Attributes, items: Attributes, *, weight: float
) -> tuple[Odds, Odds]:
    """Return the odds where cohort B likes other films, and those of one list for all."""
    ranks = items.frame["popularity_rank"].to_numpy()
    frame = items.frame.assign(popularity_rank=np.roll(ranks, len(ranks) // 2))
    own = demo.compute_odds(users, items)
    other = demo.compute_odds(users, replace(items, frame=frame))
    half = len(own.by_type) // 2
    by_type = np.vstack([own.by_type[:half], other.by_type[half:]])
    shares = np.exp(by_type - np.log(np.exp(by_type).sum(axis=1, keepdims=True)))
    weights = np.repeat([1 - weight, weight], half) / half
    popularity = np.log(weights @ shares)[None]
    return Odds(by_type, own.types), Odds(popularity, np.zeros_like(own.types))


def _sample_counts(
    demo: Demo, users: Attributes, dials: Collection[str]
) -> tuple[AnyArray, AnyArray]:
    """Return the numbers of training and test items of each user."""
    counts = {}
    for is_on in (False, True):
        own = replace(demo, cohort_length=SHORTER if is_on else 0.0)
        rng = np.random.default_rng(2)  # the same users: more active ones stay more active
        n_picks = own._sample_pick_counts(users, rng)  # noqa: SLF001  the dial of the dataset
        n_test = rng.binomial(n_picks, TEST_SHARE)
        counts[is_on] = n_picks - n_test, n_test
    return counts[HISTORY in dials][0], counts[TEST in dials][1]


def _sample_picks(odds: Odds, n_train: AnyArray, n_test: AnyArray) -> tuple[csr_array, csr_array]:
    """Return the picks of each user, divided at random."""
    rng = np.random.default_rng(3)
    users, items = sample_without_replacement(odds, n_train + n_test, rng)
    order = np.lexsort((rng.random(len(users)), users))
    starts = np.concatenate([[0], np.cumsum(n_train + n_test)])
    is_test = np.empty(len(users), dtype=bool)
    is_test[order] = np.arange(len(users)) - starts[users[order]] < n_test[users[order]]
    shape = (len(n_train), odds.by_type.shape[1])
    train, test = (
        csr_array((np.ones(rows.sum()), (users[rows], items[rows])), shape=shape)
        for rows in (~is_test, is_test)
    )
    return train, test


def divide(world: World, n_samples: int) -> list[AnyArray]:
    """Return the users of each sample."""
    return np.array_split(np.random.default_rng(4).permutation(len(world.in_a)), n_samples)


def study_parts(n_samples: int, dials: Sequence[str]) -> Iterator[str]:
    """Yield the rows of a world: the true parts, and how often intervals hold them."""
    worlds: dict[tuple[int, ...], World] = {}

    def measure_gap(chosen: tuple[int, ...]) -> float:
        own = [dials[at] for at in chosen]
        worlds[chosen] = sample_world(N_USERS * n_samples, own, is_small=SIZE in dials)
        return worlds[chosen].gap

    shares = dict(zip(dials, compute_shapley(len(dials), measure_gap).tolist(), strict=True))
    world = worlds[tuple(range(len(dials)))]
    known = [shares.get(name, 0.0) for name in PARTS]
    truth = np.array([*known, world.gap - sum(known)])
    for method in METHODS:
        found = []
        for rows in divide(world, n_samples):
            in_a, own = world.in_a[rows], [columns[rows] for columns in world.properties]
            curved = add_curves(own, in_a)
            found.append(decompose_gap(world.values[1, rows], in_a, curved, method))
        defined = [each for each in found if not np.isnan(each.parts).any()]
        held = np.mean([(f.ci_low <= truth) & (truth <= f.ci_high) for f in defined], axis=0)
        means = np.mean([f.parts for f in defined], axis=0)
        cells = [
            f"{round(part, 4) + 0.0:.4f} | {round(mean, 4) + 0.0:.4f} | {share:.1%}"
            for part, mean, share in zip(truth, means, held, strict=True)
        ]
        shown = f"{', '.join(dials)} | {method} | {len(defined):,} | {' | '.join(cells)}"
        yield f"| {shown} |"


def study_levels(n_samples: int) -> Iterator[str]:
    """Yield how often the joint test and honest groups find something in fair worlds."""
    world, rng = sample_world(N_USERS * n_samples, ()), np.random.default_rng(5)
    n_rejected, n_found = 0, 0
    for rows in divide(world, n_samples):
        groups = np.tile(world.in_a[rows].astype(np.int8), (len(world.values), 1))
        test = compute_joint_test(Contrasts(world.values[:, rows], None, groups), rng, n=500)
        n_rejected += test.p["mean_z"] <= LEVEL
        columns = np.hstack([columns[rows] for columns in world.properties])
        columns = np.hstack([columns, rng.normal(size=columns.shape)])
        values = rng.permutation(world.values[1, rows])
        found = find_honest_groups(values, columns, rng)
        n_found += any(leaf.p_adjusted < LEVEL for leaf in found)
    yield f"| joint test of six correlated universes | {n_rejected / n_samples:.1%} |"
    yield f"| any honest group | {n_found / n_samples:.1%} |"


def write_explain_section(n_samples: int = N_SAMPLES) -> str:
    """The section of the page."""
    intervals = "{:.1%} to {:.1%}".format(*compute_band(n_samples, 1 - LEVEL))
    tests = "{:.1%} to {:.1%}".format(*compute_band(3 * n_samples, LEVEL))
    rows = [PARTS_OF_GAPS.format(samples=n_samples, users=N_USERS, intervals=intervals)]
    rows += [row for dials in WORLDS for row in study_parts(n_samples, dials)]
    rows += [LEVELS.format(tests=tests, samples=3 * n_samples), *study_levels(3 * n_samples)]
    return "\n".join([*rows, ""])


PARTS_OF_GAPS = """
## Parts of a gap

`recbias explain` in {samples:,} samples of {users} users of each world. Cohort B has histories
that are half as long (*history*), test sets that are half as large (*test items*), picks that are
nearer to random (*taste*), or is a fifth of the users, with other favourites, and all get one list
that weighs B by its size (*group size*). The true part of history and of test items is the Shapley
value of their dial over the worlds with and without each dial; the others belong to the rest.
*True*, *mean* of the estimates, and *coverage* of the intervals: 99% of the cells of an interval
that covers exactly lie within {intervals}. It covers more where a property neither differs nor
matters. Parts are not *defined* where no weights make the groups alike: with `reweighting`, where
the histories of B alone are so much shorter that few users of A have as few items in the history
and as many in the test set. This section alone:
`python studies/calibration/explain_studies.py`.

| World | Method | Defined | History: true | Mean | Coverage | Test items: true | Mean | Coverage | Rest: true | Mean | Coverage |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""  # noqa: E501  a table
LEVELS = """
False alarms in {samples:,} samples where the cohorts do not differ: the joint test of
`multiverse:` over nDCG and HR at 5, 10 and 20, and the groups of users that are found in one half
and tested in the other. 99% of the rows of a calibrated test lie within {tests}.

| Test | Significant |
|---|---:|"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=N_SAMPLES)
    print(write_explain_section(parser.parse_args().samples))
