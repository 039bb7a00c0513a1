"""Rank correlation: Spearman's rho, and Kendall's tau between metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray


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
