"""Standardised effect sizes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray


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
    return np.asarray(np.where(np.asarray(std) == 0, np.nan, effect), dtype=np.float64)


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
