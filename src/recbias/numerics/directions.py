"""Directions of a vector space that separate two sets of vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray

TIED_LEVEL = 0.01
"""The probability that components of equal variance do not count as tied."""

ZERO_TOLERANCE = 1e-12
"""Length, relative to the vectors it is computed from, up to which a direction counts as 0."""


def normalize_rows(vectors: AnyArray) -> FloatArray:
    """Scale each row to length 1, ``float64 (n, d)``; a row of zeros becomes NaN.

    >>> normalize_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [nan, nan]]
    """
    rows = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, np.nan)  # avoids overflow of the squares
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


def normalize_vector(direction: AnyArray) -> FloatArray:
    """Scale a vector to length 1, ``float64[d]``; a vector of zeros becomes NaN."""
    return np.asarray(normalize_rows(np.asarray(direction)[None, :])[0])


def centroid_difference(a: AnyArray, b: AnyArray) -> FloatArray:
    """Return the mean row of ``a`` minus that of ``b``, ``float64[d]``; 0 if they are equal.

    >>> centroid_difference(np.array([[1.0, 2.0]]), np.array([[0.0, 2.0]])).tolist()
    [1.0, 0.0]
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    gap = a.mean(axis=0) - b.mean(axis=0)
    is_zero = np.abs(gap).max(initial=0.0) <= ZERO_TOLERANCE * _max_magnitude(a, b)
    return np.zeros_like(gap) if is_zero else gap


