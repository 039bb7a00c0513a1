"""Why two groups differ: the part of a gap that properties of their members explain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial
from typing import Literal, TypeAlias, get_args

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, FloatArray

Method: TypeAlias = Literal["regression", "reweighting"]
METHODS: tuple[Method, ...] = get_args(Method)

_Z = 1.959963984540054
_KNOTS = (0.05, 0.35, 0.65, 0.95)
_PER_COLUMN = 10
"""The number of members of each group that a column of a curve needs."""

_POINTS, _SHARES = np.polynomial.legendre.leggauss(6)
_PATH = tuple(zip(((_POINTS + 1) / 2).tolist(), (_SHARES / 2).tolist(), strict=True))
"""Where between two groups, and with which weight, slopes are computed for their integral."""

_STEPS = 50
_SIZES = tuple(0.5**halvings for halvings in range(12))
_CLOSE = 1e-9  # of the means of columns of unit variance


def add_curves(properties: Sequence[FloatArray], in_a: BoolArray) -> list[FloatArray]:
    """Return the columns of each property, those of numbers with their natural cubic splines.

    With them a property may act by a curve, with knots at the quantiles 0.05, 0.35, 0.65 and 0.95.
    A number acts by a straight line where a group has fewer than ten members between two knots: a
    curve would go on beyond the members that show it. All do where a group has fewer than ten
    members for each column.

    Source:
        Harrell, "Regression Modeling Strategies", 2015, section 2.4.5.
    """
    curved = [np.hstack([own, *(_bend(column, in_a) for column in own.T)]) for own in properties]
    n_columns = sum(own.shape[1] for own in curved)
    least = min(np.count_nonzero(in_a), np.count_nonzero(~in_a))
    return curved if least >= _PER_COLUMN * n_columns else [*properties]


def _bend(column: FloatArray, in_a: BoolArray) -> FloatArray:
    """Return the columns of a spline beside that of the number; none for a label."""
    knots = np.unique(np.quantile(column, _KNOTS))
    if len(knots) < 3:
        return np.empty((len(column), 0))
    if min(np.histogram(column[group], knots)[0].min() for group in (in_a, ~in_a)) < _PER_COLUMN:
        return np.empty((len(column), 0))
    above = np.maximum(column[:, None] - knots, 0.0) ** 3
    slopes = (above[:, :-1] - above[:, -1:]) / (knots[-1] - knots[:-1])
    bent: FloatArray = slopes[:, :-1] - slopes[:, -1:]
    return bent


def compute_shapley(n: int, value: Callable[[tuple[int, ...]], float | FloatArray]) -> FloatArray:
    """Return the Shapley value of each of ``n`` players: its mean contribution over all orders.

        phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S + i) - v(S))

    A value may be an array: ``float64[n, ...]`` is returned. The values add up to
    ``v(all) - v(none)``. ``value`` is called for every subset, so for up to about ten players.

    >>> worth = {(): 0.0, (0,): 1.0, (1,): 2.0, (0, 1): 5.0}
    >>> compute_shapley(2, lambda chosen: worth[chosen]).tolist()
    [2.0, 3.0]

    Source:
        Shorrocks, "Decomposition procedures for distributional analysis: a unified framework based
        on the Shapley value", Journal of Economic Inequality 2013.
    """
    players = range(n)
    worth = {
        chosen: np.asarray(value(chosen))
        for size in range(n + 1)
        for chosen in combinations(players, size)
    }
    shares = np.zeros((n, *worth[()].shape))
    for chosen, total in worth.items():
        for player in set(players).difference(chosen):
            weight = factorial(len(chosen)) * factorial(n - len(chosen) - 1) / factorial(n)
            shares[player] += weight * (worth[tuple(sorted((*chosen, player)))] - total)
    return shares


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The parts of a gap, which add up to it: one for each property, and the rest.

    Args:
        parts: ``float64[properties + 1]``; the last is what the properties do not explain. NaN
            where no weights make the groups alike.
        ci_low: The lower ends of their 95% intervals; ``ci_high`` the upper ones.
    """

    gap: float
    parts: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray


