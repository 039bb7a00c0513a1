"""Paired tests of two systems, their effect sizes, and p-values adjusted for a family.

Student's t, Wilcoxon's signed ranks, the sign-flip permutation test, and tests of two proportions.
Differences of two systems so similar that sums of products cancel are computed explicitly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Le, Lt

from recbias.core.context import report_progress
from recbias.core.dataset import AnyArray, FloatArray, freeze
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import Contradiction
from recbias.core.measures import Contrast
from recbias.statistics.intervals import t_interval
from recbias.statistics.permutation import Permutations

Correction: TypeAlias = Literal["none", "bonferroni", "holm", "bh"]
"""None; Bonferroni and Holm control the family-wise error rate, Benjamini-Hochberg the FDR."""

Alpha: TypeAlias = Annotated[float, Ge(1e-12), Lt(1)]
"""A significance level; float64 quantiles of smaller levels are those of 0."""

Family: TypeAlias = Literal["metric", "report"] | Annotated[int, Gt(0), Le(1_000_000_000)]
"""The comparisons corrected together: those of one metric, of the run, or a fixed number."""


class PairedTest(Protocol):
    """A two-sided test that two systems have the same mean, over paired units."""

    @property
    def alpha(self) -> float:
        """The significance level: a corrected p-value of at most this is significant."""

    @property
    def correction(self) -> Correction:
        """How the p-values of a family are corrected."""

    @property
    def family(self) -> Literal["metric", "report"] | int:
        """Which comparisons are corrected together."""

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Return the columns ``PAIR_COLUMNS`` for all pairs of rows of ``float64[s, u]``.

        A row is a system and a column a unit; NaN is undefined. ``rng`` is of this comparison. A
        column ``test`` may name the test of each pair, where it is another than this; blank where
        it is not.
        """


@dataclass(frozen=True, kw_only=True)
class CorrectedTest(InheritsSections):
    """The settings that all tests share.

    Args:
        alpha: A comparison is significant if its corrected p is at most this level.
        correction: The correction of the p-values of a family.
        family: The comparisons corrected together: those on one metric, in one dataset, seed and
            fold or the mean over seeds and folds (``metric``): all pairs of models, or the tests
            of groups and items within all models; every comparison in the run, of each seed and
            fold and of their mean (``report``); or an integer by which p is multiplied.
        against: The label of the model that each other model is compared with, in place of all
            pairs.

    Raises:
        Contradiction: An integer as the family of ``holm`` or ``bh``.
    """

    undefined_where: ClassVar[str] = (
        "fewer than two units, or bootstrap samples that all have the same difference"
    )
    """Where a comparison has no p-value, for the warning that counts them."""

    alpha: Alpha = 0.05
    correction: Correction = "bonferroni"
    family: Family = "metric"
    against: str | None = None

    def __post_init__(self) -> None:
        """Refuse a family that the correction does not allow."""
        check_family(self.correction, self.family)


def check_family(correction: Correction, family: Family) -> None:
    """Raise Contradiction for an integer and a correction that ranks the p-values of a family."""
    if isinstance(family, int) and correction in {"holm", "bh"}:
        message = f"correction {correction} ranks the p-values of its family: it takes no number"
        remedy = "set family: metric or report, or correction: bonferroni"
        raise Contradiction(message, remedy=remedy)


