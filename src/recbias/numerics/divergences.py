"""Divergences between rows of shares: Kullback-Leibler and Jensen-Shannon."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix


def compute_kl_divergence(target: Matrix, shares: Matrix, smoothing: float) -> FloatArray:
    """Return the smoothed Kullback-Leibler divergence of each row, in nats.

        KL(p, q') = Σ_g p_g ln( p_g / q'_g ),    q' = (1 - a) q + a p

    0 if the rows are equal, and -ln a if they share no column. NaN for a row without entries.

    Args:
        target: The shares p, CSR ``(n, g)`` or an array; the entries of a row are positive and
            sum to 1.
        shares: The shares q, of the same form.
        smoothing: a, above 0 and at most 1.

    >>> from scipy.sparse import csr_array
    >>> p, q = csr_array([[0.5, 0.5]]), csr_array([[1.0, 0.0]])
    >>> float(compute_kl_divergence(p, q, 0.5)[0].round(6))  # ln(2/3) / 2 + ln(2) / 2
    0.143841

    Source:
        Steck, "Calibrated recommendations", RecSys 2018, equations 5 and 6.
    """
    rows, p, q = _align_common(target, shares)
    terms = p * np.log(smoothing * p / ((1.0 - smoothing) * q + smoothing * p))
    return _finish(target, shares, rows, terms, -np.log(smoothing))


def compute_js_divergence(target: Matrix, shares: Matrix) -> FloatArray:
    """Return the Jensen-Shannon divergence of each row, in bits.

        JS(p, q) = Σ_g ( p_g log2( p_g / m_g ) + q_g log2( q_g / m_g ) ) / 2,    m = (p + q) / 2

    0 if the rows are equal, and 1 if they share no column. NaN for a row without entries.

    Args:
        target: The shares p, CSR ``(n, g)`` or an array; the entries of a row are positive and
            sum to 1.
        shares: The shares q, of the same form.

    >>> from scipy.sparse import csr_array
    >>> p, q = csr_array([[0.5, 0.5]]), csr_array([[1.0, 0.0]])
    >>> float(compute_js_divergence(p, q)[0].round(6))
    0.311278

    Source:
        Lin, "Divergence measures based on the Shannon entropy", IEEE Transactions on Information
        Theory 1991.
    """
    rows, p, q = _align_common(target, shares)
    terms = (p * np.log2(p / (p + q)) + q * np.log2(q / (p + q))) / 2.0
    return _finish(target, shares, rows, terms, 1.0)


def _align_common(target: Matrix, shares: Matrix) -> tuple[AnyArray, FloatArray, FloatArray]:
    """Return the rows and both shares of the cells that are not 0 in either matrix."""
    if isinstance(target, np.ndarray):
        cells = np.flatnonzero((target > 0) & (shares > 0))
        return cells // max(target.shape[1], 1), target.ravel()[cells], shares.ravel()[cells]
    common = target.sign().multiply(shares.sign()).tocsr()
    p, q = (matrix.multiply(common).tocsr() for matrix in (target, shares))
    for matrix in (p, q):
        matrix.sort_indices()
    return np.repeat(np.arange(p.shape[0]), np.diff(p.indptr)), p.data, q.data


def _finish(
    target: Matrix,
    shares: Matrix,
    rows: AnyArray,
    terms: FloatArray,
    disjoint: float,
) -> FloatArray:
    """Return the divergence of rows without a common cell, plus the terms of the common cells."""
    sums = np.bincount(rows, weights=terms, minlength=target.shape[0])
    has_both = _has_entries(target) & _has_entries(shares)
    return np.where(has_both, np.clip(disjoint + sums, 0.0, disjoint), np.nan)


def _has_entries(shares: Matrix) -> BoolArray:
    is_array = isinstance(shares, np.ndarray)
    return np.asarray(shares.any(axis=1) if is_array else np.diff(shares.indptr) > 0)