def decompose_gap(
    values: FloatArray, in_a: BoolArray, properties: Sequence[FloatArray], method: Method
) -> Decomposition:
    """Return the parts of the gap ``mean_A - mean_B`` that properties explain, and the rest.

    The members of a group get weights under which the means of all columns move in a straight line
    from those of the group to those of the other. The part of a property is the integral of the
    slopes of its columns along the way, that is its Shapley value where all properties change in
    steps that are infinitely small:

        part_i = mean over A and B of the sum over columns c of i of
                 (mean_A x_c - mean_B x_c) * integral from 0 to 1 of b_c(s) ds

    b(s) are the slopes of the values on the columns among the weighted members. By ``reweighting``
    the weights are ~ exp(l' x) (entropy balancing); by ``regression`` they do not change, which is
    the method of Oaxaca and Blinder with the mean of the coefficients of both groups. Intervals
    are normal: their errors come from the influence of each member on a part (the infinitesimal
    jackknife), with residuals divided by 1 - leverage.

    Args:
        values: The value of each member, ``float64[n]``.
        in_a: Whether it is of group A.
        properties: The columns of each property, ``float64[n, columns]``.
        method: ``regression`` or ``reweighting``.

    Source:
        Oaxaca, 1973; Blinder, 1973; Reimers, "Labor market discrimination against Hispanic and
        black men", 1983; Hainmueller, "Entropy balancing for causal effects", 2012; Aumann and
        Shapley, "Values of Non-Atomic Games", 1974; Shorrocks, "Decomposition procedures for
        distributional analysis", 2013.
    """
    groups = [np.flatnonzero(in_a), np.flatnonzero(~in_a)]
    columns = np.hstack([np.empty((len(values), 0)), *properties])
    spread = columns.std(axis=0)
    columns = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    owner = np.repeat(np.arange(len(properties)), [own.shape[1] for own in properties])
    of_property = (owner[:, None] == np.arange(len(properties))).astype(np.float64)
    parts, influence = np.zeros(len(owner)), np.zeros(columns.shape)
    for sign, (own, other) in ((-0.5, groups), (0.5, groups[::-1])):
        moved = _move(values[own], columns[own], columns[other], method)
        parts += sign * moved[0]
        influence[own] += sign * moved[1]
        influence[other] += sign * moved[2]
    parts, influence = parts @ of_property, influence @ of_property
    gap = float(values[in_a].mean() - values[~in_a].mean())
    of_gap = np.where(in_a, values, -values)
    parts = np.append(parts, gap - parts.sum())
    influence = np.column_stack([influence, of_gap - influence.sum(axis=1)])
    variance = sum(influence[rows].var(axis=0, ddof=1) / len(rows) for rows in groups)
    half = _Z * np.sqrt(variance)
    return Decomposition(gap, parts, parts - half, parts + half)


