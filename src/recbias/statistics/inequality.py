"""Inequality of counts (Gini, entropy, Jain, head, power law), and of groups of queries.

``fit_power_law`` estimates the exponent of the distribution, P(φ = x) ~ x^-α; ``zipf_exponent``
that of popularity by rank, φ_(r) ~ r^-s. An exact power law has s = 1 / (α - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Matrix, divide
from recbias.core.grouping import Groups
from recbias.core.measures import Direction, Measurement
from recbias.statistics.bootstrap import resample_group_sums
from recbias.statistics.groups import Members, compute_moments, estimate_gap_interval
from recbias.statistics.intervals import compute_sample_interval


def gini(counts: npt.ArrayLike) -> FloatArray:
    """Return the Gini index: 0 if all counts are equal, near 1 if one count has the total.

        G = Σ_i (2 i - n - 1) x_i / (n Σ_i x_i),    x sorted ascending, i from 1

    The maximum, (n - 1) / n, is reached if only one of n counts is above 0. NaN where all counts
    ``(..., n)``, which must not be negative, are 0.

    >>> float(gini([1, 1, 1])), float(gini([0, 0, 0, 8]))
    (0.0, 0.75)

    Source:
        Gini, "Variabilità e mutabilità", 1912; in this form in Sen, "On Economic Inequality",
        1973, p. 31.
    """
    ordered = _sort_ascending(np.asarray(counts))
    n = ordered.shape[-1]
    weights = 2.0 * np.arange(1, n + 1) - n - 1
    return divide(ordered @ weights, n * ordered.sum(axis=-1))


def entropy(counts: npt.ArrayLike) -> FloatArray:
    """Return the Shannon entropy of the shares of the counts, in nats.

        H = -Σ_i p_i ln p_i,    p_i = x_i / Σ_j x_j,    0 ln 0 = 0

    It is 0 if only one count is above 0, and ln n if n counts are equal. Divide by ln 2 for bits.
    NaN where all counts ``(..., n)``, which must not be negative, are 0.

    >>> bool(np.isclose(entropy([3, 3]), np.log(2)))
    True

    Source:
        Shannon, "A Mathematical Theory of Communication", 1948, section 6.
    """
    values = np.asarray(counts, dtype=np.float64)
    shares = divide(values, values.sum(axis=-1, keepdims=True))
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(np.abs(-(shares * logs).sum(axis=-1)))  # abs turns -0.0 into 0.0


def head(
    counts: AnyArray, share: float, *, of: Literal["interactions", "items"] = "interactions"
) -> BoolArray:
    """Mark the head: the smallest set of most popular items that reaches a share, ``bool[n]``.

    The share is of all interactions or of the number of items. Ties in ``counts`` go to the lower
    code; the remaining items are the long tail.

    >>> head(np.array([1, 5, 4]), 0.6).tolist()
    [False, True, True]
    >>> head(np.array([1, 5, 4]), 0.3, of="items").tolist()
    [False, True, False]
    """
    counts = np.asarray(counts)
    order = np.argsort(-counts, kind="stable")
    totals = np.cumsum(counts[order]) if of == "interactions" else np.arange(1, counts.size + 1)
    target = share * totals[-1] if totals.size else 0.0
    is_head = np.zeros(counts.size, dtype=bool)
    if target > 0:
        n_head = np.searchsorted(totals, target - 1e-9 * max(target, 1.0)) + 1
        is_head[order[:n_head]] = True
    return is_head


def _sort_ascending(values: AnyArray) -> FloatArray:
    """Return the values sorted along the last axis; small whole numbers by radix sort."""
    if values.dtype.kind in "iu" and values.size and values.min() >= 0:
        largest = values.max()
        if largest < 2**15:
            ordered = np.sort(values.astype(np.int16), axis=-1, kind="stable")
            return ordered.astype(np.float64)
        values = values.astype(np.int32) if largest < 2**31 else values
    return np.sort(values, axis=-1).astype(np.float64)


def jain(counts: AnyArray) -> FloatArray:
    """Return Jain's index: 1 if all counts are equal, 1/n if one of n counts has the total.

        J = (Σ_i x_i)² / ( n Σ_i x_i² )

    NaN where all counts ``(..., n)``, which must not be negative, are 0.

    >>> float(jain(np.array([2, 2, 2, 2]))), float(jain(np.array([0, 0, 0, 8])))
    (1.0, 0.25)

    Source:
        Jain, Chiu and Hawe, DEC TR-301, 1984.
    """
    values = np.asarray(counts, dtype=np.float64)
    squares = np.einsum("...i,...i->...", values, values) * values.shape[-1]
    return divide(values.sum(axis=-1) ** 2, squares)


def cover(counts: AnyArray) -> FloatArray:
    """Return the share of the counts ``(..., n)`` that are above 0.

    >>> float(cover(np.array([5, 0, 2, 1])))
    0.75
    """
    return np.asarray(np.count_nonzero(counts, axis=-1) / np.shape(counts)[-1])


def fair_share(counts: AnyArray) -> FloatArray:
    """Return the share of the counts that are at least the total divided by n, rounded down.

    NaN where all counts ``int (..., n)``, which must not be negative, are 0.

    >>> float(fair_share(np.array([5, 2, 2, 1])))  # 10 // 4 is 2
    0.75
    """
    totals = counts.sum(axis=-1, keepdims=True)
    shares = np.mean(counts >= totals // counts.shape[-1], axis=-1)
    return np.asarray(np.where(totals[..., 0] > 0, shares, np.nan))


def make_even_counts(totals: AnyArray, n: int) -> AnyArray:
    """Return the counts of n items that distribute each total most evenly, ``int (t, n)``.

    >>> make_even_counts(np.array([7]), 3).tolist()
    [[3, 2, 2]]
    """
    totals = np.asarray(totals)[:, None]
    return np.asarray(totals // n + (np.arange(n) < totals % n))


def make_uneven_counts(lengths: AnyArray, n: int) -> AnyArray:
    """Return the counts of n items if all lists begin with the same items, ``int (t, n)``.

    No lists of these lengths, each of distinct items, distribute the recommendations less evenly.

    Args:
        lengths: The number of lists with at least 1, 2, ... items, ``int (t, k)``.
        n: The number of items, at least the length of the longest list.

    >>> make_uneven_counts(np.array([[3, 3, 1]]), 5).tolist()
    [[3, 3, 1, 0, 0]]

    Source:
        The conjugate sequence: Marshall, Olkin and Arnold, "Inequalities: theory of majorization
        and its applications", 2011, section 7.C.
    """
    columns = lengths[:, :n]
    return np.pad(columns, ((0, 0), (0, n - columns.shape[1])))


def cover_without_rows(rows: Matrix) -> FloatArray:
    """Return ``cover`` of the sums without each row of a CSR matrix ``(q, n)``, ``float64[q]``.

    >>> from scipy.sparse import csr_array
    >>> cover_without_rows(csr_array([[1, 1], [1, 0]])).tolist()
    [0.5, 1.0]
    """
    counts = _sum_columns(rows)
    return np.asarray(_sum_without_rows(rows, counts, lambda n: n > 0) / counts.size)


def jain_without_rows(rows: Matrix) -> FloatArray:
    """Return ``jain`` of the sums without each row, ``float64[q]``; NaN if nothing is left.

    >>> from scipy.sparse import csr_array
    >>> jain_without_rows(csr_array([[1, 1], [1, 0]])).tolist()
    [0.5, 1.0]
    """
    counts = _sum_columns(rows)
    remaining = counts.sum() - np.diff(rows.indptr)
    squares = _sum_without_rows(rows, counts, np.square)
    return divide(remaining.astype(np.float64) ** 2, squares * counts.size)


def entropy_without_rows(rows: Matrix) -> FloatArray:
    """Return ``entropy``, in nats, of the sums without each row, ``float64[q]``.

    NaN if nothing is left.

    >>> from scipy.sparse import csr_array
    >>> entropy_without_rows(csr_array([[1, 1], [1, 0]])).round(4).tolist()
    [0.0, 0.6931]
    """
    from scipy.special import xlogy

    counts = _sum_columns(rows)
    remaining = counts.sum() - np.diff(rows.indptr)
    total = _sum_without_rows(rows, counts, lambda n: xlogy(n, n))
    logs = np.log(remaining, out=np.full(remaining.shape, np.nan), where=remaining > 0)
    return np.asarray(np.abs(logs - divide(total, remaining)))


def gini_without_rows(rows: Matrix) -> FloatArray:
    """Return ``gini`` of the sums without each row, ``float64[q]``; NaN if nothing is left.

        G_j = ( D + Σ_{i in j} (n - 2 r_i) - Σ_v t_jv² ) / ( n S_j ),    D = Σ_{i<l} |x_i - x_l|

    r_i is the number of counts below x_i, t_jv the number of items of row j with count v, and S_j
    the sum of all counts without those of row j.

    >>> from scipy.sparse import csr_array
    >>> gini_without_rows(csr_array([[1, 1], [1, 0]])).tolist()
    [0.5, 0.0]
    """
    counts = _sum_columns(rows)
    n, q = counts.size, rows.shape[0]
    ordered = np.sort(counts)
    below = np.searchsorted(ordered, counts)
    differences = (2.0 * np.arange(1, n + 1) - n - 1) @ ordered
    changes = rows @ (n - 2.0 * below)
    lists = np.repeat(np.arange(q), np.diff(rows.indptr))
    ties, sizes = np.unique(lists * (n + 1) + below[rows.indices], return_counts=True)
    squares = np.bincount(ties // (n + 1), sizes.astype(np.float64) ** 2, minlength=q)
    remaining = counts.sum() - np.diff(rows.indptr)
    return divide(differences + changes - squares, remaining * n)


def _sum_columns(rows: Matrix) -> AnyArray:
    return np.asarray(rows.sum(axis=0), dtype=np.int64).ravel()


def _sum_without_rows(
    rows: Matrix, counts: AnyArray, term: Callable[[AnyArray], AnyArray]
) -> FloatArray:
    """Return the sum of a term of each count, without each row of 0 and 1, ``float64[q]``."""
    terms = np.asarray(term(counts), dtype=np.float64)
    return np.asarray(terms.sum() - rows @ (terms - term(np.maximum(counts - 1, 0))))


InequalityKind: TypeAlias = Literal[
    "atkinson",
    "atkinson_within",
    "atkinson_total",
    "cross_entropy",
    "mad",
    "worst",
    "worst_quarter",
]
"""The indices of ``measure_group_inequality``."""

_SMOOTH = {"atkinson", "atkinson_within", "atkinson_total", "cross_entropy"}
"""The indices that have an interval: small changes of the values change them little."""

_SKEWED = {"atkinson_within", "atkinson_total"}
"""The indices with a longer tail above, which are not near 0 where the groups do not differ."""


@dataclass(frozen=True, kw_only=True)
class GroupInequality:
    """An index of the inequality of groups of queries, as one number.

        atkinson        = 1 - ( Σ_g w_g √e_g )² / Σ_g w_g e_g            between the groups
        atkinson_within = Σ_g s_g ( 1 - e_g / m_g )
        atkinson_total  = 1 - e / m
        cross_entropy   = ( Σ_g f_g² / p_g - 1 ) / 2
        mad             = mean of |m_g - m_h| over the pairs of groups
        worst           = the mean of the worst group
        worst_quarter   = mean of the m_g that are at most their lower quartile

    m_g is the mean of the values x of group g, e_g = (mean of √x)² its equally distributed
    equivalent (Atkinson's index with ε = 0.5), w_g its share of the queries and s_g that of the
    sum of x; m and e are those of all groups together. p_g = m_g / Σ_h m_h, and f_g = 1/G. The
    Atkinson indices relate by 1 - total = (1 - within)(1 - between).

    Undefined if a group has no value or there is only one group; the Atkinson indices and the
    cross entropy also if a value is negative, or the mean that they divide by is 0.

    The Atkinson indices and the cross entropy have the t interval of a stratified bootstrap of the
    queries, with Satterthwaite's degrees of freedom as in Welch's test, ``atkinson_within`` and
    ``atkinson_total`` on the scale of the logarithm. These
    two depend on the sizes of the groups, which are those of a sample as well and are resampled
    too. ``atkinson`` and the cross entropy of two groups are functions of the ratio of two means,
    of √x or of x, and their interval is that of this ratio (Fieller's) unless it has no end.
    Those of more groups are positive by chance for groups that do not differ; the
    interval then includes 0. ``mad``, ``worst`` and ``worst_quarter`` have none: the groups have
    intervals of their own, and the extreme one of several is extreme by chance. There is none
    either if a query is in several groups; it counts in each of them.

    Args:
        kind: The index.
        direction: Which values of the metric are better. If lower ones are, the worst group is
            that with the largest mean, and if 0 is, that with the mean farthest from it.
        min_group: Groups of fewer defined values are excluded.
        n_samples: The number of bootstrap samples.

    >>> from recbias.core.measures import UnitScores
    >>> units = UnitScores("user", np.arange(4).astype(object), np.array([1.0, 1.0, 4.0, 4.0]))
    >>> codes = np.array([0, 0, 1, 1], dtype=np.int32)
    >>> groups = Groups("g", ("g=a", "g=b"), codes, (("a",), ("b",)))
    >>> between = GroupInequality(kind="atkinson", direction="higher")
    >>> index = between.measure(Measurement.from_units(units), groups, np.random.default_rng(0))
    >>> round(index.value, 6)  # 1 - ((1 + 2) / 2)² / ((1 + 4) / 2)
    0.1

    Source:
        Atkinson, "On the measurement of inequality", Journal of Economic Theory 1970; between and
        within groups: Rampisela et al., "Stairway to fairness", RecSys 2025. Cross entropy and
        mad: Deldjoo et al., "A flexible framework for evaluating user and item fairness in
        recommender systems", UMUAI 2021, with β = 2 and a uniform distribution, without the sign
        of the paper, whose value is at most 0, and without the smoothing in the code of the RecSys
        2025 paper.
    """

    kind: InequalityKind
    direction: Direction
    min_group: int = 0
    n_samples: int = 1000

    def measure(
        self, measurement: Measurement, groups: Groups, rng: np.random.Generator
    ) -> Measurement:
        """Return the index of the values of a metric; ``rng`` is the same for all models."""
        return self.measure_members(Members.of_queries(measurement, groups), rng)

    def measure_members(self, members: Members, rng: np.random.Generator) -> Measurement:
        """Return the index of the values of some members."""
        total, target = members.n_units, members.target
        members, is_same = members.select_large(self.min_group)
        n_groups, columns = len(members.names), _build_columns(members.values)
        sums = _add_members(columns, members.codes, n_groups)
        is_negative = self.kind in _SMOOTH and bool((members.values < 0).any())
        has_value = n_groups > 1 and not is_negative
        value = float(self._compute(sums[None])[0]) if has_value else math.nan
        n = 0 if math.isnan(value) else members.n_defined
        index = Measurement(value, n, total - n, target=target)
        if self.kind not in _SMOOTH or n == 0 or members.overlap or (sums[:, 0] < 2).any():
            return index
        samples = resample_group_sums(columns, members.codes, n_groups, self.n_samples, rng)
        is_skewed = self.kind in _SKEWED
        if is_skewed:
            samples *= _resample_shares(np.bincount(members.codes), self.n_samples, rng)[..., None]
        replicates, df = self._compute(samples), self._count_df(sums, columns, members.codes)
        low, high = compute_sample_interval(value, replicates, df=df, log_scale=is_skewed)
        ends = self._compare_two(members) if n_groups == 2 and not is_skewed else ()
        low, high = ends if ends and math.isfinite(ends[1]) else (low, high)
        index = replace(
            index, replicates=replicates if is_same else None, df=df, log_scale=is_skewed
        )
        if high <= low:
            return index
        highest = math.inf if self.kind == "cross_entropy" else 1.0
        return replace(index, ci_low=max(low, 0.0), ci_high=min(high, highest))

    def _compare_two(self, members: Members) -> tuple[float, float]:
        """Return the interval of the index of two groups: that of the ratio of their means."""
        roots = members.values if self.kind == "cross_entropy" else np.sqrt(members.values)
        moments = compute_moments(roots, members.codes, 2)
        parts = moments.variance / moments.n
        if not parts.any():
            return math.nan, math.nan
        df = float(parts.sum() ** 2 / (parts**2 / (moments.n - 1)).sum())
        ends = np.array(estimate_gap_interval(moments.mean, np.diag(parts), df, "ratio"))
        means = np.ones((2, 2))
        means[:, int(moments.mean.argmin())] = ends
        totals = moments.n * means
        columns = np.broadcast_to(moments.n, totals.shape), totals, totals
        high, low = self._compute(np.stack(columns, axis=-1)).tolist()
        return low, high

    def _count_df(self, sums: FloatArray, columns: FloatArray, codes: AnyArray) -> float:
        """Return Satterthwaite's degrees of freedom of the index, linear in the group sums.

        df = (Σ_g v_g)² / Σ_g v_g² / (n_g - 1),    v_g = n_g · the variance of Σ_c ∂_gc x_c
        """
        sizes, slopes = 1e-6 * np.maximum(sums, 1.0).ravel(), np.empty(sums.size)
        for cells in np.array_split(np.arange(sums.size), 1 + sums.size // 64):
            steps = np.zeros((cells.size, sums.size))
            steps[np.arange(cells.size), cells] = sizes[cells]
            low, high = (sums + sign * steps.reshape(-1, *sums.shape) for sign in (-1.0, 1.0))
            slopes[cells] = (self._compute(high) - self._compute(low)) / (2.0 * sizes[cells])
        weights = slopes.reshape(sums.shape)[codes]
        moments = compute_moments((columns * weights).sum(axis=1), codes, len(sums))
        parts = moments.n * moments.variance
        shares = (parts**2 / (moments.n - 1)).sum()
        return float(parts.sum() ** 2 / shares) if shares > 0 else float((moments.n - 1).sum())

    def _compute(self, sums: FloatArray) -> FloatArray:
        """Return the index of each row of group sums ``float64[b, g, 3]``: n, Σ x and Σ √x."""
        n, total, root = np.moveaxis(sums, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / n
            if self.kind == "mad":
                value = _average_pairs(mean)
            elif self.kind in {"worst", "worst_quarter"}:
                value = _average_worst(mean, 0.25 * (self.kind != "worst"), self.direction)
            elif self.kind == "cross_entropy":
                value = _compute_cross_entropy(mean)
            else:
                value = _compute_atkinson(n, total, root)[self.kind]
        is_defined = (n > 0).all(axis=1) & np.isfinite(value)
        return np.where(
            is_defined, np.maximum(value, 0.0) if self.kind in _SMOOTH else value, np.nan
        )


def _add_members(columns: FloatArray, codes: AnyArray, n_groups: int) -> FloatArray:
    """Return the sums of the columns over each group, ``float64[g, c]``."""
    return np.stack(
        [np.bincount(codes, column, minlength=n_groups) for column in columns.T], axis=1
    )


def _resample_shares(counts: AnyArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Return the size of each group in samples of all queries, by its own, ``float64[b, g]``."""
    n = int(counts.sum())
    return np.asarray(rng.multinomial(n, counts / n, size=n_samples) / counts)


def _build_columns(values: FloatArray) -> FloatArray:
    """Return 1, the value and its root for each query, ``float64[q, 3]``; 0 if undefined."""
    filled = np.nan_to_num(values)
    is_defined = (~np.isnan(values)).astype(np.float64)
    return np.stack([is_defined, filled, np.sqrt(np.maximum(filled, 0.0))], axis=1)


def _compute_atkinson(n: FloatArray, total: FloatArray, root: FloatArray) -> dict[str, FloatArray]:
    """Return the Atkinson indices of each row of group sums, ``float64[b, g]``."""
    sizes = n.sum(axis=1)
    of_all = (root.sum(axis=1) / sizes) ** 2
    of_groups = np.sum(root**2 / n, axis=1) / sizes
    mean = total.sum(axis=1) / sizes
    return {
        "atkinson": 1.0 - of_all / of_groups,
        "atkinson_within": 1.0 - of_groups / mean,
        "atkinson_total": 1.0 - of_all / mean,
    }


def _compute_cross_entropy(mean: FloatArray) -> FloatArray:
    uniform, share = 1.0 / mean.shape[1], mean / mean.sum(axis=1, keepdims=True)
    return np.asarray((np.sum(uniform**2 / share, axis=1) - 1.0) / 2.0)


def _average_pairs(mean: FloatArray) -> FloatArray:
    """Return the mean absolute difference of the pairs of each row of means."""
    n = mean.shape[1]
    weights = 2.0 * np.arange(1, n + 1) - n - 1
    return np.asarray(np.sort(mean, axis=1) @ weights / (n * (n - 1) / 2.0))


def _average_worst(mean: FloatArray, share: float, direction: Direction) -> FloatArray:
    """Return the mean of the worst means of each row: those up to a quantile of their quality."""
    quality = {"lower": -mean, "zero": -np.abs(mean)}.get(direction, mean)
    is_worst = quality <= np.quantile(quality, share, axis=1, keepdims=True)
    return np.asarray(np.where(is_worst, mean, 0.0).sum(axis=1) / is_worst.sum(axis=1))


MAX_STARTS = 1000
"""Maximum number of candidates for ``xmin``."""

_MAX_EXPONENT = 20.0
"""Upper end of the search for the exponent."""

BLOCK_CELLS = 2**20
"""Values of the distribution function in memory at once."""


@dataclass(frozen=True)
class PowerLaw:
    """A power law fitted to the ``n`` largest counts: P(X = x) ~ x^-exponent for x >= xmin.

    ``ks`` is the Kolmogorov-Smirnov distance between the law and the tail, 0 to 1.
    """

    exponent: float
    xmin: float
    n: int
    ks: float

    @property
    def pareto(self) -> float:
        """The Pareto coefficient b = α - 1, by which P(X > x) ~ x^-b."""
        return self.exponent - 1.0


def fit_power_law(counts: AnyArray) -> PowerLaw:
    """Fit a discrete power law to the upper tail of counts.

        p(x) = x^-α / ζ(α, xmin),    x = xmin, xmin + 1, ...

    Each observed value but the largest is a candidate for ``xmin`` (at most 1,000 candidates, at
    evenly spaced ranks). For each candidate, α between 1 and 20 maximises the likelihood of the
    values from ``xmin`` on. The result is the candidate with the smallest Kolmogorov-Smirnov
    distance D = max |S(x) - P(X ≥ x)|, where S(x) is the share of them that is at least x. Counts
    of 0 are excluded; NaN with ``n`` 0 if there are fewer than two distinct values.

    >>> law = fit_power_law(np.repeat([1, 2, 3, 4, 5], [656, 140, 56, 29, 17]))
    >>> law.xmin, law.n, round(law.exponent, 1)
    (1.0, 898, 2.6)

    Source:
        Clauset, Shalizi and Newman, "Power-law distributions in empirical data", SIAM Review 51,
        2009, equations 3.5 and 3.9.
    """
    counts = np.asarray(counts, dtype=np.float64)
    values, times = np.unique(counts[counts > 0], return_counts=True)
    if values.size < 2:
        return PowerLaw(math.nan, math.nan, 0, math.nan)
    n_starts = min(values.size - 1, MAX_STARTS)
    starts = np.unique(np.linspace(0, values.size - 2, n_starts).round().astype(np.int64))
    n_tail = np.cumsum(times[::-1])[::-1].astype(np.float64)
    logs = np.cumsum((times * np.log(values))[::-1])[::-1]
    exponents = _maximize_likelihood(values[starts], logs[starts] / n_tail[starts])
    distances = _compute_distances(values, n_tail, starts, exponents)
    best = int(distances.argmin())
    exponent, xmin, ks = exponents[best], values[starts[best]], distances[best]
    return PowerLaw(float(exponent), float(xmin), int(n_tail[starts[best]]), float(ks))


def zipf_exponent(counts: AnyArray) -> float:
    """Return the exponent s of Zipf's law of popularity by rank, φ_(r) ~ r^-s.

    s is minus the least-squares slope of ln φ_(r) on ln r over the items with a popularity above
    0; the most popular item has rank 1. It is 0 if all items are equally popular, and NaN for
    fewer than two items.

    >>> round(zipf_exponent(60 / np.array([1, 2, 3, 4])), 6)
    1.0

    Source:
        Zipf, "Human Behavior and the Principle of Least Effort", 1949.
    """
    counts = np.asarray(counts, dtype=np.float64)
    descending = -np.sort(-counts[counts > 0])
    if descending.size < 2:
        return math.nan
    x, y = np.log(np.arange(1, descending.size + 1)), np.log(descending)
    x -= x.mean()
    return float(abs(x @ (y - y.mean())) / (x @ x))


def _maximize_likelihood(xmin: FloatArray, mean_log: FloatArray) -> FloatArray:
    """Return the exponents of the largest -ln ζ(α, xmin) - α mean_log, which is concave in α."""
    from scipy.special import zeta

    def compute_likelihood(exponent: FloatArray) -> FloatArray:
        return np.asarray(-np.log(zeta(exponent, xmin)) - exponent * mean_log)

    low, high = np.full(xmin.shape, 1.0 + 1e-9), np.full(xmin.shape, _MAX_EXPONENT)
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    while (high - low).max() > 1e-9:
        width = golden * (high - low)
        left, right = high - width, low + width
        rises = compute_likelihood(right) > compute_likelihood(left)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return np.asarray((low + high) / 2.0)


def _compute_distances(
    values: FloatArray, n_tail: FloatArray, starts: AnyArray, exponents: FloatArray
) -> FloatArray:
    """Return the Kolmogorov-Smirnov distance for each ``xmin``, ``float64[s]``."""
    from scipy.special import zeta

    distances = np.empty(starts.size)
    size = max(1, BLOCK_CELLS // values.size)
    for first in range(0, starts.size, size):
        block = slice(first, first + size)
        lowest = int(starts[block].min())
        tail, n, begins = values[lowest:], n_tail[lowest:], starts[block] - lowest
        alphas = exponents[block, None]
        scale = zeta(alphas, tail[begins][:, None])
        law = zeta(alphas, tail) / scale
        law_above = law - tail**-alphas / scale
        share, share_above = (x / n[begins][:, None] for x in (n, np.append(n[1:], 0.0)))
        gaps = np.maximum(np.abs(law - share), np.abs(law_above - share_above))
        gaps[np.arange(tail.size) < begins[:, None]] = 0.0
        distances[block] = gaps.max(axis=1)
    return distances
