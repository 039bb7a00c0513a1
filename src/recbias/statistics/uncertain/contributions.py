"""What each query contributes to the means of groups that are known as probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.queries.uncertain_groups import UncertainGroups


@dataclass(frozen=True, eq=False)
class GroupContributions:
    """The estimated mean of each group, and what each query contributes to it.

        m_g = Σ_u w_ug x_u,    z_ug = m_g + √(n (n - 1)) (d_ug - mean of d),
        d_ug = w_ug e_ug / √(1 - h_ug)

    With P the probabilities ``[n, g]`` and x the values:

    - ``probability``: W = P (P'P)⁻¹, the least-squares fit x ≈ P m, with e = x - P m and h its
      leverage. It is right if x is independent of p given the group: then E[x | p] = Σ_g p_g m_g.
    - ``weight``: w_ug = p_ug / Σ_v p_vg, the weighted mean, with e_ug = x_u - m_g and h = w. It is
      right if x is independent of the group given p: then E[p_g x] = E[p_g] m_g.

    In both, p is the probability of the group given what it was predicted from. The mean of z over
    the queries is m_g, and its variance over n estimates that of m_g (HC2), which includes the
    sampling of the queries and the unknown groups. For certain labels m_g and its standard error
    are those of the mean of the group.

    Args:
        means: ``float64[g]``.
        values: z, ``float64[n, g]``; NaN where the metric or the probability is undefined.
        weights: w, ``float64[m, g]``, of the defined values.
        spread: Σ_u p_ug e_ug², ``float64[g]``.
        expected: The expected number of queries of each group, Σ_u p_ug, ``float64[g]``.

    Source:
        Weighted means: Chen et al., "Fairness under unawareness", FAT* 2019. Least squares:
        McCartan et al., "Estimating racial disparities when race is not observed", JASA 2025.
        Both assumptions for rankings: Ghazimatin et al., "Measuring fairness of rankings under
        noisy sensitive information", FAccT 2022. Standard error: MacKinnon and White, Journal of
        Econometrics 1985.
    """

    means: FloatArray
    values: FloatArray
    weights: FloatArray
    spread: FloatArray
    expected: FloatArray

    @property
    def df(self) -> FloatArray:
        """The degrees of freedom of each mean, ``float64[g]``; see ``count_df``."""
        return count_df(self.weights, 1)


def count_df(weights: FloatArray, lost: int) -> FloatArray:
    """Return the degrees of freedom of Σ w² e² for each column of weights, ``float64[...]``.

        df = (Σ w²)² / Σ w⁴ - lost

    For certain labels it is n_g - 1 for the mean of a group (``lost`` 1).

    >>> count_df(np.array([[0.5], [0.5], [0.0]]), 1).tolist()
    [1.0]

    Source:
        Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics Bulletin 1946.
    """
    squares = weights**2
    return np.asarray(squares.sum(axis=0) ** 2 / (squares**2).sum(axis=0) - lost)


def measure_contributions(values: FloatArray, groups: UncertainGroups) -> GroupContributions:
    """Return the estimated means of the groups, and the contribution of each query.

    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
    >>> groups = UncertainGroups("probability of a", ("a", "not a"), p, "probability")
    >>> measure_contributions(2.0 * p[:, 0] + 1.0, groups).means.round(6).tolist()
    [3.0, 1.0]
    """
    used = ~np.isnan(values) & ~np.isnan(groups.probabilities[:, 0])
    x, p = values[used], groups.probabilities[used]
    n_groups, n = len(groups.names), x.size
    contributions = np.full((values.size, n_groups), np.nan)
    undefined = np.full(n_groups, np.nan)
    weights = _weigh(p, groups)
    if weights is None:
        blank = np.full((n, n_groups), np.nan)
        return GroupContributions(undefined, contributions, blank, undefined, undefined)
    means = weights.T @ x
    if groups.assumption == "probability":
        residuals = np.repeat((x - p @ means)[:, None], n_groups, axis=1)
        leverage = np.sum(p * weights, axis=1)[:, None]
    else:
        residuals, leverage = x[:, None] - means, weights
    scaled = weights * residuals / np.sqrt(np.maximum(1.0 - leverage, 1e-12))
    scaled -= scaled.mean(axis=0)
    contributions[used] = means + math.sqrt(n * (n - 1.0)) * scaled
    spread = np.sum(p * residuals**2, axis=0)
    measured = GroupContributions(means, contributions, weights, spread, p.sum(axis=0))
    contributions[:, measured.df < 1.0] = np.nan
    return replace(measured, means=np.where(measured.df < 1.0, np.nan, means))


def _weigh(p: FloatArray, groups: UncertainGroups) -> FloatArray | None:
    """Return the weight of each query in each mean, None if a mean is not determined."""
    if len(p) < 2 or not (p.sum(axis=0) > 0).all():
        return None
    if groups.assumption == "weight":
        return np.asarray(p / p.sum(axis=0))
    singular = np.linalg.svd(p, compute_uv=False)
    if len(p) <= p.shape[1] or singular[-1] < 1e-6 * singular[0]:
        return None
    return np.asarray(np.linalg.solve(p.T @ p, p.T).T)
