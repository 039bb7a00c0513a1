"""The test of a trend over ordered groups."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.measures import Contrast

NAME = "jonckheere_terpstra"

_MOST_ARRANGEMENTS = 1_000_000
"""The number of divisions of the values into groups up to which p is exact."""


def compare_trend(names: tuple[str, ...], values: FloatArray, codes: AnyArray) -> Contrast:
    """Test whether values rise or fall with the order of groups, by Jonckheere and Terpstra.

        J = Σ_{g < h} #{ (i, j): x_i < x_j, i in g, j in h },    an equal pair counts 1/2
        E = (N² - Σ n_g²) / 4
        V = [ N (N-1) (2N+5) - Σ n_g (n_g-1) (2n_g+5) - Σ t (t-1) (2t+5) ] / 72
            + Σ n_g (n_g-1) (n_g-2) · Σ t (t-1) (t-2) / (36 N (N-1) (N-2))
            + Σ n_g (n_g-1) · Σ t (t-1) / (8 N (N-1)),    t the numbers of equal values

    The statistic is z = (J - E) / √V. p is two-sided: exact, the share of all divisions of the
    values into groups of these sizes with |J - E| at least as large, where there are at most a
    million of them, else 2 Φ(-|z|). The effect size is Somers' D = J / (2 E) · 2 - 1, the share of
    pairs of units of different groups that rise minus the share that fall: -1 to 1. Ranks are
    compared, so no distribution is assumed, but groups of equal means and other shapes may have a
    trend in ranks. The sides are the last and the first group with values, and ``difference``
    that of their means. p is NaN with fewer than two groups or if all values are equal.

    >>> codes = np.repeat([0, 1, 2], 2)
    >>> test = compare_trend(("a", "b", "c"), np.array([1.0, 2, 3, 4, 5, 6]), codes)
    >>> round(test.p, 4), test.effect_size  # 2 of the 90 divisions are as far from E
    (0.0222, 1.0)

    Args:
        names: The groups in their order.
        values: The value of each unit; NaN if undefined.
        codes: The group of each unit.

    Source:
        Jonckheere, "A distribution-free k-sample test against ordered alternatives", Biometrika
        1954; Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 2014, section 6.2.
    """
    from scipy.special import gammaln, ndtr

    defined = ~np.isnan(values)
    values, codes = values[defined], codes[defined]
    present, sizes = np.unique(codes, return_counts=True)
    ties = np.unique(values, return_counts=True)[1]
    z = p = effect = math.nan
    if present.size > 1 and ties.size > 1:
        rise = _count_rise(values, codes)
        z = rise / 2 / math.sqrt(_compute_variance(sizes.astype(float), ties.astype(float)))
        effect = rise / ((codes.size**2 - int((sizes**2).sum())) // 2)
        logarithm = gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum()  # of all divisions
        exact = logarithm <= math.log(_MOST_ARRANGEMENTS)
        p = _permute(values, codes, rise) if exact else float(2.0 * ndtr(-abs(z)))
    ends = [int(present[at]) for at in (-1, 0)] if present.size else [-1, 0]
    means = [values[codes == end].mean() if present.size else math.nan for end in ends]
    others = {"test": NAME, "n": codes.size, "statistic": z, "p": p, "effect_size": effect}
    return Contrast.of_means("groups", [names[end] for end in ends], means, **others)


def _count_rise(values: FloatArray, codes: AnyArray) -> int:
    """Return 2 (J - E): the pairs of different groups that rise minus those that fall."""
    from scipy.stats import kendalltau

    total = codes.size * (codes.size - 1) / 2
    ties = [np.unique(column, return_counts=True)[1] for column in (values, codes)]
    untied = [total - float((n * (n - 1.0) / 2).sum()) for n in ties]
    tau = kendalltau(codes, values, method="asymptotic").statistic
    return round(float(tau) * math.sqrt(untied[0]) * math.sqrt(untied[1]))


def _compute_variance(n: FloatArray, t: FloatArray) -> float:
    """Return V for groups of n and ties of t units."""
    total = float(n.sum())
    pairs = [float((x * (x - 1)).sum()) for x in (n, t)]
    triples = [float((x * (x - 1) * (x - 2)).sum()) for x in (n, t)]
    spread = [float((x * (x - 1) * (2 * x + 5)).sum()) for x in (np.array([total]), n, t)]
    variance = (spread[0] - spread[1] - spread[2]) / 72
    variance += pairs[0] * pairs[1] / (8 * total * (total - 1))
    if total > 2:
        variance += triples[0] * triples[1] / (36 * total * (total - 1) * (total - 2))
    return variance


def _permute(values: FloatArray, codes: AnyArray, rise: int) -> float:
    """Return the share of the divisions that rise or fall at least as much.

    Values are placed in ascending order. A state is the number of units that each group has; for
    each state the number of divisions by their rise is kept.
    """
    labels, sizes = np.unique(codes, return_counts=True)
    ways = {(0,) * labels.size: Counter({0: 1})}
    for n_tied in np.unique(values, return_counts=True)[1].tolist():
        following: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for state, counts in ways.items():
            for placed, n_ways in _place(n_tied, [*(sizes - np.array(state))]):
                # of each new unit: lower ones in groups before it rise, in groups after it fall
                step = sum(
                    k * (sum(state[:at]) - sum(state[at + 1 :])) for at, k in enumerate(placed)
                )
                target = following[tuple(np.add(state, placed).tolist())]
                for value, count in counts.items():
                    target[value + step] += count * n_ways
        ways = following
    (totals,) = ways.values()
    extreme = sum(count for value, count in totals.items() if abs(value) >= abs(rise))
    return extreme / sum(totals.values())


def _place(n: int, room: list[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield each way to place n equal units into groups, and how many divisions it stands for."""
    if len(room) == 1:
        if n <= room[0]:
            yield (n,), 1
        return
    for k in range(min(n, int(room[0])) + 1):
        for rest, ways in _place(n - k, room[1:]):
            yield (k, *rest), math.comb(n, k) * ways
