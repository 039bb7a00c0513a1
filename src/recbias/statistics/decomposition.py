"""Why two groups differ: the part of a gap that properties of their members explain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial
from typing import TypeAlias

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, FloatArray

Explain: TypeAlias = Callable[[FloatArray, BoolArray, FloatArray, FloatArray], float]
"""The part of a gap that columns explain: of values, members of group A, columns and weights."""

_STEPS = 25
_RIDGE = 1e-6  # of the logistic regression, on columns of unit variance
_LEAST_ODDS, _MOST_ODDS = 1e-3, 1e3


def explain_by_regression(
    values: FloatArray, in_a: BoolArray, columns: FloatArray, weights: FloatArray
) -> float:
    """Return the part of a gap that columns explain, by the regression of group B.

        (mean_A x - mean_B x)' b_B

    b_B are the least-squares coefficients among the members of B, so that the part is what B would
    gain with the properties of A. ``weights`` are those of the members.

    Source:
        Blinder, "Wage discrimination: reduced form and structural estimates", 1973; Oaxaca, 1973.
    """
    if not columns.shape[1]:
        return 0.0
    rows = ~in_a
    mean_a, mean_b = (weights[side] @ columns[side] / weights[side].sum() for side in (in_a, rows))
    centred = columns[rows] - mean_b
    residual = values[rows] - weights[rows] @ values[rows] / weights[rows].sum()
    scaled = centred * weights[rows, None]
    coefficients = np.linalg.lstsq(scaled.T @ centred, scaled.T @ residual, rcond=None)[0]
    return float((mean_a - mean_b) @ coefficients)


def explain_by_reweighting(
    values: FloatArray, in_a: BoolArray, columns: FloatArray, weights: FloatArray
) -> float:
    """Return the part of a gap that columns explain, with B weighted to the properties of A.

        mean_B (w y) - mean_B y,    w = p(A | x) / p(B | x)

    The odds come from a logistic regression on the columns.

    Source:
        DiNardo, Fortin and Lemieux, "Labor market institutions and the distribution of wages",
        Econometrica 1996.
    """
    if not columns.shape[1]:
        return 0.0
    spread = columns.std(axis=0)
    design = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    design = np.hstack([np.ones((len(design), 1)), design])
    coefficients = np.zeros(design.shape[1])
    penalty = np.full(len(coefficients), _RIDGE * weights.sum())
    penalty[0] = 0.0
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(design @ coefficients, -30, 30)))
        gradient = design.T @ (weights * (in_a - p)) - penalty * coefficients
        curvature = (design * (weights * p * (1 - p))[:, None]).T @ design + np.diag(
            penalty + 1e-12
        )
        step = np.linalg.solve(curvature, gradient)
        coefficients += step
        if np.abs(step).max() < 1e-8:
            break
    odds = np.exp(design[~in_a] @ coefficients)
    own, of_b = weights[~in_a], values[~in_a]
    moved = own * np.clip(odds / odds.mean(), _LEAST_ODDS, _MOST_ODDS)
    return float(moved @ of_b / moved.sum() - own @ of_b / own.sum())


METHODS: Mapping[str, Explain] = {
    "regression": explain_by_regression,
    "reweighting": explain_by_reweighting,
}


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
        parts: ``float64[properties + 1]``; the last is what the properties do not explain.
        ci_low: The lower ends of their 95% bootstrap intervals; ``ci_high`` the upper ones.
    """

    gap: float
    parts: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray


def decompose_gap(
    values: FloatArray,
    in_a: BoolArray,
    properties: Sequence[FloatArray],
    method: str,
    rng: np.random.Generator,
    n_resamples: int = 200,
) -> Decomposition:
    """Return the parts of the gap ``mean_A - mean_B`` that properties explain, and the rest.

    The part of a property is its Shapley value over the orders in which properties are added to
    the explanation; intervals are percentiles of resamples of the members within each group.

    Args:
        values: The value of each member, ``float64[n]``.
        in_a: Whether it is of group A.
        properties: The columns of each property, ``float64[n, columns]``.
        method: ``regression`` or ``reweighting``.
        rng: Draws the resamples.
        n_resamples: Their number.
    """
    gap, parts = _decompose(values, in_a, properties, method)
    members = [np.flatnonzero(rows) for rows in (in_a, ~in_a)]
    resampled = []
    for _ in range(n_resamples):
        rows = np.concatenate([rng.choice(own, len(own)) for own in members])
        own = [columns[rows] for columns in properties]
        resampled.append(_decompose(values[rows], in_a[rows], own, method)[1])
    low, high = np.quantile(resampled, [0.025, 0.975], axis=0)
    return Decomposition(gap, parts, low, high)


def _decompose(
    values: FloatArray, in_a: BoolArray, properties: Sequence[FloatArray], method: str
) -> tuple[float, FloatArray]:
    gap = float(values[in_a].mean() - values[~in_a].mean())
    explain, weights = METHODS[method], np.ones(len(values))
    nothing: FloatArray = np.empty((len(values), 0))

    def explain_subset(chosen: tuple[int, ...]) -> float:
        columns = np.hstack([nothing, *(properties[at] for at in chosen)])
        return explain(values, in_a, columns, weights)

    parts = compute_shapley(len(properties), explain_subset)
    return gap, np.append(parts, gap - parts.sum())


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
