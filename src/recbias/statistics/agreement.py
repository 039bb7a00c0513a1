"""Agreement: rank correlation of values, and chance-corrected agreement of raters.

Spearman's rho, Kendall's tau between metrics, Cohen's kappa, and Krippendorff's alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recbias.core.dataset import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class Agreement:
    """Kendall's tau-b of each pair of metrics ``[m, m]``, and the number of models with both."""

    tau: FloatArray
    n: npt.NDArray[np.int64]


def kendall_tau(table: npt.ArrayLike) -> Agreement:
    """Return Kendall's tau-b of each pair of columns: the agreement of two metrics on models.

        τ = (P - Q) / √((P + Q + X) (P + Q + Y))

    P and Q are the numbers of concordant and discordant pairs of models; X and Y those of
    pairs tied only in the first and only in the second metric. 1 is the same order, -1 reversed.
    The table is ``float64[models, metrics]``; a model with NaN is excluded from the pairs of that
    metric. Tau is NaN for fewer than two models, and where a metric is constant.

    >>> kendall_tau([[1, 4], [2, 6], [3, 5]]).tau[0].round(4).tolist()
    [1.0, 0.3333]

    Source:
        Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945.
    """
    values = np.asarray(table, dtype=np.float64)
    defined = (~np.isnan(values)).astype(np.float64)
    left, right = np.triu_indices(len(values), k=1)
    both = defined[left] * defined[right]
    signs = np.where(both > 0, np.sign(values[left] - values[right]), 0.0)
    concordance = signs.T @ signs
    untied = (signs**2).T @ both  # pairs untied in the row's metric and defined in both
    scale = np.sqrt(untied * untied.T)
    tau = np.divide(concordance, scale, out=np.full(scale.shape, np.nan), where=scale > 0)
    return Agreement(tau, (defined.T @ defined).astype(np.int64))


def spearman(a: AnyArray, b: AnyArray) -> FloatArray:
    """Return Spearman's rank correlation of each pair of rows; ties share their mean rank.

    Positions with NaN in either array ``[..., n]`` are excluded from both; the correlation is NaN
    for fewer than two positions, and for a constant row.

    >>> float(spearman(np.array([1.0, 5.0, 3.0, np.nan]), np.array([2.0, 9.0, 4.0, 1.0])))
    1.0

    Source:
        Spearman, "The proof and measurement of association between two things", 1904.
    """
    from scipy.stats import rankdata

    defined = ~(np.isnan(a) | np.isnan(b))
    if not defined.size:
        return np.full(defined.shape[:-1], np.nan)
    n = defined.sum(axis=-1, keepdims=True)
    # undefined values become the largest: they rank after the n defined ones, and are then masked
    ranks = [rankdata(np.where(defined, values, np.inf), axis=-1) for values in (a, b)]
    x, y = (np.where(defined, rank - (n + 1) / 2, 0.0) for rank in ranks)
    scale = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    undefined = np.full(scale.shape, np.nan)
    return np.asarray(np.divide((x * y).sum(axis=-1), scale, out=undefined, where=scale > 0))


Level: TypeAlias = Literal["nominal", "interval"]
"""The difference of two ratings: 1 if they differ (nominal), or the squared difference."""

_BLOCK_VALUES = 2**21
"""Unit weights held in memory at once."""

_ROUNDING = 1e-12
"""Disagreement below this share of its maximum is a rounding error."""


def cohen_kappa(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[float, float]:
    """Return Cohen's kappa of two raters and its standard error.

        κ = (p_o - p_e) / (1 - p_e),    p_o = Σ_c p_cc,    p_e = Σ_c p_c· p_·c

        se² = ( Σ_c p_cc (1 - (p_c· + p_·c)(1 - κ))²
                + (1 - κ)² Σ_{c ≠ d} p_cd (p_·c + p_d·)²
                - (κ - p_e (1 - κ))² ) / (n (1 - p_e)²)

    p_cd is the share of the units that ``a`` assigns to category c and ``b`` to d. 1 is perfect
    agreement, 0 is agreement expected by chance. The standard error is the large-sample one for κ
    other than 0. Units without a rating (NaN) by both raters are excluded. Both values are NaN
    without a unit, or if all ratings are equal.

    >>> kappa, error = cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
    >>> round(kappa, 3), round(error, 3)
    (0.5, 0.375)

    Source:
        Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
        Measurement 1960; the standard error: Fleiss, Cohen and Everitt, "Large sample standard
        errors of kappa and weighted kappa", Psychological Bulletin 1969, equation 13.
    """
    shares, n = _joint_shares(np.asarray(a, np.float64), np.asarray(b, np.float64))
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    agreement, chance = float(np.trace(shares)), float(rows @ columns)
    if not n or chance >= 1:
        return math.nan, math.nan
    kappa = (agreement - chance) / (1 - chance)
    margins = columns[:, None] + rows[None, :]
    weights = ((1 - kappa) * margins) ** 2
    np.fill_diagonal(weights, (1 - (rows + columns) * (1 - kappa)) ** 2)
    variance = float((shares * weights).sum()) - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(variance, 0.0) / n) / (1 - chance)


