"""Permutation tests of the membership of two sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain, combinations, islice

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.stage_context import report_progress

BLOCK_VALUES = 2**22
"""Members held in memory at once."""

ROUNDING = 1e-12
"""Sums that differ by less than this share of the absolute values are ties."""


def permute_membership(
    first: FloatArray, second: FloatArray, *, n_permutations: int, rng: np.random.Generator
) -> float:
    """Return the two-sided p-value of the difference between the means of two sets.

        p = #{ |m(E') - m(P')| ≥ |m(E) - m(P)| } / #{relabellings}

    over the ways to divide the values into sets E' and P' of the same sizes. If there are at most
    ``n_permutations`` of them, all are enumerated and p is exact; otherwise ``n_permutations`` are
    sampled and p = (hits + 1) / (n_permutations + 1), never 0. For given sizes, the sum of a set
    is equivalent to its mean. No value may be NaN; p is NaN if a set is empty.

    >>> first, second = np.array([4.0, 5.0]), np.array([1.0, 2.0, 3.0])
    >>> rng = np.random.default_rng(0)
    >>> permute_membership(first, second, n_permutations=10, rng=rng)  # 2 of 10
    0.2

    Source:
        Fisher, "The Design of Experiments", 1935; Phipson and Smyth, "Permutation p-values should
        never be zero", 2010.
    """
    if not first.size or not second.size:
        return float("nan")
    rounding = ROUNDING * float(np.abs(first).sum() + np.abs(second).sum())
    return permute_sums(
        first[:, None],
        second[:, None],
        lambda sums: np.abs(sums[:, 0]),
        n_permutations=n_permutations,
        rng=rng,
        rounding=rounding,
    )


def permute_sums(
    first: FloatArray,
    second: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    n_permutations: int,
    rng: np.random.Generator,
    rounding: float = ROUNDING,
) -> float:
    """Return the permutation p-value of a statistic of the sum of a set, over the same divisions.

    The members are centred, so that the sum of one set is the negative of the sum of the other.

    Args:
        first: Members of the first set, ``float64 (n, d)``, at least one.
        second: Members of the second set, ``float64 (m, d)``, at least one.
        statistic: From sums ``float64 (b, d)`` to ``float64[b]``, equal for opposite sums.
        n_permutations: The number of sampled relabellings.
        rng: The random generator.
        rounding: Statistics that differ by less are ties.

    >>> first, second = np.array([[4.0], [5.0]]), np.array([[1.0], [2.0], [3.0]])
    >>> rng = np.random.default_rng(0)
    >>> permute_sums(first, second, lambda sums: sums[:, 0] ** 2, n_permutations=10, rng=rng)
    0.2

    Source:
        Phipson and Smyth, "Permutation p-values should never be zero", 2010.
    """
    pool = np.concatenate([first, second])
    centred = pool - pool.mean(axis=0)
    threshold = float(statistic(centred[: len(first)].sum(axis=0)[None, :])[0]) - rounding
    size = min(len(first), len(second))  # the sums of both sets are opposite
    total = math.comb(len(pool), size)
    if exact := total <= n_permutations:
        sums = _sum_all_subsets(centred, size)
    else:
        sums, total = _sum_sampled_subsets(centred, size, n_permutations, rng), n_permutations
    hits, completed = 0, 0
    for block in sums:
        hits += int(np.count_nonzero(statistic(block) >= threshold))
        completed += len(block)
        report_progress("permutations of membership", completed, total)
    return hits / total if exact else (hits + 1) / (total + 1)


def _sum_all_subsets(rows: FloatArray, size: int) -> Iterator[FloatArray]:
    """Yield the sum of every subset of ``size`` rows once, ``float64 (b, d)``, in blocks."""
    subsets = combinations(range(len(rows)), size)
    while block := list(islice(subsets, max(1, BLOCK_VALUES // (size * rows.shape[1])))):
        codes = np.fromiter(chain.from_iterable(block), dtype=np.intp, count=len(block) * size)
        yield rows[codes].reshape(len(block), size, -1).sum(axis=1)


def _sum_sampled_subsets(
    rows: FloatArray, size: int, n_permutations: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    block_rows = max(1, BLOCK_VALUES // len(rows))
    for start in range(0, n_permutations, block_rows):
        members = sample_sets(min(block_rows, n_permutations - start), len(rows), size, rng)
        yield members.astype(np.float64) @ rows


def sample_sets(rows: int, n: int, size: int, rng: np.random.Generator) -> BoolArray:
    """Return random subsets of ``size`` of ``n`` members, equally likely, ``bool (rows, n)``.

    Each member is included with probability a little below ``size / n``, using one random byte per
    member; then random members are added, or removed if there are too many, until the size is
    reached. Every step treats members alike, so that all subsets of a size stay equally likely.
    This is several times faster than shuffling.
    """
    initial_size = max(0.0, size - math.sqrt(size * (n - size) / n))
    octets = rng.integers(0, 256, size=(rows, n), dtype=np.uint8)
    members: BoolArray = octets < int(256 * initial_size / n)
    excess = np.count_nonzero(members, axis=1) - size
    unfinished = np.flatnonzero(excess)
    while unfinished.size:
        position = rng.integers(n, size=unfinished.size)
        too_many = excess[unfinished] > 0
        applicable = members[unfinished, position] == too_many
        row, position, removed = unfinished[applicable], position[applicable], too_many[applicable]
        members[row, position] = ~removed
        excess[row] += np.where(removed, -1, 1)
        unfinished = unfinished[excess[unfinished] != 0]
    return members
