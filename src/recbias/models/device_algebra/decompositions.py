"""Decompositions of an interaction matrix on a device: regularized inverses, singular vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.models.device_algebra.sparse_rows import (
    DeviceRows,
    map_device_blocks,
    report_full_device,
)
from recbias.models.ranking.device_ranking import count_available_bytes
from recbias.models.ranking.tensors import Tensor, copy_to_array

EXTRA_VECTORS = 8
"""Vectors that are iterated beside those that are wanted, which converge sooner by them."""

MAX_BLOCKS = 5
"""Number of blocks of vectors of a subspace, from which the best two are then kept."""

MAX_ROUNDS = 1000
"""Number of blocks after which the iteration ends, converged or not."""

TOLERANCE = 1e-9
"""Largest residual of an eigenvector, as a share of the largest eigenvalue."""


def regress_items(
    matrix: Matrix, reg: float, device: Any, *, max_norm: float, memory_limit: int | None = None
) -> AnyArray | None:
    """Return ``I - P diag(1 / P_jj)`` with ``P = (X Xᵀ + reg I)⁻¹``, ``float32 (n, n)``.

    The matrix ``X`` is CSR ``(n, m)``. The result is None if the matrix cannot be inverted. It is
    inverted in double precision if its norm exceeds ``max_norm`` times ``reg``.

    Args:
        matrix: ``X``, the users of each item.
        reg: Weight of the L2 penalty.
        device: A ``torch.device``.
        max_norm: Maximum norm for single precision.
        memory_limit: Bytes of the blocks; None for those of ``count_available_bytes``.

    Raises:
        TooLittleMemory: The device cannot hold three dense ``(n, n)`` matrices.
    """
    import torch

    with report_full_device("item-item matrix"), torch.no_grad():
        products = _compute_gram(matrix, device, memory_limit)
        norm = float(products.sum(dim=1).max()) if len(products) else 0.0
        if norm > max_norm * reg:
            products = products.double()
        products.diagonal().add_(reg)
        factor, status = torch.linalg.cholesky_ex(products)
        del products
        if int(status):
            return None
        weights = torch.cholesky_inverse(factor)
        del factor
        weights /= -weights.diagonal().clone()
        weights.fill_diagonal_(0)
        return copy_to_array(weights.float())


def _compute_gram(matrix: Matrix, device: Any, memory_limit: int | None) -> Tensor:
    rows = DeviceRows.copy(matrix, device)
    n, m = matrix.shape
    products = rows.values.new_empty((n, n))
    limit = count_available_bytes(device) if memory_limit is None else memory_limit

    def fill_block(start: int, stop: int) -> None:
        products[start:stop] = rows.multiply(start, stop)

    for _ in map_device_blocks(fill_block, n, max(1, limit // (8 * m + 8 * n + 1))):
        pass
    return products


def find_right_singular_vectors(
    matrix: Matrix, k: int, device: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the ``k`` largest singular values and their right vectors as rows, descending.

    The matrix is CSR ``(n, m)``; ``k`` is less than both. The vectors are the eigenvectors of the
    smaller of ``XᵀX`` and ``XXᵀ``, found by a block Lanczos iteration in double precision.

    Raises:
        TooLittleMemory: The device cannot hold the matrix and its transpose.

    Source:
        Golub and Underwood, "The Block Lanczos Method for Computing Eigenvalues", Mathematical
        Software III, 1977; restarts: Wu and Simon, SIAM J. Matrix Anal. Appl. 22(2), 2000.
    """
    import torch

    with report_full_device("singular vectors"), torch.no_grad():
        rows = _copy_sparse(matrix, device)
        columns = _copy_sparse(matrix.T.tocsr(), device)
        is_wide = matrix.shape[1] > matrix.shape[0]
        first, second = (columns, rows) if is_wide else (rows, columns)
        n = min(matrix.shape)
        values, vectors = _find_eigenvectors(lambda x: second @ (first @ x), n, k, device)
        singular = values.clamp(min=0).sqrt()
        if is_wide:
            vectors = columns @ vectors / singular.clamp(min=torch.finfo(singular.dtype).tiny)
        return copy_to_array(singular), copy_to_array(vectors.T)


def _copy_sparse(matrix: Matrix, device: Any) -> Tensor:
    import torch

    arrays = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
    starts, columns = (torch.from_numpy(array).to(device) for array in arrays)
    values = torch.from_numpy(matrix.data.astype(np.float64)).to(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # sparse tensors are in beta, and unchecked
        return torch.sparse_csr_tensor(
            starts, columns, values, size=matrix.shape, check_invariants=False
        )


def _find_eigenvectors(
    multiply: Callable[[Tensor], Tensor], n: int, k: int, device: Any
) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest eigenvalues of a symmetric matrix and their vectors, ``(n, k)``.

    A subspace grows by the residuals of its best vectors, and begins again with these when it has
    ``MAX_BLOCKS`` blocks. The first vectors are the same in every run.
    """
    import torch

    width = min(k + EXTRA_VECTORS, n)
    start = np.random.default_rng(0).standard_normal((n, width))
    basis = torch.linalg.qr(torch.from_numpy(start).to(device)).Q
    images = multiply(basis)
    for _ in range(MAX_ROUNDS):
        projected = basis.T @ images
        values, rotation = torch.linalg.eigh((projected + projected.T) / 2)
        values, rotation = values.flip(0), rotation.flip(1)
        best = rotation[:, :width]
        residuals = images @ best - basis @ (best * values[:width])
        is_done = residuals[:, :k].norm(dim=0).max() <= TOLERANCE * values[0]
        if is_done or basis.shape[1] == n:
            break
        if basis.shape[1] + width > min(MAX_BLOCKS * width, n):
            kept = rotation[:, : min(2 * width, basis.shape[1])]
            basis, images = basis @ kept, images @ kept
        added = residuals[:, : n - basis.shape[1]]
        for _ in range(3):  # residuals of converged vectors are rounding errors
            added = torch.linalg.qr(added - basis @ (basis.T @ added)).Q
        basis, images = torch.cat([basis, added], 1), torch.cat([images, multiply(added)], 1)
    return values[:k], basis @ rotation[:, :k]