def krippendorff_alpha(ratings: npt.ArrayLike, level: Level = "nominal") -> float:
    """Return Krippendorff's alpha of any number of raters, with missing ratings.

        α = 1 - D_o / D_e
        D_o = (1/n) Σ_u 1/(m_u - 1) Σ_{i ≠ j} δ(v_ui, v_uj)
        D_e = 1/(n (n - 1)) Σ_{i ≠ j} δ(v_i, v_j)

    m_u is the number of ratings of unit u; units with fewer than two are excluded; n is the sum of
    the remaining m_u, over whose ratings the last sum runs. δ is [v ≠ w] for ``nominal`` and
    (v - w)² for ``interval`` ratings. 1 is perfect agreement, 0 is agreement expected by chance.
    Ratings are ``float64[raters, units]``, NaN if missing. Alpha is NaN if no unit has two
    ratings, or if all ratings are equal.

    >>> round(krippendorff_alpha([[1, 1, 0, 0], [1, 0, 0, np.nan]]), 3)
    0.444

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """
    moments = _moments(np.asarray(ratings, np.float64), level)
    return float(_alpha(moments.sum(axis=0), level))


def resample_alpha(
    ratings: npt.ArrayLike, level: Level, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """Return Krippendorff's alpha on bootstrap samples of the units, NaN where it is undefined.

    The arguments are those of ``krippendorff_alpha``.
    """
    moments = _moments(np.asarray(ratings, np.float64), level)
    n_units = moments.shape[0]
    alphas = np.full(n_samples, np.nan)
    if not n_units:
        return alphas
    size = max(1, _BLOCK_VALUES // max(moments.shape))
    chances = np.full(n_units, 1.0 / n_units)
    for start in range(0, n_samples, size):
        block = alphas[start : start + size]
        weights = rng.multinomial(n_units, chances, size=block.size).astype(np.float64)
        block[:] = _alpha(weights @ moments, level)
    return alphas


def _joint_shares(a: FloatArray, b: FloatArray) -> tuple[FloatArray, int]:
    """Return the share of each pair of categories, ``float64[c, c]``, and the number of units."""
    rated = ~(np.isnan(a) | np.isnan(b))
    n = int(np.count_nonzero(rated))
    values, codes = np.unique(np.concatenate([a[rated], b[rated]]), return_inverse=True)
    size = values.size
    counts = np.bincount(codes[:n] * size + codes[n:], minlength=size**2)
    return counts.reshape(size, size) / max(n, 1), n


def _moments(ratings: FloatArray, level: Level) -> FloatArray:
    """Return the terms of each unit whose sums determine alpha, ``float64[units, c]``.

    They are the number of ratings, the disagreement within the unit, and the parts of
    ``_disagreement``, of units with two ratings or more.
    """
    paired = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
    rated = ~np.isnan(paired)
    sizes = rated.sum(axis=0)
    if level == "nominal":
        parts = [(paired == value).sum(axis=0) for value in np.unique(paired[rated])]
    else:
        deviations = np.nan_to_num(paired - (np.nanmean(paired) if paired.size else 0.0))
        parts = [deviations.sum(axis=0), (deviations**2).sum(axis=0)]
    columns = np.reshape(parts, (len(parts), sizes.size)).T
    within = _disagreement(sizes, columns, level) / np.maximum(sizes - 1, 1)
    return np.column_stack([sizes, within, columns])


def _alpha(sums: FloatArray, level: Level) -> AnyArray:
    """Return alpha from the sums of the terms, ``float64[..., c]``."""
    n, within = sums[..., 0], sums[..., 1]
    overall = _disagreement(n, sums[..., 2:], level)
    maximum = n * (n if level == "nominal" else 2.0 * sums[..., 3])
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = 1.0 - (n - 1.0) * within / overall
    return np.asarray(np.where(overall > _ROUNDING * maximum, alpha, np.nan))


def _disagreement(sizes: AnyArray, parts: FloatArray, level: Level) -> FloatArray:
    """Return the sum of δ over the pairs of the ratings that ``parts[..., c]`` sum up.

    The parts are the number of each rating (nominal), or the sums of ratings and squares.
    """
    if level == "nominal":
        return np.asarray(sizes**2.0 - (parts**2).sum(axis=-1))
    return np.asarray(2.0 * (sizes * parts[..., 1] - parts[..., 0] ** 2))
