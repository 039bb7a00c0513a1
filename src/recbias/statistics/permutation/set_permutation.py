"""Is it by chance that two sets differ? A permutation test of who belongs to which."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain, combinations, islice

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.stage_context import report_progress

BLOCK_VALUES = 2**22
"""How many members are held at once."""

ROUNDING = 1e-12
"""Sums closer than this share of the sum of sizes are ties."""


def membership_p_value(
    first: FloatArray, second: FloatArray, *, draws: int, rng: np.random.Generator
) -> float:
    """Return the two-sided p-value of the difference between the means of two sets.

        p = #{ |m(E') - m(P')| ≥ |m(E) - m(P)| } / #{relabellings}

    over the ways to deal the values out again into sets E' and P' of the same sizes. If there are
    no more than ``draws`` of them, every one is counted and p is exact; otherwise ``draws`` are
    drawn and p = (hits + 1) / (draws + 1), never 0. Sums of a set are as good as means: for given
    sizes the one rises with the other.

    Args:
        first: Values of the one set, ``float64[n]``, none NaN.
        second: Values of the other, ``float64[m]``.
        draws: How many relabellings are drawn.
        rng: Where chance comes from.

    Returns:
        NaN where a set is empty.

    >>> first, second = np.array([4.0, 5.0]), np.array([1.0, 2.0, 3.0])
    >>> membership_p_value(first, second, draws=10, rng=np.random.default_rng(0))  # 2 of 10
    0.2

    Source:
        Fisher, "The Design of Experiments", 1935; Phipson and Smyth, "Permutation p-values should
        never be zero", 2010.
    """
    if not first.size or not second.size:
        return float("nan")
    rounding = ROUNDING * float(np.abs(first).sum() + np.abs(second).sum())
    return relabelled_p_value(
        first[:, None], second[:, None], _size, draws=draws, rng=rng, rounding=rounding
    )


def _size(sums: FloatArray) -> FloatArray:
    return np.abs(sums[:, 0])


def relabelled_p_value(
    first: FloatArray,
    second: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    draws: int,
    rng: np.random.Generator,
    rounding: float = ROUNDING,
) -> float:
    """Return how often a statistic of the sum of a set is as large as observed, by relabelling.

    The members of two sets are dealt out again into sets of the same sizes, as for
    ``membership_p_value``; what is added up is each member less the mean of all of them, so that
    the sum of the one set is the opposite of that of the other.

    Args:
        first: Members of the one set, ``float64 (n, d)``, at least one.
        second: Members of the other, ``float64 (m, d)``, at least one.
        statistic: From sums ``float64 (b, d)`` to ``float64[b]``; that of a sum and that of its
            opposite are the same.
        draws: How many relabellings are drawn.
        rng: Where chance comes from.
        rounding: Statistics closer than this are ties.

    >>> first, second = np.array([[4.0], [5.0]]), np.array([[1.0], [2.0], [3.0]])
    >>> rng = np.random.default_rng(0)
    >>> relabelled_p_value(first, second, lambda sums: sums[:, 0] ** 2, draws=10, rng=rng)
    0.2

    Source:
        Phipson and Smyth, "Permutation p-values should never be zero", 2010.
    """
    pool = np.concatenate([first, second])
    centred = pool - pool.mean(axis=0)
    least = float(statistic(centred[: len(first)].sum(axis=0)[None, :])[0]) - rounding
    size = min(len(first), len(second))  # what one set gains, the other loses
    ways = math.comb(len(pool), size)
    exact = ways <= draws
    sums = _every(centred, size) if exact else _drawn(centred, size, draws, rng)
    hits, done = 0, 0
    for block in sums:
        hits += int(np.count_nonzero(statistic(block) >= least))
        done += len(block)
        report_progress("permutations of membership", done, ways if exact else draws)
    return hits / ways if exact else (hits + 1) / (draws + 1)


def _every(rows: FloatArray, size: int) -> Iterator[FloatArray]:
    """Yield the sum of every set of ``size`` rows once, ``float64 (b, d)``, block by block."""
    places = combinations(range(len(rows)), size)
    while block := list(islice(places, max(1, BLOCK_VALUES // (size * rows.shape[1])))):
        codes = np.fromiter(chain.from_iterable(block), dtype=np.intp, count=len(block) * size)
        yield rows[codes].reshape(len(block), size, -1).sum(axis=1)


def _drawn(
    rows: FloatArray, size: int, draws: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield the sums of ``draws`` random sets of ``size`` rows, block by block."""
    many = max(1, BLOCK_VALUES // len(rows))
    for start in range(0, draws, many):
        chosen = random_sets(min(many, draws - start), len(rows), size, rng)
        yield chosen.astype(np.float64) @ rows


def random_sets(rows: int, n: int, size: int, rng: np.random.Generator) -> BoolArray:
    """Return random sets of ``size`` of ``n``, each as likely as any other, ``bool (rows, n)``.

    Each member is taken with a chance a little below ``size / n``, one byte of chance a member;
    then members are added one by one, or taken away where there are too many, until the size is
    right. Members are alike at every step, so that sets of one size stay equally likely. It is
    several times faster than shuffling.

    Args:
        rows: How many sets.
        n: Of how many.
        size: How large each is.
        rng: Where chance comes from.
    """
    below = max(0.0, size - math.sqrt(size * (n - size) / n))
    octets = rng.integers(0, 256, size=(rows, n), dtype=np.uint8)
    chosen: BoolArray = octets < int(256 * below / n)
    excess = np.count_nonzero(chosen, axis=1) - size
    left = np.flatnonzero(excess)
    while left.size:
        place = rng.integers(n, size=left.size)
        too_many = excess[left] > 0
        fits = chosen[left, place] == too_many
        row, place, taken = left[fits], place[fits], too_many[fits]
        chosen[row, place] = ~taken
        excess[row] += np.where(taken, -1, 1)
        left = left[excess[left] != 0]
    return chosen
