"""How far raters agree beyond chance: Cohen's kappa of two, Krippendorff's alpha of any number."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray, Matrix

Level: TypeAlias = Literal["nominal", "interval"]
"""How much two ratings differ: 1 where they are not the same, or by the square of their gap."""

BLOCK_VALUES = 2**21
"""How many weights of units are held at once."""


def cohen_kappa(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[float, float]:
    """Return how far two raters agree beyond chance, and the standard error of that.

        κ = (p_o - p_e) / (1 - p_e),    p_o = Σ_c p_cc,    p_e = Σ_c p_c· p_·c

        se² = ( Σ_c p_cc (1 - (p_c· + p_·c)(1 - κ))²
                + (1 - κ)² Σ_{c ≠ d} p_cd (p_·c + p_d·)²
                - (κ - p_e (1 - κ))² ) / (n (1 - p_e)²)

    p_cd is the share of the units that ``a`` puts into category c and ``b`` into d. 1 is full
    agreement, 0 is that of chance. The error is the large-sample one for κ other than 0. Units
    that one of the two left out do not count. Both are NaN without a unit, or where all ratings
    are the same, so that chance alone would agree.

    Args:
        a: The categories that one rater gave, as numbers; NaN where there is none, ``float64[n]``.
        b: Those of the other.

    >>> kappa, error = cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
    >>> round(kappa, 3), round(error, 3)
    (0.5, 0.375)

    Source:
        Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
        Measurement 1960; the error: Fleiss, Cohen and Everitt, "Large sample standard errors of
        kappa and weighted kappa", Psychological Bulletin 1969, equation 13.
    """
    shares, n = _joint_shares(np.asarray(a, np.float64), np.asarray(b, np.float64))
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    agreed, chance = float(np.trace(shares)), float(rows @ columns)
    if not n or chance >= 1:
        return math.nan, math.nan
    kappa = (agreed - chance) / (1 - chance)
    both = columns[:, None] + rows[None, :]
    weights = ((1 - kappa) * both) ** 2
    np.fill_diagonal(weights, (1 - (rows + columns) * (1 - kappa)) ** 2)
    spread = float((shares * weights).sum()) - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(spread, 0.0) / n) / (1 - chance)


def krippendorff_alpha(ratings: npt.ArrayLike, level: Level = "nominal") -> float:
    """Return how far any number of raters agree beyond chance, with gaps in their ratings.

        α = 1 - D_o / D_e
        D_o = (1/n) Σ_u 1/(m_u - 1) Σ_{i ≠ j} δ(v_ui, v_uj)
        D_e = 1/(n (n - 1)) Σ_{i ≠ j} δ(v_i, v_j)

    m_u is the number of ratings of unit u; units with fewer than two do not count; n is the sum of
    the others' m_u, over whose ratings the last sum runs. δ is [v ≠ w] for ``nominal`` and
    (v - w)² for ``interval`` ratings. 1 is full agreement, 0 is that of chance. NaN where no unit
    has two ratings, or all ratings are the same.

    Args:
        ratings: ``float64[raters, units]``, NaN where a rater left a unit out.
        level: How much two ratings differ.

    >>> round(krippendorff_alpha([[1, 1, 0, 0], [1, 0, 0, np.nan]]), 3)
    0.444

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """
    moments = _moments(np.asarray(ratings, np.float64), level)
    return float(_alpha(np.asarray(moments.sum(axis=0)), level))


def alpha_replicates(
    ratings: npt.ArrayLike, level: Level, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return Krippendorff's alpha on bootstrap samples of the units.

    Args:
        ratings: ``float64[raters, units]``, NaN where a rater left a unit out.
        level: How much two ratings differ.
        n_samples: How many samples are drawn.
        rng: The generator.

    Returns:
        ``float64[n_samples]``; NaN where alpha is not defined on a sample.
    """
    moments = _moments(np.asarray(ratings, np.float64), level)
    n_units = moments.shape[0]
    found = np.full(n_samples, np.nan)
    if not n_units:
        return found
    size = max(1, BLOCK_VALUES // max(moments.shape))
    chances = np.full(n_units, 1.0 / n_units)
    for start in range(0, n_samples, size):
        block = found[start : start + size]
        weights = rng.multinomial(n_units, chances, size=block.size).astype(np.float64)
        block[:] = _alpha(weights @ moments, level)
    return found


def _joint_shares(a: FloatArray, b: FloatArray) -> tuple[FloatArray, int]:
    """Return the share of each pair of categories, ``float64[c, c]``, and the number of units."""
    both = ~(np.isnan(a) | np.isnan(b))
    n = int(np.count_nonzero(both))
    values, codes = np.unique(np.concatenate([a[both], b[both]]), return_inverse=True)
    size = values.size
    counts = np.bincount(codes[:n] * size + codes[n:], minlength=size**2)
    return counts.reshape(size, size) / max(n, 1), n


def _moments(ratings: FloatArray, level: Level) -> Matrix:
    """Return what alpha is a function of the sum of, CSR ``(units, c)``, a row a unit.

    The columns are m_u, the disagreement inside the unit, and then what the overall disagreement
    follows from: how often each value occurs (``nominal``), or Σ v and Σ v² (``interval``).
    """
    from scipy.sparse import csr_array, hstack

    rated = ~np.isnan(ratings)
    paired = ratings[:, rated.sum(axis=0) > 1]
    sizes = (~np.isnan(paired)).sum(axis=0)
    parts = _value_counts(paired) if level == "nominal" else _power_sums(paired)
    inside = _disagreement(sizes, parts, level) / np.maximum(sizes - 1, 1)
    return hstack([csr_array(np.column_stack([sizes, inside])), parts]).tocsr()


def _value_counts(ratings: FloatArray) -> Matrix:
    from scipy.sparse import coo_array

    units = np.nonzero(~np.isnan(ratings.T))[0]
    values, codes = np.unique(ratings.T[~np.isnan(ratings.T)], return_inverse=True)
    shape = (ratings.shape[1], values.size)
    return coo_array((np.ones(units.size), (units, codes)), shape=shape).tocsr()


def _power_sums(ratings: FloatArray) -> Matrix:
    from scipy.sparse import csr_array

    middle = float(np.nanmean(ratings)) if ratings.size else 0.0
    gaps = np.nan_to_num(ratings - middle)
    return csr_array(np.column_stack([gaps.sum(axis=0), (gaps**2).sum(axis=0)]))


def _alpha(sums: FloatArray, level: Level) -> AnyArray:
    """Return alpha of sums of the moments of units, ``float64[..., c]``."""
    n, inside = sums[..., 0], sums[..., 1]
    overall = _disagreement(n, sums[..., 2:], level)
    most = n * (n if level == "nominal" else 2.0 * sums[..., 3])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1.0 - (n - 1.0) * inside / overall
    return np.asarray(np.where(overall > _ROUNDING * most, found, np.nan))


def _disagreement(sizes: AnyArray, parts: Any, level: Level) -> AnyArray:
    """Return the sum of δ over the pairs of the ratings that ``parts`` count."""
    if level == "nominal":
        return np.asarray(sizes**2 - (parts**2).sum(axis=-1))
    dense = parts if isinstance(parts, np.ndarray) else parts.toarray()
    return np.asarray(2.0 * (sizes * dense[..., 1] - dense[..., 0] ** 2))


_ROUNDING = 1e-12
"""The part of what there could be that is no disagreement but rounding."""