def fit_pair_component(a: AnyArray, b: AnyArray, *, centred: bool) -> FloatArray:
    """Return the first principal component of the differences of all pairs of ``a`` and ``b``.

        (1 / n m) Σ_i Σ_j (a_i - b_j)(a_i - b_j)ᵀ = S_a + S_b + (m_a - m_b)(m_a - m_b)ᵀ

    S are the covariances (divided by n, not n - 1) and m the means, so the pairs are never formed.
    If ``centred``, the mean difference is subtracted first, which leaves S_a + S_b. The component
    has length 1 and arbitrary sign; it is 0 if the differences do not vary.

    >>> component = fit_pair_component(
    ...     np.array([[0.0, 1], [0, 3]]), np.array([[5.0, 1]]), centred=True
    ... )
    >>> np.abs(component).round(6).tolist()  # the differences are (-5, 0) and (-5, 2)
    [0.0, 1.0]
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    factors = [a - a.mean(axis=0), b - b.mean(axis=0)]
    if not centred:
        factors.append(centroid_difference(a, b)[None, :])
    moment = sum(factor.T @ factor / len(factor) for factor in factors)
    eigenvalues, axes = np.linalg.eigh(moment)
    varies = eigenvalues[-1] > (ZERO_TOLERANCE * _max_magnitude(a, b)) ** 2
    return np.asarray(axes[:, -1] if varies else 0.0 * axes[:, -1])


def _max_magnitude(a: FloatArray, b: FloatArray) -> float:
    return float(max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0)))


def principal_components(rows: AnyArray, n: int, *, centred: bool = True) -> FloatArray:
    """Return the unit directions of largest variance, in descending order of variance.

    Rows of lower rank than ``n`` give fewer; the signs are arbitrary. If ``centred``, the mean of
    the rows is subtracted first.

    >>> rows = np.array([[2.0, 1.0], [-2.0, 1.0], [2.0, 3.0], [-2.0, 3.0]])
    >>> np.abs(principal_components(rows, 1)).round(6).tolist()  # x has the larger variance
    [[1.0, 0.0]]
    """
    shifted = np.asarray(rows, dtype=np.float64)
    if centred:
        shifted = shifted - shifted.mean(axis=0)
    _, sizes, axes = np.linalg.svd(shifted, full_matrices=False)
    scale = max(np.abs(rows).max(initial=0.0), sizes[:1].max(initial=0.0))
    return np.asarray(axes[:n][sizes[:n] > ZERO_TOLERANCE * scale])


def is_component_tied(groups: Sequence[FloatArray], shift: FloatArray | None = None) -> bool:
    """Return whether another principal component may be the first one of all there could be.

        M = Σ_g mean_g(u uᵀ) + s sᵀ,    component j is tied with the first if
        λ_1 - λ_j < √( -8 log α ) δ_j,    δ_j² = Σ_g var_g(u_1 u_j ± s_1 u_j ± s_j u_1) / n_g

    M is the second moment of differences, δ_j the standard error of its entry (1, j), and u_j and
    s_j coordinates along component j. If two eigenvalues of all there could be are equal, the
    squared difference of those of a sample is 4 δ_j² times a chi-squared variable of two degrees
    of freedom, above the limit with probability α = 0.01 / (d - 1), Bonferroni's level; any vector
    in the plane of the two components may then be the first.

    Args:
        groups: The rows u of each group, ``float64 (n, d)``: vectors less the mean of their group,
            or differences of pairs.
        shift: The difference s of the means of two groups, ``float64[d]``, of which the sign is +
            for the first and - for the second; by default 0.

    >>> rows = np.array([[2.0, 1.0], [-2.0, -1.0], [2.0, -1.0], [-2.0, 1.0]])
    >>> is_component_tied([rows])  # λ is 4 and 1, δ is 1: 3 < 6.1
    True
    >>> is_component_tied([np.repeat(rows, 20, axis=0)])  # δ is 1 / √20
    False

    Source:
        Anderson, "Asymptotic theory for principal component analysis", Annals of Mathematical
        Statistics 1963; North, Bell, Cahalan and Moeng, "Sampling errors in the estimation of
        empirical orthogonal functions", Monthly Weather Review 1982.
    """
    mean = np.zeros(groups[0].shape[1]) if shift is None else shift
    moments = sum(rows.T @ rows / len(rows) for rows in groups) + np.outer(mean, mean)
    values, vectors = np.linalg.eigh(moments)
    values, vectors = values[::-1], vectors[:, ::-1]
    along = mean @ vectors
    variance = np.zeros(values.size)
    for sign, rows in zip((1.0, -1.0), groups, strict=False):
        parts = rows @ vectors
        products = parts[:, :1] * parts + sign * (along[0] * parts + along * parts[:, :1])
        variance += products.var(axis=0) / len(rows)
    level = TIED_LEVEL / max(values.size - 1, 1)
    limits = np.sqrt(-8.0 * np.log(level) * variance)
    return bool((values[0] - values < limits)[1:].any())


def sample_direction(d: int, rng: np.random.Generator) -> FloatArray:
    """Sample a direction uniformly from the unit sphere in ``d`` dimensions."""
    return normalize_vector(rng.standard_normal(d))


def sample_cosines(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return the cosines of ``n`` random vectors in ``d`` dimensions with a fixed direction.

    Their distribution does not depend on the direction: only the component along it and the length
    of the orthogonal component are sampled.
    """
    along = rng.standard_normal(n)
    across = rng.chisquare(d - 1, n) if d > 1 else np.zeros(n)
    return np.asarray(along / np.sqrt(along**2 + across))


def compute_cosine_tail(cosine: float, d: int) -> float:
    """Return the probability of at least this absolute cosine with a vector in ``d`` dimensions.

    >>> round(compute_cosine_tail(0.5, 2), 4)  # within 60 degrees of a line: 120 of 180 degrees
    0.6667
    """
    from scipy.special import betainc

    squared_sine = max(0.0, 1.0 - cosine**2) if cosine == cosine else np.nan  # noqa: PLR0124
    return float(betainc((d - 1) / 2, 0.5, squared_sine)) if d > 1 else 1.0


def orient_direction(direction: AnyArray, a: AnyArray, b: AnyArray) -> FloatArray:
    """Return the direction, reversed if the mean cosine of ``a`` with it is below that of ``b``.

    The rows of ``a`` and ``b`` have length 1, and so has the result; NaN if the direction is 0.

    >>> a, b = np.array([[1.0, 1.0]]), np.array([[0.0, 1.0]])
    >>> orient_direction(np.array([-2.0, 0.0]), a, b).tolist()
    [1.0, 0.0]
    """
    axis = normalize_vector(direction)
    gap = float(axis @ (a.mean(axis=0) - b.mean(axis=0)))
    return np.asarray(-axis + 0.0 if gap < 0 else axis)
