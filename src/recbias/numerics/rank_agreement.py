"""Whether two orders agree: Spearman's correlation, and Kendall's tau between metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far the metrics of a table order its models alike.

    Args:
        tau: Kendall's tau-b of each pair of metrics, ``float64[m, m]``; NaN where it is undefined.
        n: How many models have a figure of both, ``int64[m, m]``.
    """

    tau: FloatArray
    n: npt.NDArray[np.int64]


def kendall_tau(table: npt.ArrayLike) -> Agreement:
    """Return Kendall's tau-b between the columns of a table: do two metrics order models alike?

        τ = (P - Q) / √((P + Q + X) (P + Q + Y))

    P and Q are the pairs of models that both metrics order alike, and in reverse; X and Y the
    pairs that only the first, and only the second, ties. 1 is the same order, -1 the reverse.

    Args:
        table: One row a model, one column a metric, ``float64[s, m]``; NaN is no figure, and the
            model is left out of the pairs of that metric.

    Returns:
        The taus, and how many models each stands on; tau is NaN below two models, and where a
        metric gives all of them the same figure.

    >>> kendall_tau([[1, 4], [2, 6], [3, 5]]).tau[0].round(4).tolist()
    [1.0, 0.3333]

    Source:
        Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945.
    """
    values = np.asarray(table, dtype=np.float64)
    defined = (~np.isnan(values)).astype(np.float64)
    one, other = np.triu_indices(len(values), k=1)
    both = defined[one] * defined[other]
    signs = np.where(both > 0, np.sign(values[one] - values[other]), 0.0)
    alike = signs.T @ signs
    ordered = (signs**2).T @ both  # pairs that the row's metric orders, of those both have
    scale = np.sqrt(ordered * ordered.T)
    tau = np.divide(alike, scale, out=np.full(alike.shape, np.nan), where=scale > 0)
    return Agreement(tau, (defined.T @ defined).astype(np.int64))


def spearman(one: AnyArray, other: AnyArray) -> FloatArray:
    """Return Spearman's rank correlation of each pair of rows; ties share their mean rank.

    Args:
        one: ``float64[..., n]``; NaN in either leaves the place out of both.
        other: Values of the same shape.

    Returns:
        ``float64[...]``; NaN below two places, or where all values of a row are equal.

    >>> float(spearman(np.array([1.0, 5.0, 3.0, np.nan]), np.array([2.0, 9.0, 4.0, 1.0])))
    1.0

    Source:
        Spearman, "The proof and measurement of association between two things", 1904.
    """
    from scipy.stats import rankdata

    known = ~(np.isnan(one) | np.isnan(other))
    if not known.size:
        return np.full(known.shape[:-1], np.nan)
    n = known.sum(axis=-1, keepdims=True)
    # NaN becomes the largest value: it ranks behind the n known ones, and is then left out
    ranks = [rankdata(np.where(known, each, np.inf), axis=-1) for each in (one, other)]
    x, y = (np.where(known, each - (n + 1) / 2, 0.0) for each in ranks)
    scale = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    undefined = np.full(scale.shape, np.nan)
    return np.asarray(np.divide((x * y).sum(axis=-1), scale, out=undefined, where=scale > 0))
