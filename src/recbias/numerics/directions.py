"""Directions in a space of vectors: what tells two sets of vectors apart, and how far along it."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray

NOTHING = 1e-12
"""A direction shorter than this share of the vectors it comes from is none."""


def unit_rows(vectors: AnyArray) -> FloatArray:
    """Return vectors scaled to length 1, ``float64 (n, d)``; a vector of 0 has no direction: NaN.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [nan, nan]]
    """
    rows = np.asarray(vectors, dtype=np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, np.nan)  # no square overflows
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


def unit(direction: AnyArray) -> FloatArray:
    """Return one vector scaled to length 1, ``float64[d]``; NaN where it is 0."""
    return np.asarray(unit_rows(np.asarray(direction)[None, :])[0])


def centroid_difference(a: AnyArray, b: AnyArray) -> FloatArray:
    """Return the mean of ``a`` minus the mean of ``b``, ``float64[d]``; 0 where they are the same.

    >>> centroid_difference(np.array([[1.0, 2.0]]), np.array([[0.0, 2.0]])).tolist()
    [1.0, 0.0]

    Args:
        a: Vectors, ``(n_a, d)``.
        b: Vectors, ``(n_b, d)``.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    gap = first.mean(axis=0) - second.mean(axis=0)
    scale = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    return np.zeros_like(gap) if np.abs(gap).max(initial=0.0) <= NOTHING * scale else gap


def pair_component(a: AnyArray, b: AnyArray, *, centred: bool) -> FloatArray:
    """Return the first principal component of the differences of all pairs of ``a`` and ``b``.

        (1 / n m) Σ_i Σ_j (a_i - b_j)(a_i - b_j)ᵀ = S_a + S_b + (m_a - m_b)(m_a - m_b)ᵀ

    S are the covariances (of n, not n - 1) and m the means, so that no pair is formed.

    Args:
        a: Vectors, ``(n, d)``.
        b: Vectors, ``(m, d)``.
        centred: Whether the mean of the differences is taken away first, which leaves S_a + S_b.

    Returns:
        ``float64[d]``, of length 1 and either sign; 0 where the differences do not vary.

    >>> found = pair_component(np.array([[0.0, 1], [0, 3]]), np.array([[5.0, 1]]), centred=True)
    >>> np.abs(found).round(6).tolist()  # the differences are (-5, 0) and (-5, 2)
    [0.0, 1.0]
    """
    first, second = (np.asarray(each, dtype=np.float64) for each in (a, b))
    parts = [each - each.mean(axis=0) for each in (first, second)]
    if not centred:
        parts.append(centroid_difference(first, second)[None, :])
    moment = sum(each.T @ each / len(each) for each in parts)
    sizes, axes = np.linalg.eigh(moment)
    scale = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    return np.asarray(axes[:, -1] if sizes[-1] > (NOTHING * scale) ** 2 else 0.0 * axes[:, -1])


def principal_components(rows: AnyArray, n: int, *, centred: bool = True) -> FloatArray:
    """Return the directions along which rows vary most, the first one first, of length 1.

    >>> rows = np.array([[2.0, 1.0], [-2.0, 1.0], [2.0, 3.0], [-2.0, 3.0]])
    >>> np.abs(principal_components(rows, 1)).round(6).tolist()  # they vary more along x
    [[1.0, 0.0]]

    Args:
        rows: Vectors, ``(n_rows, d)``.
        n: How many; fewer come back where the rows have fewer or the space is smaller.
        centred: Whether the mean of the rows is taken away first.

    Returns:
        ``float64 (up to n, d)``; the signs are arbitrary.
    """
    shifted = np.asarray(rows, dtype=np.float64)
    if centred:
        shifted = shifted - shifted.mean(axis=0)
    _, sizes, found = np.linalg.svd(shifted, full_matrices=False)
    kept = sizes[:n] > NOTHING * max(np.abs(rows).max(initial=0.0), sizes[:1].max(initial=0.0))
    return np.asarray(found[:n][kept])


def random_direction(d: int, rng: np.random.Generator) -> FloatArray:
    """Return a direction that is as likely as any other: standard normal, length 1."""
    return unit(rng.standard_normal(d))


def random_cosines(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return the cosines of ``n`` random vectors with one fixed direction, ``float64[n]``.

    They do not depend on which direction it is, so only the part along it and the length of the
    rest are drawn.

    Args:
        n: How many vectors.
        d: Dimensions of the space.
        rng: Where chance comes from.
    """
    along = rng.standard_normal(n)
    across = rng.chisquare(d - 1, n) if d > 1 else np.zeros(n)
    return np.asarray(along / np.sqrt(along**2 + across))


def chance_of_cosine(cosine: float, d: int) -> float:
    """Return how often a random direction is at least as much along a vector, to either side.

    >>> round(chance_of_cosine(0.5, 2), 4)  # within 60 degrees of a line: 120 of 180 degrees
    0.6667

    Args:
        cosine: The cosine of a direction with the vector; NaN gives NaN.
        d: Dimensions of the space.
    """
    from scipy.special import betainc

    rest = max(0.0, 1.0 - cosine**2) if cosine == cosine else np.nan  # noqa: PLR0124  # NaN
    return float(betainc((d - 1) / 2, 0.5, rest)) if d > 1 else 1.0


def oriented(direction: AnyArray, a: AnyArray, b: AnyArray) -> FloatArray:
    """Return the direction or its opposite: the one along which ``a`` lies farther than ``b``.

    >>> oriented(np.array([-2.0, 0.0]), np.array([[1.0, 1.0]]), np.array([[0.0, 1.0]])).tolist()
    [1.0, 0.0]

    Args:
        direction: ``[d]``.
        a: Vectors of length 1, ``(n_a, d)``.
        b: Vectors of length 1, ``(n_b, d)``.

    Returns:
        It has length 1, and the mean cosine of ``a`` with it is not below that of ``b``; NaN where
        the direction is 0.
    """
    found = unit(direction)
    ahead = float(found @ (a.mean(axis=0) - b.mean(axis=0)))
    return np.asarray(-found + 0.0 if ahead < 0 else found)