def adjust(p: FloatArray, method: Correction, size: int | None = None) -> FloatArray:
    """Return adjusted p-values, to be compared with alpha.

    For a family of m, with p₁ ≤ p₂ ≤ ... ≤ p_m::

        none         p
        bonferroni   min(1, m p)
        holm         max over j ≤ i of min(1, (m - j + 1) p_j)
        bh           min over j ≥ i of min(1, m p_j / j)

    A p-value of NaN (a comparison that could not be tested) stays NaN and does not count. ``size``
    is the m of Bonferroni, if it is not their number; Contradiction for Holm and
    Benjamini-Hochberg.

    >>> adjust(np.array([0.01, 0.04, 0.03]), "bonferroni").round(3).tolist()
    [0.03, 0.12, 0.09]
    >>> adjust(np.array([0.01, 0.04, 0.03]), "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjust(np.array([0.01, 0.04, 0.03]), "bh").round(3).tolist()
    [0.03, 0.04, 0.04]

    Source:
        Dunn, "Multiple comparisons among means", JASA 1961; Holm, "A simple sequentially rejective
        multiple test procedure", Scandinavian Journal of Statistics 1979; Benjamini and Hochberg,
        "Controlling the false discovery rate", JRSS B 1995.
    """
    if size is not None:
        check_family(method, size)
    if method == "none":
        return p.copy()
    if method == "bonferroni":
        return np.minimum(p * (count_tests(p) if size is None else size), 1.0)
    m = count_tests(p)
    order = np.argsort(p, kind="stable")[:m]  # NaN sorts last
    ascending, adjusted = p[order], np.full(p.shape, np.nan)
    if method == "holm":
        stepped = np.maximum.accumulate(np.arange(m, 0, -1) * ascending)
    else:
        scaled = ascending * m / np.arange(1, m + 1)
        stepped = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def adjust_distinct(
    p: FloatArray, tests: AnyArray, method: Correction, size: int | None = None
) -> FloatArray:
    """Return adjusted p-values of a family in which a test may stand several times.

    ``tests`` is the number of each test, ``int[c]``. A test counts once, with its first p-value,
    and all its places have the same adjusted p-value; see ``adjust``.

    >>> p, tests = np.array([0.01, 0.03, 0.01]), np.array([0, 1, 0])
    >>> adjust_distinct(p, tests, "bonferroni").tolist()
    [0.02, 0.06, 0.02]
    """
    _, firsts, places = np.unique(tests, return_index=True, return_inverse=True)
    return adjust(p[firsts], method, size)[places]


def count_tests(p: FloatArray, tests: AnyArray | None = None) -> int:
    """Return the number of defined p-values, the size of their family; of each test one.

    >>> count_tests(np.array([0.2, np.nan]))
    1
    >>> count_tests(np.array([0.2, 0.2, 0.3]), np.array([0, 0, 1]))
    2
    """
    defined = ~np.isnan(p)
    return int(np.count_nonzero(defined) if tests is None else np.unique(tests[defined]).size)


