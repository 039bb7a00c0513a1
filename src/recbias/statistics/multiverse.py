"""One claim in many universes: its estimate in each, one joint test, and which choice decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, FloatArray
from recbias.core.measures import compute_wilson_interval
from recbias.statistics.intervals import compare_shares

_BLOCK = 2**24
"""The most signs or labels that are held at a time."""

_SIGNIFICANT = 1.959963984540054
_N_PARTS = 40
"""The largest number of parts of the jackknife."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The values by unit that a claim compares, in every universe.

    Without groups the estimate is the mean of ``first - second``; with groups it is the
    gap of ``first`` less that of ``second``, where a gap is the mean of group 1 less that of
    group 0, without its sign if ``absolute``.

    Args:
        first: The values of the model, ``float64[universes, units]``; NaN where undefined.
        second: Those of the model that it is compared with, or of a number; None for nothing.
        groups: The group of each unit, ``int8[universes, units]``: 1, 0, or -1 for neither; None
            for a claim about all units.
        absolute: Whether gaps have no sign.
    """

    first: FloatArray
    second: FloatArray | None = None
    groups: AnyArray | None = None
    absolute: bool = False

    def select(self, universes: AnyArray) -> Contrasts:
        """Return some of the universes."""
        second = None if self.second is None else self.second[universes]
        groups = None if self.groups is None else self.groups[universes]
        return Contrasts(self.first[universes], second, groups, self.absolute)

    @property
    def defined(self) -> BoolArray:
        """Which units have all values and a group, ``bool[universes, units]``."""
        defined: BoolArray = ~np.isnan(self.first)
        if self.second is not None:
            defined &= ~np.isnan(self.second)
        return defined if self.groups is None else defined & (self.groups >= 0)


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimate of each universe with its standard error, degrees of freedom and units.

    ``ends`` are those of the 95% intervals, and ``p`` is two-sided: NaN without spread.
    """

    value: FloatArray
    error: FloatArray
    df: FloatArray
    n: AnyArray
    ends: tuple[FloatArray, FloatArray]
    p: FloatArray


def estimate(contrasts: Contrasts) -> Estimates:
    """Return the estimate of each universe: a paired t-test, or Welch's between two groups.

    The difference of two absolute gaps is linear in the values where the signs of both gaps are
    known, and its error is that of the values with these signs. Of values of 0 and 1, the interval
    of the gap of one model is Newcombe's, and that of one mean is Wilson's, both with their p.

    >>> first = np.array([[1.0, 0.0, 1.0, 1.0]])
    >>> estimates = estimate(Contrasts(first, np.zeros_like(first)))
    >>> estimates.value.tolist(), estimates.error.tolist(), estimates.df.tolist()
    ([0.75], [0.25], [3.0])
    """
    defined = contrasts.defined
    columns = np.full((6, len(defined)), math.nan)
    for row, used in enumerate(defined):
        first = contrasts.first[row, used]
        second = None if contrasts.second is None else contrasts.second[row, used]
        in_one = None if contrasts.groups is None else contrasts.groups[row, used] == 1
        is_absolute = contrasts.absolute and in_one is not None
        columns[:, row] = _estimate_one(first, second, in_one, absolute=is_absolute)
        if len(first) > 1 and np.isin(first, (0.0, 1.0)).all() and not is_absolute:
            columns[3:, row] = _compare_shares(first, second, in_one, columns[3:, row])
    value, error, df, low, high, p = columns
    return Estimates(value, error, df, defined.sum(axis=1), (low, high), p)


def _estimate_one(
    first: FloatArray, second: FloatArray | None, in_one: BoolArray | None, *, absolute: bool
) -> tuple[float, ...]:
    """Return the estimate of a universe, its error and df, both ends and p."""
    from scipy.special import stdtr, stdtrit

    groups = [np.ones(len(first), dtype=bool)] if in_one is None else [in_one, ~in_one]
    if not all(rows.any() for rows in groups):
        return (math.nan,) * 6
    models = [first, np.zeros_like(first) if second is None else second]
    if absolute and in_one is not None:
        models = [
            values * np.sign(np.subtract(*(values[rows].mean() for rows in groups)))
            for values in models
        ]
    sides = [(models[0] - models[1])[rows] for rows in groups]
    value, *other = (float(side.mean()) for side in sides)
    error, *more = (
        float(side.std(ddof=1)) / math.sqrt(len(side)) if len(side) > 1 else math.nan
        for side in sides
    )
    df = len(first) - 1.0
    if other:
        variances = np.array([error**2, more[0] ** 2])
        total, sizes = float(variances.sum()), np.array([len(side) for side in sides])
        shares = float((variances**2 / np.maximum(sizes - 1, 1)).sum())
        value, error = value - other[0], math.sqrt(total)
        df = total**2 / shares if total else math.nan
    half = float(stdtrit(df, 0.975)) * error
    p = 2.0 * float(stdtr(df, -abs(value) / error)) if error > 0 else math.nan
    return value, error, df, value - half, value + half, p


