"""Why two groups differ: the part of a gap that properties of their members explain.

Why values differ: the variance components of a crossed design, which are label, name within label,
template and residual.
"""

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


# ---- variance components of a crossed design ----

PARTS = ("label", "name", "template", "rest")
"""The components, in the order of the sequential sums of squares."""


@dataclass(frozen=True, eq=False)
class CrossedDesign:
    """Values by name and template, names nested in labels.

    ``n`` and ``sums`` are those of the values of each cell, ``float64[names, templates]``;
    ``squares`` the sums of squares of each name, and ``labels`` its label, from 0.
    """

    n: FloatArray
    sums: FloatArray
    squares: FloatArray
    labels: AnyArray

    @classmethod
    def from_values(
        cls, values: FloatArray, names: AnyArray, templates: AnyArray, labels: AnyArray
    ) -> CrossedDesign:
        """Return the design of single values, with the name and template of each, from 0.

        Values of NaN, and names without a value, are excluded; ``labels`` are those of the names.
        """
        defined = ~np.isnan(values)
        values, names, templates = values[defined], names[defined], templates[defined]
        if values.size:
            values = values - values.mean()  # sums of centred values keep their digits
        shape = (labels.size, int(templates.max(initial=-1)) + 1)
        cells = names * shape[1] + templates
        n = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        sums = np.bincount(cells, weights=values, minlength=n.size).reshape(shape)
        squares = np.bincount(names, weights=values**2, minlength=labels.size)
        rows, columns = n.sum(axis=1) > 0, n.sum(axis=0) > 0
        return cls(n[rows][:, columns], sums[rows][:, columns], squares[rows], labels[rows])

    @property
    def label_members(self) -> BoolArray:
        """The names of each label, ``bool[labels, names]``."""
        members: BoolArray = np.unique(self.labels)[:, None] == self.labels[None, :]
        return members


def compute_sums_of_squares(
    design: CrossedDesign, weights: FloatArray | None = None
) -> FloatArray:
    """Return the sequential sums of squares of the four components, ``float64[b, 4]``.

    Each sum of squares is the reduction of the residual by its factor after those before it: label
    means, then name means within labels, then template effects; the residual is the remainder. In
    a balanced design the order does not matter. ``weights`` are the counts of each name in each
    sample, ``float64[b, names]``; by default one sample with all names once.

    >>> values, names = np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1])
    >>> templates, labels = np.array([0, 1, 0, 1]), np.array([0, 1])
    >>> design = CrossedDesign.from_values(values, names, templates, labels)
    >>> compute_sums_of_squares(design).round(9).tolist()  # label means 1.5, 4.5; total 14
    [[9.0, 0.0, 4.0, 1.0]]

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, chapters 4 and 5.
    """
    weights_by_sample = np.ones((1, len(design.labels))) if weights is None else weights
    n, sums = design.n.sum(axis=1), design.sums.sum(axis=1)
    members = design.label_members.T.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (weights_by_sample @ sums) ** 2 / (weights_by_sample @ n)
        label = np.nan_to_num(
            ((weights_by_sample * sums) @ members) ** 2 / ((weights_by_sample * n) @ members)
        )
    label_total, name_total = label.sum(axis=1), weights_by_sample @ (sums**2 / n)
    template = _template_squares(design, weights_by_sample)
    total = weights_by_sample @ design.squares
    residual = np.maximum(total - name_total - template, 0.0)
    squares = np.stack([label_total - mean, name_total - label_total, template, residual], axis=1)
    return np.where(np.abs(squares) < _TINY * total[:, None], 0.0, squares)


def estimate_components(design: CrossedDesign, weights: FloatArray | None = None) -> FloatArray:
    """Return the variance components of a balanced design by the method of moments, ``[b, 4]``.

        rest = MS_r,    template = (MS_t - MS_r) / (r N),    name = (MS_n - MS_r) / (r T),
        label = (MS_l - MS_n) / (r T n0),    n0 = (N - Σ n_l² / N) / (L - 1)

    for N names of L labels, n_l each, T templates and r values per cell; MS are the mean squares
    of a balanced design. Negative components are set to 0. With one name per label there is no
    MS_n: the component of the name is 0 and that of the label includes it. NaN if a mean square
    has no degrees of freedom. ``weights`` are as for ``compute_sums_of_squares``.

    Source:
        Searle, Casella and McCulloch, "Variance Components", 1992, section 4.4.
    """
    weights_by_sample = np.ones((1, len(design.labels))) if weights is None else weights
    squares = compute_sums_of_squares(design, weights_by_sample)
    sizes = weights_by_sample @ design.label_members.T
    n, labels = sizes.sum(axis=1), (sizes > 0).sum(axis=1)
    templates, repeats = design.n.shape[1], float(design.n.flat[0])
    df_rest = repeats * n * templates - n - templates + 1.0
    df = np.stack([labels - 1.0, n - labels, np.full(len(n), templates - 1.0), df_rest], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = squares / np.where(df > 0, df, np.nan)
        size = (n - (sizes**2).sum(axis=1) / n) / (labels - 1.0)
        of_name = np.where(df[:, 1] > 0, mean[:, 1], mean[:, 3])
        label = (mean[:, 0] - of_name) / (repeats * templates * size)
        name = (of_name - mean[:, 3]) / (repeats * templates)
        template = (mean[:, 2] - mean[:, 3]) / (repeats * n)
    components = np.stack([label, name, template, mean[:, 3]], axis=1)
    return np.asarray(np.maximum(components, 0.0))


_TINY = 1e-13
"""A sum of squares below this share of the total is a rounding error."""


def _template_squares(design: CrossedDesign, weights: FloatArray) -> FloatArray:
    """Return the sum of squares of templates given the names, ``float64[b]``."""
    n = design.n.sum(axis=1)
    shares = design.n / n[:, None]
    residues = design.sums - shares * design.sums.sum(axis=1)[:, None]
    diagonal = weights @ design.n
    shared = weights @ (design.n[:, :, None] * shares[:, None, :]).reshape(len(n), -1)
    templates = diagonal.shape[1]
    normal = diagonal[:, :, None] * np.eye(templates) - shared.reshape(-1, templates, templates)
    right = weights @ residues
    inverse = np.linalg.pinv(normal, rcond=1e-10, hermitian=True)
    return np.asarray(np.einsum("bi,bij,bj->b", right, inverse, right))