def cohens_dz(difference: npt.ArrayLike, std: npt.ArrayLike) -> FloatArray:
    """Return Cohen's d of paired samples: the mean difference in standard deviations.

        d_z = mean(a - b) / sd(a - b)

    ``difference`` is the mean of the differences, ``std`` their sample standard deviation (n - 1).
    NaN if all differences are equal: then there is no spread to measure the mean in.

    >>> float(cohens_dz(0.5, 2.0))
    0.25

    Source:
        Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition, 1988,
        section 2.3.5.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = np.true_divide(difference, std)
    is_rounding = np.asarray(std) <= 1e-12 * np.abs(difference)
    return np.asarray(np.where(is_rounding, np.nan, effect), dtype=np.float64)


def cohens_d(a: AnyArray, b: AnyArray) -> float:
    """Return Cohen's d of two independent groups.

        d = (mean(a) - mean(b)) / s,    s² = ((n_a - 1) s_a² + (n_b - 1) s_b²) / (n_a + n_b - 2)

    ``a`` and ``b`` are the values of the groups, without NaN. Undefined (NaN) if a group is empty,
    or all values within each group are equal.

    >>> round(cohens_d(np.array([2.0, 4.0]), np.array([1.0, 3.0])), 4)
    0.7071

    Source:
        Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition, 1988,
        section 2.2.
    """
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    if not a.size or not b.size or a.size + b.size < 3:
        return float("nan")
    squares = ((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()
    return float(cohens_dz(a.mean() - b.mean(), np.sqrt(squares / (a.size + b.size - 2))))


def rank_biserial(rank_sum_up: npt.ArrayLike, rank_sum_down: npt.ArrayLike) -> FloatArray:
    """Return the matched-pairs rank-biserial correlation.

        r = (W⁺ - W⁻) / (W⁺ + W⁻)

    W⁺ and W⁻ are the sums of the ranks of the positive and of the negative differences. The value
    is 1 if every nonzero difference is positive, and NaN if all are 0.

    >>> float(rank_biserial(15.0, 6.0)).__round__(4)
    0.4286

    Source:
        Kerby, "The simple difference formula", Comprehensive Psychology 2014.
    """
    up, down = np.asarray(rank_sum_up, dtype=np.float64), np.asarray(rank_sum_down)
    return cohens_dz(up - down, up + down)


_Indices = npt.NDArray[np.intp]

_MIN_RELATIVE_SPREAD = 1e-2
"""Below this share of its terms a variance has lost digits and is computed explicitly."""

ROUNDING = 1e-12
"""Differences and spreads below this share of the means are rounding errors and count as 0."""

BLOCK_VALUES = 2**22
"""Differences held in memory at once."""


@dataclass(frozen=True, eq=False)
class _PairMoments:
    """Moments of every pair of systems, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Args:
        a: The first system of each pair, ``intp[p]``; ``b`` is the second.
        n: Number of units that both define, ``float64[p]``.
        mean_a: Mean of the first system over those units; NaN without any.
        difference: Mean of the differences.
        std: Sample standard deviation (n - 1) of the differences; NaN below two units, 0 if all
            differences are equal up to rounding.
    """

    a: _Indices
    b: _Indices
    n: FloatArray
    mean_a: FloatArray
    mean_b: FloatArray
    difference: FloatArray
    std: FloatArray

    @property
    def lacks_spread(self) -> AnyArray:
        """Whether all differences of a pair are equal and not 0, so that it has no error."""
        return np.asarray((self.std == 0) & (self.difference != 0))

    def columns(self, alpha: float) -> dict[str, AnyArray]:
        """Return the columns of ``significance.csv`` that all tests over units share.

        The interval is the t interval of the difference, not corrected for the family; there is
        none if all differences are equal and not 0.
        """
        shared = ("a", "b", "n", "mean_a", "mean_b", "difference")
        std = np.where(self.lacks_spread, np.nan, self.std)
        low, high = t_interval(self.difference, std, self.n, alpha)
        return {**{name: vars(self)[name] for name in shared}, "ci_low": low, "ci_high": high}


def list_pairs(n_systems: int) -> tuple[_Indices, _Indices]:
    """Return the indices of every pair, the lower index first.

    >>> [indices.tolist() for indices in list_pairs(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    return np.triu_indices(n_systems, 1)


def compute_pair_moments(values: FloatArray) -> _PairMoments:
    """Return the moments of the differences of every pair of rows of ``float64[s, u]``.

    A value of NaN is undefined and excludes its unit from the pairs of that system.

    >>> moments = compute_pair_moments(np.array([[1.0, 2.0, np.nan], [0.0, 3.0, 5.0]]))
    >>> moments.n.tolist(), moments.difference.tolist(), moments.std.round(4).tolist()
    ([2.0], [0.0], [1.4142])
    """
    a, b = list_pairs(len(values))
    means, n, sums, squares = _sum_pairs(values)
    n, sum_a, sum_b = n[a, b], sums[a, b], sums[b, a]
    terms = squares[0][a, b] + squares[0][b, a]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_a, mean_b = means[a] + sum_a / n, means[b] + sum_b / n
        spread = terms - 2.0 * squares[1][a, b] - (sum_a - sum_b) ** 2 / n
        std = np.sqrt(np.maximum(spread, 0.0) / (n - 1.0))
    std[n < 2] = np.nan
    difference = mean_a - mean_b
    cancelled = np.flatnonzero(~(spread > _MIN_RELATIVE_SPREAD * terms) & (n > 1))
    for block, block_differences in iterate_differences(values, a[cancelled], b[cancelled]):
        pairs = cancelled[block]
        difference[pairs], std[pairs] = _compute_mean_std(block_differences)
    slack = ROUNDING * np.fmax(np.abs(mean_a), np.abs(mean_b))
    std = np.where(std <= slack, 0.0, std)
    difference = np.where((std == 0) & (np.abs(difference) <= slack), 0.0, difference)
    return _PairMoments(a, b, n, mean_a, mean_b, difference, std)


def iterate_differences(
    values: FloatArray, a: _Indices, b: _Indices
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield slices of the pairs and their differences ``float64[block, u]``, in bounded memory."""
    size = max(1, BLOCK_VALUES // max(values.shape[1], 1))
    for start in range(0, len(a), size):
        block = slice(start, min(start + size, len(a)))
        yield block, values[a[block]] - values[b[block]]


def _sum_pairs(
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the mean of each system ``[s]`` and sums of centred values over pairs ``[s, s]``."""
    defined = ~np.isnan(values)
    if defined.all():
        return _sum_complete_pairs(values)
    n_systems = len(values)
    counts = defined.astype(np.float64)
    totals = np.where(defined, values, 0.0).sum(axis=1)
    means = totals / np.maximum(counts.sum(axis=1), 1.0)
    centred = np.where(defined, values - means[:, None], 0.0)
    stacked = np.concatenate([counts, centred, centred**2])
    products = (stacked @ stacked.T).reshape(3, n_systems, 3, n_systems)
    pairs = products.transpose(0, 2, 1, 3)
    return means, pairs[0, 0], pairs[1, 0], (pairs[2, 0], pairs[1, 1])


def _sum_complete_pairs(
    values: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return the same if every system defines every unit."""
    n_systems, n_units = values.shape
    means = values.sum(axis=1) / max(n_units, 1)
    centred = values - means[:, None]
    products = centred @ centred.T
    squares = np.repeat(np.diag(products)[:, None], n_systems, axis=1)
    counts = np.full((n_systems, n_systems), float(n_units))
    return means, counts, np.zeros((n_systems, n_systems)), (squares, products)


def _compute_mean_std(differences: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the sample standard deviation of each row, without NaN."""
    defined = ~np.isnan(differences)
    n = defined.sum(axis=1)
    mean = np.where(defined, differences, 0.0).sum(axis=1) / n
    deviations = np.where(defined, differences - mean[:, None], 0.0)
    return mean, np.sqrt((deviations**2).sum(axis=1) / (n - 1))


MAX_EXACT = 50
"""The largest number of differences that are not 0 for which p is exact."""


def rank_differences(differences: FloatArray) -> FloatArray:
    """Return the signed ranks of the absolute differences of each row, ``float64[p, u]``.

    Differences of 0 and NaN have rank 0 and do not count. Those that agree to twelve digits of the
    row's largest are ties: 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit only, and ranks must not
    depend on it.

    >>> rank_differences(np.array([[1.0, -2.0, 0.0, 2.0]])).tolist()
    [[1.0, -2.5, 0.0, 2.5]]
    """
    from scipy.stats import rankdata

    finite = np.where(np.isfinite(differences), differences, 0.0)
    largest = np.abs(finite).max(axis=1, keepdims=True, initial=0.0)
    rounded = np.round(finite / np.where(largest > 0, largest, 1.0), 12)
    if not rounded.size:
        return rounded
    sizes = np.where(rounded == 0, np.inf, np.abs(rounded))  # they rank after the others
    return np.asarray(np.sign(rounded) * rankdata(sizes, axis=1))


def compute_p_values(ranks: FloatArray) -> FloatArray:
    """Return the two-sided p-value of each row of signed ranks; 1 if all differences are 0.

    For random signs, W⁺ has the mean Σ r / 2 and the variance Σ r² / 4, also with ties.
    """
    from scipy.special import ndtr

    n = np.count_nonzero(ranks, axis=1)
    up, down = (np.maximum(sign * ranks, 0.0).sum(axis=1) for sign in (1.0, -1.0))
    variance = (ranks**2).sum(axis=1) / 4.0
    z = (up - n * (n + 1.0) / 4.0) / np.sqrt(np.where(n > 0, variance, 1.0))
    p: FloatArray = 2.0 * ndtr(-np.abs(z))
    smaller = np.rint(2.0 * np.minimum(up, down)).astype(np.intp)
    for row in np.flatnonzero(n <= MAX_EXACT):
        doubled = np.sort(np.rint(2.0 * np.abs(ranks[row][ranks[row] != 0])).astype(np.intp))
        p[row] = min(2.0 * null_distribution(tuple(doubled.tolist()))[smaller[row]], 1.0)
    return p


@lru_cache(maxsize=256)
def null_distribution(doubled: tuple[int, ...]) -> AnyArray:
    """Return P(2 W⁺ <= w) for random signs of ranks, given as twice the rank, for w from 0 on.

    Of the 2ⁿ signings, those with 2 W⁺ = w are the subsets of the doubled ranks that sum to w.

    >>> null_distribution((3, 3)).tolist()  # two tied differences: sums 0, 3, 3, 6
    [0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 1.0]
    """
    subsets: FloatArray = np.eye(1, sum(doubled) + 1)[0]  # the empty one sums to 0
    for rank in doubled:
        subsets[rank:] += subsets[:-rank].copy()
    return freeze(np.cumsum(subsets) / 2.0 ** len(doubled))


@dataclass(frozen=True, kw_only=True)
class PairedT(CorrectedTest):
    """Student's paired t-test of the mean difference between two models.

        t = mean(d) / (sd(d) / √n),    d = a - b for each unit,    n - 1 degrees of freedom

    ``sd`` is the sample standard deviation (n - 1). The p-value is two-sided. ``effect_size`` is
    Cohen's d_z = mean(d) / sd(d).

    Units that one of the two models does not define are excluded from their comparison. With fewer
    than two units there is no p-value. If all differences are 0, t and the effect size are
    undefined and p is 1, as in the other paired tests. If all differences are equal and not 0, the
    standard error is 0 although that of other units need not be: t, its degrees of freedom, d_z
    and the interval are undefined, and p is that of the sign-flip test, exactly 2 / 2ⁿ.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3
    >>> columns = PairedT().pairs(values, np.random.default_rng(0))
    >>> columns["statistic"].round(4).tolist(), columns["p"].round(4).tolist()
    ([3.4641], [0.0742])
    >>> equal = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])  # 2 of the 8 signings
    >>> PairedT().pairs(equal, np.random.default_rng(0))["p"].tolist()
    [0.25]

    Source:
        Student, "The probable error of a mean", Biometrika 1908; ``sign_flip`` for equal
        differences.
    """

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Compare all pairs of rows of ``values``, ``float64[s, u]``; ``rng`` is not used."""
        from scipy.special import stdtr

        moments = compute_pair_moments(values)
        lacks_spread = moments.lacks_spread
        df = np.where((moments.n > 1) & ~lacks_spread, moments.n - 1.0, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = moments.difference / (moments.std / np.sqrt(moments.n))
        t = np.where(lacks_spread, np.nan, t)
        identical = (moments.difference == 0) & (moments.std == 0)
        p = np.where(identical, 1.0, 2.0 * stdtr(df, -np.abs(t)))
        return {
            **moments.columns(self.alpha),
            "statistic": t,
            "df": df,
            "p": np.where(lacks_spread, 2.0 ** (1.0 - moments.n), p),
            "effect_size": cohens_dz(moments.difference, moments.std),
        }


def compare_sides(sides: FloatArray, names: Sequence[str], *, between: str) -> Contrast:
    """Return the paired t-test of two rows of values, ``float64[2, u]``."""
    columns = PairedT().pairs(sides, np.random.default_rng(0))  # it uses no randomness
    fields = {name: np.asarray(column).item() for name, column in columns.items()}
    fields |= {"a": names[0], "b": names[1], "n": int(fields["n"])}
    return Contrast(between=between, test="paired_t", **fields)


@dataclass(frozen=True, kw_only=True)
class Wilcoxon(CorrectedTest):
    """Wilcoxon's signed-rank test of the differences between two models.

        W⁺ = Σ rank(|d|) over d > 0,    W⁻ the same over d < 0,    W = min(W⁺, W⁻)

    Differences d = a - b of 0 are dropped before ranking (Wilcoxon's rule); ties receive their
    mean rank. For up to 50 differences the two-sided p-value is exact, over all signs of the ranks
    with their ties; for more it is that of the normal approximation with tie correction and
    without continuity correction, ``method="asymptotic"`` of ``scipy.stats.wilcoxon`` with
    ``zero_method="wilcox"``. ``statistic`` is W; ``effect_size`` is the rank-biserial correlation
    (W⁺ - W⁻) / (W⁺ + W⁻). The interval is the t interval of the mean difference.

    Units that one of the two models does not define are excluded from their comparison; ``n``
    counts the others. With fewer than two units there is no p-value. If all differences are 0, W
    is undefined and p is 1.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3
    >>> columns = Wilcoxon().pairs(values, np.random.default_rng(0))
    >>> columns["statistic"].tolist(), columns["p"].tolist(), columns["effect_size"].tolist()
    ([0.0], [0.25], [1.0])

    Source:
        Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1945.
    """

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Compare all pairs of rows of ``values``, ``float64[s, u]``; ``rng`` is not used."""
        moments = compute_pair_moments(values)
        n_pairs = moments.a.size
        up, down, p = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs)
        for block, differences in iterate_differences(values, moments.a, moments.b):
            ranks = rank_differences(differences)
            up[block] = np.maximum(ranks, 0.0).sum(axis=1)
            down[block] = np.maximum(-ranks, 0.0).sum(axis=1)
            p[block] = compute_p_values(ranks)
        return {
            **moments.columns(self.alpha),
            "statistic": np.where(up + down > 0, np.minimum(up, down), np.nan),
            "df": np.full(n_pairs, np.nan),
            "p": np.where(moments.n > 1, p, np.nan),
            "effect_size": rank_biserial(up, down),
        }


EXACT = "fisher_exact"
"""The name of the test of the tables with a small expected count."""

_LEAST_EXPECTED = 5.0
"""X² follows the chi-squared distribution poorly where an expected count is below this."""


@dataclass(frozen=True, kw_only=True)
class ChiSquared(CorrectedTest):
    """Pearson's chi-squared test that two models have the same share of units with the value 1.

        X² = 2 n (s_a - s_b)² / ((s_a + s_b) (2 - s_a - s_b)),    1 degree of freedom

    n is the number of units that both models define, and s_a, s_b are the shares of 1 among them.
    It is the test of independence of the table (model, value), without continuity correction. It
    treats the values of the two models as independent samples: if both are of the same units, as
    in a run, its p is too large, and ``sign_flip`` is the test of the pairs. It is here to compare
    with papers that use it. The interval is the t interval of the mean difference of the pairs.

    Where an expected count, n (s_a + s_b) / 2 or n (2 - s_a - s_b) / 2, is below 5, p is that of
    Fisher's exact test of the same table (two-sided): the row names the test ``fisher_exact``, has
    no statistic, and is corrected together with the others. No conclusion is drawn from such rows.

    ``effect_size`` is φ = ±√(X² / 2n), with the sign of s_a - s_b. Metrics with other values than
    0 and 1 have no statistic and no p: they are counted in a warning. If both shares are 0, or
    both are 1, X² is undefined and p is 1. With fewer than two units there is no p-value.

    >>> values = np.repeat([[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]], 5, axis=1)  # 15, 5 of 20
    >>> columns = ChiSquared().pairs(values, np.random.default_rng(0))
    >>> columns["statistic"].tolist(), columns["p"].round(4).tolist()
    ([10.0], [0.0016])
    >>> columns = ChiSquared().pairs(np.array([[1.0, 1.0], [0.0, 0.0]]), np.random.default_rng(0))
    >>> columns["test"].tolist(), columns["p"].round(4).tolist()
    (['fisher_exact'], [0.3333])

    Source:
        Fisher, "On the interpretation of χ² from contingency tables, and the calculation of P",
        Journal of the Royal Statistical Society 1922; Cochran, "Some methods for strengthening the
        common χ² tests", Biometrics 1954, for the limit of 5;
        Pearson, "On the criterion that a given system of deviations from the probable [...] can be
        reasonably supposed to have arisen from random sampling", Philosophical Magazine 1900.
    """

    undefined_where: ClassVar[str] = (
        f"values other than 0 and 1, or {CorrectedTest.undefined_where}"
    )

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Compare all pairs of rows of ``values``, ``float64[s, u]``; ``rng`` is not used."""
        from scipy.special import chdtrc

        moments = compute_pair_moments(values)
        is_share = np.isin(values[~np.isnan(values)], (0.0, 1.0)).all()
        testable = (moments.n > 1) & is_share
        total = moments.mean_a + moments.mean_b
        with np.errstate(invalid="ignore", divide="ignore"):
            squared = 2.0 * moments.n * moments.difference**2 / (total * (2.0 - total))
        statistic = np.where(testable, squared, np.nan)
        is_constant = testable & ((total <= 0.0) | (total >= 2.0))
        counts = np.rint(moments.n * np.minimum(total, 2.0 - total))
        is_small = testable & ~is_constant & (counts < 2.0 * _LEAST_EXPECTED)
        p = np.where(is_constant, 1.0, chdtrc(1.0, statistic))
        p[is_small] = _compute_exact_p(moments, np.flatnonzero(is_small))
        has_no_statistic = is_constant | is_small
        with np.errstate(invalid="ignore", divide="ignore"):
            phi = np.sign(moments.difference) * np.sqrt(statistic / (2.0 * moments.n))
        return {
            **moments.columns(self.alpha),
            "statistic": np.where(has_no_statistic, np.nan, statistic),
            "df": np.where(testable & ~has_no_statistic, 1.0, np.nan),
            "p": p,
            "effect_size": np.where(is_constant, np.nan, phi),
            "test": np.where(is_small, EXACT, ""),
        }


def _compute_exact_p(moments: _PairMoments, pairs: npt.NDArray[np.intp]) -> FloatArray:
    """Return the two-sided p of Fisher's exact test for the given pairs."""
    if not pairs.size:
        return np.empty(0)
    from scipy.stats import fisher_exact

    n = moments.n[pairs]
    ones = np.rint(np.stack([moments.mean_a[pairs] * n, moments.mean_b[pairs] * n], axis=1))
    tables = np.stack([ones, n[:, None] - ones], axis=2).astype(np.int64)
    return np.array([fisher_exact(table).pvalue for table in tables])


BLOCK_SIZE = 2**22
"""Signs held in memory at once."""


@dataclass(frozen=True, kw_only=True)
class SignFlip(CorrectedTest):
    """The sign-flip permutation test of the mean difference between two models.

        p = #{ |Σ s_u d_u| ≥ |Σ d_u| } / #{signings},    d = a - b for each unit,  s_u = ±1

    If two models are equivalent, a unit's difference is equally likely to be d or -d. The test
    flips the signs of the differences and counts the signings whose sum is at least as far from 0
    as the observed sum, which is itself a signing. If there are at most ``permutations`` signings
    of the units that both models define (13 units at 10,000), all are enumerated and p is exact;
    otherwise ``permutations`` signings are sampled and p = (hits + 1) / (permutations + 1), never
    0. All pairs of one metric share their signings. The test makes no assumption about the
    distribution.

    ``statistic`` is the mean difference, ``effect_size`` Cohen's d_z = mean(d) / sd(d), and the
    interval is the t interval of the mean difference. Units that one of the two models does not
    define are excluded from their comparison. With fewer than two units there is no p-value. If
    all differences are 0, p is 1.

    Args:
        permutations: The number of sampled signings, and the largest number that is enumerated.

    >>> values = np.array([[3.0, 5.0, 7.0], [1.0, 4.0, 4.0]])  # differences 2, 1, 3: 2 of 8
    >>> SignFlip().pairs(values, np.random.default_rng(0))["p"].tolist()
    [0.25]

    Source:
        Fisher, "The Design of Experiments", 1935, section 21; Phipson and Smyth, "Permutation
        p-values should never be zero", 2010.
    """

    permutations: Permutations = 10_000

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        """Compare all pairs of rows of ``values``, ``float64[s, u]``."""
        moments = compute_pair_moments(values)
        p = np.empty(moments.a.size)
        seed = int(rng.integers(2**63))
        for block, differences in iterate_differences(values, moments.a, moments.b):
            defined = ~np.isnan(differences)
            is_exact = defined.sum(axis=1) < self.permutations.bit_length()
            for row in np.flatnonzero(is_exact & ~defined.all(axis=1)):
                units = differences[row, defined[row]]
                p[block][row] = self._compute_p_values(units[:, None], seed).item()
            others = defined.all(axis=1) | ~is_exact
            p[block][others] = self._compute_p_values(np.nan_to_num(differences[others]).T, seed)
        return {
            **moments.columns(self.alpha),
            "statistic": moments.difference,
            "df": np.full(p.size, np.nan),
            "p": np.where(moments.n > 1, p, np.nan),
            "effect_size": cohens_dz(moments.difference, moments.std),
        }

    def _compute_p_values(self, differences: FloatArray, seed: int) -> FloatArray:
        n_units = differences.shape[0]
        n_signings: int = min(1 << n_units, self.permutations)
        exact = n_signings == 1 << n_units
        signings = _iterate_signs(n_units, n_signings, None if exact else seed)
        threshold = np.abs(differences.sum(axis=0))
        threshold -= ROUNDING * np.abs(differences).sum(axis=0)
        hits, completed = np.zeros(differences.shape[1]), 0
        for signs in signings:
            hits += np.count_nonzero(np.abs(signs @ differences) >= threshold, axis=0)
            completed += len(signs)
            report_progress("sign-flip permutations", completed, n_signings)
        return hits / n_signings if exact else (hits + 1.0) / (n_signings + 1.0)


def _iterate_signs(n_units: int, n_signings: int, seed: int | None) -> Iterator[FloatArray]:
    """Yield every signing once, or as many sampled from ``seed``, ``float64[block, u]`` of ±1."""
    rng = np.random.default_rng(seed)
    size = max(1, BLOCK_SIZE // max(n_units, 1))
    for start in range(0, n_signings, size):
        numbers = np.arange(start, min(start + size, n_signings))
        if seed is None:
            bits: AnyArray = (numbers[:, None] >> np.arange(n_units)) & 1
        else:
            octets = rng.integers(0, 256, size=(numbers.size, -(-n_units // 8)), dtype=np.uint8)
            bits = np.unpackbits(octets, axis=1, count=n_units)
        yield np.subtract(1.0, 2.0 * bits, dtype=np.float64)