def _compare_shares(
    first: FloatArray, second: FloatArray | None, in_one: BoolArray | None, others: FloatArray
) -> tuple[float, ...]:
    """Return both ends and p of values of 0 and 1, of one model; those of ``others`` else."""
    from scipy.special import ndtr

    if in_one is None:
        than = 0.0 if second is None else float(second[0])
        if second is not None and np.ptp(second):
            return (*others,)
        share, n = float(first.mean()), len(first)
        low, high = compute_wilson_interval(share, n)
        error = math.sqrt(max(than * (1 - than), 0.0) / n)
        p = 2.0 * float(ndtr(-abs(share - than) / error)) if error else math.nan
        return low - than, high - than, p
    sizes = int(in_one.sum()), int((~in_one).sum())
    if second is not None or min(sizes) < 2:
        return (*others,)
    found = compare_shares(first[in_one].mean(), sizes[0], first[~in_one].mean(), sizes[1])
    return (*(float(each) for each in found),)


# ---- one test over all universes ----


@dataclass(frozen=True)
class JointTest:
    """A test of the claim in all universes together.

    Args:
        p: The one-sided p-value of each statistic: ``mean_z``, ``median_z``, ``significant``.
        statistics: Their values; a z is an estimate divided by its standard deviation over the
            permutations, ``significant`` the share of universes with |z| > 1.96 as claimed.
        n_permutations: The number of permutations.
    """

    p: dict[str, float]
    statistics: dict[str, float]
    n_permutations: int


def compute_joint_test(
    contrasts: Contrasts, rng: np.random.Generator, *, higher: bool = True, n: int = 2_000
) -> JointTest:
    """Return the joint test of "no universe has an effect" against the claimed direction.

    Under the null hypothesis the two models of a unit can be exchanged, or, without a second one,
    the labels of the units. They are exchanged by unit, in all universes at once, so that the
    correlation of universes is kept:

        z_u = T_u / sd(T_u*)        p = (1 + #{S* >= S}) / (n + 1)

    T_u is the estimate of universe u, T_u* that of a permutation, S a statistic of all z.
    Universes without an estimate are left out.

    Source:
        Simonsohn, Simmons and Nelson, "Specification curve analysis", Nature Human Behaviour 2020.
    """
    contrasts = contrasts.select(np.flatnonzero(~np.isnan(estimate(contrasts).value)))
    estimated = estimate(contrasts).value
    permuted = np.hstack([*_permute(contrasts, rng, n)])
    spread = permuted.std(axis=1)
    moves = spread > 0
    sign = 1.0 if higher else -1.0
    observed = sign * estimated[moves] / spread[moves]
    null = sign * permuted[moves] / spread[moves, None]
    if not moves.any():
        return JointTest({}, {}, n)
    statistics, p = {}, {}
    for name, summarize in _STATISTICS.items():
        statistics[name] = float(summarize(observed[:, None])[0])
        reached = np.count_nonzero(summarize(null) >= statistics[name] - 1e-12)
        p[name] = (1 + int(reached)) / (n + 1)
    return JointTest(p, statistics, n)


_STATISTICS: dict[str, Any] = {
    "mean_z": lambda z: z.mean(axis=0),
    "median_z": lambda z: np.median(z, axis=0),
    "significant": lambda z: (z > _SIGNIFICANT).mean(axis=0),
}