def _move(
    values: FloatArray, own: FloatArray, other: FloatArray, method: Method
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what each column changes in the mean of a group that gets the means of another.

    Also the influence on it of each member of the group and of the other, ``float64[n, columns]``.
    """
    n, n_columns = own.shape
    undefined = tuple(np.full(shape, math.nan) for shape in (n_columns, own.shape, other.shape))
    if n <= n_columns + 1:
        return undefined[0], undefined[1], undefined[2]
    own_mean, other_mean = own.mean(axis=0), other.mean(axis=0)
    own, other, away = own - own_mean, other - other_mean, other_mean - own_mean
    slopes, tilt, weights = np.zeros(n_columns), np.zeros(n_columns), np.ones(n)
    of_own, of_other = np.zeros(own.shape), np.zeros(other.shape)
    for at, share in _PATH if method == "reweighting" else ((0.0, 1.0),):
        moved = own - at * away
        if method == "reweighting":
            tilt, weights = _tilt(moved, tilt)
        if np.isnan(weights).any():
            return undefined[0], undefined[1], undefined[2]
        weighted = moved * weights[:, None]
        inverse = _invert(weighted.T @ moved / n)
        slope = inverse @ (weighted.T @ values) / n
        residual = values - weights @ values / n - moved @ slope
        leverage = (weights + ((weighted @ inverse) * moved).sum(axis=1)) / n
        scaled = residual / np.maximum(1.0 - leverage, 1.0 / n)
        slopes += share * slope
        of_own += share * (weighted * scaled[:, None]) @ inverse
        if method == "reweighting":  # the weights depend on the members, and so do the slopes
            turn = inverse @ (weighted * residual[:, None]).T @ moved / n @ inverse
            of_own += share * ((1.0 - at) * own - weighted) @ turn
            of_other += share * at * other @ turn
    return slopes * away, of_own * away - own * slopes, of_other * away + other * slopes


def _tilt(columns: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return l and weights ~ exp(l' x) of mean 1 with which the mean of each column is 0, or NaN.

    They minimize ``log mean exp(l' x)``, by Newton's method from a start: the logarithm of the
    effective share of the members, of whom there must be more than columns.
    """
    tilt, level, slope = start, math.inf, 0.0
    least = math.log((columns.shape[1] + 1) / len(columns))
    step: FloatArray = np.zeros(start.shape)
    for _ in range(_STEPS):
        for size in _SIZES:
            exponents = columns @ (tilt - size * step)
            largest = float(exponents.max())
            raised = np.exp(exponents - largest)
            reached = largest + math.log(raised.mean())
            if reached <= level - 1e-4 * size * slope + 1e-12:
                break
        if reached < least:
            break
        tilt, level, weights = tilt - size * step, reached, raised / raised.mean()
        gradient = weights @ columns / len(columns)
        if np.abs(gradient).max(initial=0.0) < _CLOSE:
            return tilt, weights
        centred = columns - gradient
        curvature = (centred * weights[:, None]).T @ centred / len(columns)
        step = _invert(curvature) @ gradient
        slope = float(gradient @ step)
    return start, np.full(len(columns), math.nan)


def _invert(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a covariance; columns that say the same share their slope."""
    return np.asarray(np.linalg.pinv(matrix, rcond=_CLOSE, hermitian=True), dtype=np.float64)


# ---- who is worst off ----


_Rule: TypeAlias = tuple[tuple[int, str, float], ...]


@dataclass(frozen=True, eq=False)
class Leaf:
    """A group that a tree found in one half of the members, tested in the other half.

    Args:
        rule: The conditions of the group, as (column, "<=" or ">", bound).
        rows: The members in the other half.
        mean: Their mean, and that of the others of the half; ``difference`` with its interval.
        p: The p-value of Welch's test, ``p_adjusted`` by Holm over all groups of the tree.
    """

    rule: _Rule
    rows: AnyArray
    mean: float
    others: float
    ci_low: float
    ci_high: float
    p: float
    p_adjusted: float

    @property
    def difference(self) -> float:
        """The mean of the group less that of the others."""
        return self.mean - self.others


def find_honest_groups(
    values: FloatArray, columns: FloatArray, rng: np.random.Generator, *, most: int = 6
) -> list[Leaf]:
    """Return the groups of a tree over columns, the one with the lowest mean first.

    The tree is grown on a random half of the members, the means and tests are those of the other
    half, so that no group is chosen by the values it is tested with. A leaf is split where the
    squared error falls most, until there are ``most`` leaves; none has fewer than 20 members, or
    than a twentieth of the half.

    Source:
        Athey and Imbens, "Recursive partitioning for heterogeneous causal effects", PNAS 2016.
    """
    from scipy.stats import ttest_ind

    order = rng.permutation(len(values))
    grown, tested = order[: len(order) // 2], np.sort(order[len(order) // 2 :])
    leaves = []
    rules = _grow_tree(values[grown], columns[grown], max(20, len(grown) // 20), most)
    for rule in rules if len(rules) > 1 else ():
        inside = np.ones(len(tested), dtype=bool)
        for column, sign, bound in rule:
            inside &= (columns[tested, column] <= bound) == (sign == "<=")
        own, others = values[tested[inside]], values[tested[~inside]]
        if min(len(own), len(others)) < 2 or not (own.std() or others.std()):
            continue
        test = ttest_ind(own, others, equal_var=False)
        low, high = map(float, test.confidence_interval())
        means, p = (float(own.mean()), float(others.mean())), float(test.pvalue)
        leaves.append(Leaf(rule, tested[inside], *means, low, high, p, p))
    leaves.sort(key=lambda leaf: leaf.p)
    steps = [min(1.0, leaf.p * (len(leaves) - at)) for at, leaf in enumerate(leaves)]
    adjusted = np.maximum.accumulate(steps).tolist() if steps else []
    named = [replace(leaf, p_adjusted=p) for leaf, p in zip(leaves, adjusted, strict=True)]
    return sorted(named, key=lambda leaf: leaf.mean)


def _grow_tree(values: FloatArray, columns: FloatArray, least: int, most: int) -> list[_Rule]:
    """Return the conditions of each leaf, of a column the closest ones."""
    leaves: list[tuple[AnyArray, dict[tuple[int, str], float]]] = [(np.arange(len(values)), {})]
    while len(leaves) < most:
        splits = [_find_split(values[rows], columns[rows], least) for rows, _ in leaves]
        at = max(range(len(leaves)), key=lambda leaf: splits[leaf][0])
        gain, column, bound = splits[at]
        if gain <= 0:
            break
        rows, bounds = leaves.pop(at)
        below = columns[rows, column] <= bound
        leaves.append((rows[below], {**bounds, (column, "<="): bound}))
        leaves.append((rows[~below], {**bounds, (column, ">"): bound}))
    return [tuple((*place, bound) for place, bound in sorted(own.items())) for _, own in leaves]


def _find_split(values: FloatArray, columns: FloatArray, least: int) -> tuple[float, int, float]:
    """Return the largest fall of the squared error by one split, its column and its bound."""
    n, best = len(values), (0.0, 0, 0.0)
    if n < 2 * least:
        return best
    left = np.arange(least, n - least + 1)
    for column in range(columns.shape[1]):
        order = np.argsort(columns[:, column], kind="stable")
        ordered, sums = columns[order, column], np.cumsum(values[order])
        total = sums[-1]
        gains = sums[left - 1] ** 2 / left + (total - sums[left - 1]) ** 2 / (n - left)
        gains[ordered[left - 1] == ordered[np.minimum(left, n - 1)]] = -np.inf
        at = int(np.argmax(gains))
        gain = float(gains[at] - total**2 / n)
        if gain > best[0] + 1e-12:
            bound = (ordered[left[at] - 1] + ordered[min(left[at], n - 1)]) / 2
            best = gain, column, float(bound)
    return best