def _permute(contrasts: Contrasts, rng: np.random.Generator, n: int) -> Any:
    """Yield the estimates of permutations, ``float64[universes, permutations]``, in blocks."""
    n_units = contrasts.first.shape[1]
    size = max(1, min(n, _BLOCK // max(n_units, 1)))
    for start in range(0, n, size):
        drawn = min(size, n - start)
        if contrasts.second is not None:
            yield _exchange_models(contrasts, contrasts.second, rng, drawn)
        elif contrasts.groups is not None:
            yield _exchange_labels(contrasts, contrasts.groups, rng, drawn)


def _exchange_models(
    contrasts: Contrasts, second: FloatArray, rng: np.random.Generator, n: int
) -> FloatArray:
    """Return the estimates with the models of random units exchanged."""
    used = contrasts.defined
    signs = rng.integers(0, 2, size=(used.shape[1], n), dtype=np.int8) * np.float64(2) - 1
    half = np.where(used, (contrasts.first - second) / 2, 0.0)
    if contrasts.groups is None:
        means: FloatArray = 2 * (half @ signs) / used.sum(axis=1)[:, None]
        return means
    middle = np.where(used, (contrasts.first + second) / 2, 0.0)
    moved, fixed = np.zeros((len(used), n)), np.zeros((len(used), 1))
    for group, sign in ((1, 1.0), (0, -1.0)):
        members = used & (contrasts.groups == group)
        counts = members.sum(axis=1)[:, None]
        moved += sign * (np.where(members, half, 0.0) @ signs) / counts
        fixed += sign * np.where(members, middle, 0.0).sum(axis=1)[:, None] / counts
    gaps = np.abs(fixed + moved) - np.abs(fixed - moved)
    estimates: FloatArray = gaps if contrasts.absolute else 2 * moved
    return estimates


def _exchange_labels(
    contrasts: Contrasts, groups: AnyArray, rng: np.random.Generator, n: int
) -> FloatArray:
    """Return the gaps with the labels of the units in random order, the same in all universes."""
    used, keys = contrasts.defined, rng.random((contrasts.first.shape[1], n))
    values = np.where(used, contrasts.first, 0.0)
    labels, universes = np.unique(groups, axis=0, return_inverse=True)
    permuted = np.empty((len(used), n))
    for at, row in enumerate(labels):
        rows = np.flatnonzero(universes.ravel() == at)
        labelled = np.flatnonzero(row >= 0)
        members = np.zeros(keys.shape)
        order = np.argsort(keys[labelled], axis=0)
        np.put_along_axis(
            members, labelled[order], row[labelled].astype(np.float64)[:, None], axis=0
        )
        present = used[rows].astype(np.float64)
        n_one, n_all = present @ members, present.sum(axis=1)[:, None]
        sum_one, sum_all = values[rows] @ members, values[rows].sum(axis=1)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps = sum_one / n_one - (sum_all - sum_one) / (n_all - n_one)
        permuted[rows] = np.nan_to_num(np.abs(gaps) if contrasts.absolute else gaps)
    return permuted


# ---- which choice decides ----


@dataclass(frozen=True)
class Share:
    """The share of the variance of the estimate that a choice, or a pair of choices, explains."""

    choices: tuple[int, ...]
    share: float
    ci_low: float = math.nan
    ci_high: float = math.nan


def decompose_variance(values: FloatArray, options: AnyArray) -> list[Share]:
    """Return the shares of the variance that choices and pairs of them explain, by least squares.

        share = (RSS of the model without the term - RSS of the model with it) / total SS

    The model has all choices as factors; pairs are added where there are twice as many universes
    as terms. In a full factorial this is the functional analysis of variance. Intervals are those
    of the jackknife over universes, in at most 40 parts.

    Args:
        values: The estimate of each universe, ``float64[u]``.
        options: The option of each choice, ``int[u, choices]``.

    Source:
        Hutter, Hoos and Leyton-Brown, "An efficient approach for assessing hyperparameter
        importance", ICML 2014.
    """
    terms = _list_terms(options)
    shares = _explain(values, options, terms)
    n_parts = min(_N_PARTS, len(values))
    part = np.arange(len(values)) % n_parts
    left_out = np.array(
        [_explain(values[part != at], options[part != at], terms) for at in range(n_parts)]
    )
    centred = left_out - left_out.mean(axis=0)
    errors = np.sqrt((n_parts - 1) / n_parts * (centred**2).sum(axis=0))
    return [
        Share(
            term,
            share,
            max(share - _SIGNIFICANT * error, 0.0),
            min(share + _SIGNIFICANT * error, 1.0),
        )
        for term, share, error in zip(terms, shares.tolist(), errors.tolist(), strict=True)
    ]


def _list_terms(options: AnyArray) -> list[tuple[int, ...]]:
    """Return the choices that vary, and their pairs if there are universes enough."""
    counts = {at: len(np.unique(column)) for at, column in enumerate(options.T)}
    mains: list[tuple[int, ...]] = [(at,) for at, n in counts.items() if n > 1]
    pairs = list(combinations([at for (at,) in mains], 2))
    n_terms = sum(math.prod(counts[at] - 1 for at in term) for term in (*mains, *pairs))
    return [*mains, *pairs] if len(options) >= 2 * (n_terms + 1) else mains


def _explain(
    values: FloatArray, options: AnyArray, terms: Sequence[tuple[int, ...]]
) -> FloatArray:
    centred = values - values.mean()
    total = float(centred @ centred)
    if not total:
        return np.zeros(len(terms))
    columns = {term: _code_term(options, term) for term in terms}
    residuals = {}
    for used in (1, 2):
        model = [term for term in terms if len(term) <= used]
        full = _fit_residual(values, [columns[term] for term in model])
        for term in model:
            if len(term) == used:
                rest = [columns[other] for other in model if other != term]
                residuals[term] = _fit_residual(values, rest) - full
    return np.array([max(residuals[term], 0.0) / total for term in terms])


def _code_term(options: AnyArray, term: tuple[int, ...]) -> FloatArray:
    """Return the columns of a factor, or the products of those of two."""
    columns = np.ones((len(options), 1))
    for at in term:
        codes = options[:, at]
        own = (codes[:, None] == np.unique(codes)[1:]).astype(np.float64)
        own -= own.mean(axis=0)
        columns = (columns[:, :, None] * own[:, None, :]).reshape(len(options), -1)
    return columns


def _fit_residual(values: FloatArray, columns: Sequence[FloatArray]) -> float:
    """Return the residual sum of squares of a least-squares fit with an intercept."""
    design = np.hstack([np.ones((len(values), 1)), *columns])
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    rest = values - design @ solution
    return float(rest @ rest)
