"""Tensors on a device: conversion, ranking, products in blocks, and decompositions of a matrix.

torch is imported in functions.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from recbias.core.dataset import AnyArray, Codes, FloatArray, Matrix, Queries, TrainingData
from recbias.core.errors import TooLittleMemory
from recbias.core.evidence import RankedLists
from recbias.core.plugins import Device
from recbias.kernels.devices import find_accelerator, resolve_device
from recbias.kernels.neighbours import Similarity
from recbias.models.ranking import (
    BYTES_PER_SCORE,
    DENSE_LIMIT,
    RANKING_LIMIT,
    PartialLists,
    find_history_cells,
    rank_by_product,
    rank_by_scores,
    rank_users_with_history,
    validate_shape,
)

Tensor: TypeAlias = Any  # A ``torch.Tensor``; typed as Any so that torch is not imported


GROUP = 128
"""Number of columns of which a GPU finds the largest score together."""

_MIN_GROUPED = 2**14
"""Number of columns from which on they are grouped."""

_OUT_OF_MEMORY_MESSAGES = ("out of memory", "can't allocate memory", "not enough memory")
"""Parts of torch's error messages when memory runs out."""


def initialize_normal(
    shape: tuple[int, ...], std: float, device: Any, rng: np.random.Generator
) -> Tensor:
    """Return a parameter sampled from Normal(0, std²), with the same values on every device."""
    return create_parameter(rng.standard_normal(shape, dtype=np.float32) * np.float32(std), device)


def initialize_glorot(shape: tuple[int, int], device: Any, rng: np.random.Generator) -> Tensor:
    """Return a parameter sampled uniformly within ± sqrt(6 / (rows + columns))."""
    limit = math.sqrt(6 / sum(shape))
    return create_parameter(
        (2 * rng.random(shape, dtype=np.float32) - 1) * np.float32(limit), device
    )


def create_parameter(values: AnyArray, device: Any) -> Tensor:
    """Return a trainable ``float32`` tensor with these initial values."""
    import torch

    return torch.tensor(values, dtype=torch.float32, device=device, requires_grad=True)


def create_torch_generator(rng: np.random.Generator, device: Any) -> Any:
    """Return a ``torch.Generator`` on a device, seeded by ``rng``."""
    import torch

    return torch.Generator(device=device).manual_seed(int(rng.integers(2**63 - 1)))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; only CUDA has an error class for this."""
    import torch

    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(
        text in message for text in _OUT_OF_MEMORY_MESSAGES
    )


def copy_to_array(tensor: Tensor) -> AnyArray:
    """Return a copy of a tensor as an array."""
    is_shared = tensor.device.type == "cpu"
    array: AnyArray = tensor.detach().contiguous().cpu().numpy()
    return array.copy() if is_shared else array


def copy_to_device(array: AnyArray, device: Any) -> Tensor:
    """Return an array as a tensor on a ``torch.device``, which on a CPU shares its memory.

    To CUDA it is copied from pinned memory, for which the caller does not wait.
    """
    import torch

    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def place_like(array: AnyArray, tensor: Tensor) -> Tensor:
    """Return an array on the device of a tensor."""
    import torch

    return torch.from_numpy(array).to(tensor.device)


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the columns and values of the ``k`` largest scores of each row, best first.

    Scores ``(b, n)`` are overwritten and compared as ``float32``; ties go to the lower column,
    which ``torch.topk`` alone does not guarantee. Scores of -inf and NaN are ignored: a row with
    fewer than ``k`` other scores is padded with column -1 and score NaN. The result is columns
    ``int32 (b, k)`` and scores ``float32 (b, k)``, on the device of the scores.
    """
    import torch
    from torch.nn.functional import pad

    scores = scores.float()
    size = min(k, scores.shape[1])
    if scores.device.type == "cuda" and scores.shape[1] >= _MIN_GROUPED:
        columns = _select_by_groups(scores, size)
    else:
        columns = _select_largest(_replace_special(scores), size)
    columns = columns.sort(dim=1).values
    values = scores.gather(1, columns) + 0.0  # turns -0.0, which some devices sort lower, into 0.0
    values, order = values.sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order).int()
    is_empty = torch.isneginf(values)
    padding = (0, k - columns.shape[1])
    return (
        pad(columns.masked_fill(is_empty, -1), padding, value=-1),
        pad(values.masked_fill(is_empty, float("nan")), padding, value=float("nan")),
    )


def _replace_special(scores: Tensor) -> Tensor:
    """Replace NaN by -inf in place, so that it is the smallest score."""
    infinity = float("inf")
    return scores.nan_to_num_(nan=-infinity, posinf=infinity, neginf=-infinity)


def _select_by_groups(scores: Tensor, k: int) -> Tensor:
    """Return the columns of ``_select_largest`` from a single pass over the scores.

    The ``k + 1`` largest scores of a row are in the ``k + 1`` groups of columns with the largest
    maxima: a search for them in all columns, which passes over the scores several times, is not
    needed. NaN in any group shows in its maximum.
    """
    import torch

    n_groups = scores.shape[1] // GROUP
    if n_groups <= k + 1:
        return _select_largest(_replace_special(scores), k)
    grouped = scores[:, : n_groups * GROUP].unflatten(1, (n_groups, GROUP))
    maxima, rest = grouped.amax(2), scores[:, n_groups * GROUP :]
    if bool(maxima.isnan().any() | rest.isnan().any()):
        _replace_special(scores)
        maxima = grouped.amax(2)
    groups = maxima.topk(k + 1, dim=1).indices
    members = torch.arange(GROUP, device=scores.device)
    candidates = (groups[:, :, None] * GROUP + members).flatten(1)
    others = torch.arange(n_groups * GROUP, scores.shape[1], device=scores.device)
    candidates = torch.cat([candidates, others.expand(len(scores), -1)], 1)
    values, places = scores.gather(1, candidates).topk(k + 1, dim=1)
    return _settle_ties(scores, values, candidates.gather(1, places), k)


def _select_largest(scores: Tensor, k: int) -> Tensor:
    """Return the columns of the ``k`` largest scores of each row, in any order.

    The choice is ambiguous only in a row whose k-th and (k+1)-th largest scores are equal.
    """
    import torch

    n = scores.shape[1]
    if k == n:
        return torch.arange(n, device=scores.device).repeat(len(scores), 1)
    values, columns = scores.topk(k + 1, dim=1)
    return _settle_ties(scores, values, columns, k)


def _settle_ties(scores: Tensor, values: Tensor, columns: Tensor, k: int) -> Tensor:
    """Return ``k`` columns of the ``k + 1`` largest scores, the lowest of those that are equal."""
    import torch

    kth = values[:, k - 1]
    tied = ((kth == values[:, k]) & ~torch.isneginf(kth)).nonzero().squeeze(1)
    columns = columns[:, :k].contiguous()
    if len(tied):
        columns[tied] = _break_ties(scores[tied], kth[tied, None], k)
    return columns


def _break_ties(scores: Tensor, kth: Tensor, k: int) -> Tensor:
    """Return the columns of the ``k`` largest scores, the lowest of those equal to ``kth``."""
    import torch

    n = scores.shape[1]
    descending = torch.arange(n, 0, -1, dtype=torch.int32, device=scores.device)
    priorities = torch.where(scores == kth, descending, 0)
    return priorities.masked_fill_(scores > kth, n + 1).topk(k, dim=1).indices


_ScoreBlock: TypeAlias = Callable[[Mapping[str, Any], Any], Any]
"""Takes a state and user codes; returns their scores of all items, ``(b, n_items)``.

State and codes are all arrays, or all tensors on one device. The result must be a new array or
tensor, because it is overwritten. Several threads call the function at once.
"""

_MAX_GPU_BLOCK = 4 * 2**30
"""Maximum number of bytes of a block on a GPU; larger blocks are not faster."""

_FREE_MEMORY_SHARE = 0.5  # Share of a GPU's free memory that a block may use


@dataclass(frozen=True, eq=False)
class Ranking:
    """Computes recommendation lists from the state of a fitted model."""

    score_block: _ScoreBlock  # Scores a block of users
    state: Mapping[str, AnyArray]  # The arrays of the fitted model
    device: Device  # Where scores are computed: with arrays on a CPU, with tensors elsewhere
    # Memory per score while its block is computed and ranked
    bytes_per_score: int = BYTES_PER_SCORE
    # Bytes that the blocks may use; None for half of the free memory of a GPU, and for
    # ``RANKING_LIMIT`` on other devices
    memory_limit: int | None = None
    # The arrays with a row for each item, if a slice of them gives the scores of these items
    item_arrays: tuple[str, ...] = ()

    def lists(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the ``k`` best candidates of each user who has a training history.

        Raises:
            TooLittleMemory: The device has too little memory to rank the items of a single user.
        """
        device = None if self.device == "cpu" else resolve_device(self.device)
        if device is not None and device.type != "cpu":
            return self.rank_on_device(device, queries, k, data)
        limit = RANKING_LIMIT if self.memory_limit is None else self.memory_limit
        return rank_by_scores(
            lambda users: self.score_block(self.state, users),
            queries,
            k,
            data,
            memory_limit=limit * BYTES_PER_SCORE // self.bytes_per_score,
            score_tile=self._score_tile if self.item_arrays else None,
        )

    def _score_tile(self, users: Codes, first: int, last: int) -> AnyArray:
        tile = {name: self.state[name][first:last] for name in self.item_arrays}
        return np.asarray(self.score_block({**self.state, **tile}, users))

    def rank_on_device(
        self, device: Any, queries: Queries, k: int, data: TrainingData
    ) -> RankedLists:
        """Return the same lists, computed with tensors on a ``torch.device``.

        The state is copied to the device once and only the lists are copied back. A block that
        does not fit into memory is retried with half as many users.
        """
        import torch

        limit = count_available_bytes(device) if self.memory_limit is None else self.memory_limit
        block_size = max(1, limit // (self.bytes_per_score * max(data.train.n_items, 1)))

        def rank(users: Codes) -> RankedLists:
            lists = PartialLists(users.size, k)

            def rank_block(start: int, stop: int) -> tuple[AnyArray, AnyArray]:
                return _rank_block(self.score_block, state, users[start:stop], k, data)

            begin = lists.n_completed
            for block in map_device_blocks(rank_block, users.size, block_size, start=begin):
                lists.add(*block)
            return RankedLists(lists.items, lists.scores)

        with report_full_device("lists"):
            state = {
                name: torch.tensor(array, device=device) for name, array in self.state.items()
            }
            return rank_users_with_history(rank, queries, k, data)


def _rank_block(
    score_block: _ScoreBlock, state: Mapping[str, Tensor], users: Codes, k: int, data: TrainingData
) -> tuple[AnyArray, AnyArray]:
    """Return the items and scores of the lists of these users, ``(b, k)`` each."""
    import torch

    train, device = data.train, next(iter(state.values())).device
    place = partial(torch.tensor, device=device)
    with torch.no_grad():
        block = score_block(state, place(users).long())
        validate_shape(block.shape, (users.size, train.n_items))
        block[:, place(np.flatnonzero(~data.candidates))] = -np.inf
        rows, columns = find_history_cells(train.binary, users)
        block[place(rows), place(columns).long()] = -np.inf
        items, scores = top_k(block, k)
    return copy_to_array(items), copy_to_array(scores)


def count_available_bytes(device: Any) -> int:
    """Return the default memory limit of the blocks on a ``torch.device``."""
    import torch

    if device.type != "cuda":
        return RANKING_LIMIT
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min(int(_FREE_MEMORY_SHARE * (free + unused)), _MAX_GPU_BLOCK)


_BYTES_PER_TERM = 64
"""Memory per product of two entries while they are summed: their codes, a sort, the values."""


def rank_product(
    left: Matrix,
    right: Matrix | AnyArray,
    queries: Queries,
    k: int,
    data: TrainingData,
    device: Device,
) -> RankedLists:
    """Return the lists of ``rank_by_product``, computed with tensors if the device is a GPU."""
    accelerator = find_accelerator(device)
    if accelerator is None:
        return rank_by_product(left, right, queries, k, data)
    return rank_product_on_device(left, right, queries, k, data, accelerator)


def rank_product_on_device(
    left: Matrix,
    right: Matrix | AnyArray,
    queries: Queries,
    k: int,
    data: TrainingData,
    device: Any,
) -> RankedLists:
    """Return the same lists, computed with tensors on a ``torch.device``.

    A small right factor is dense there. The terms of a sparse one are summed in the order of the
    CPU, so that scores do not differ between runs.
    """
    if not isinstance(right, np.ndarray) and 4 * right.shape[0] * right.shape[1] <= DENSE_LIMIT:
        right = right.toarray()
    state = _name_arrays("left", left)
    n_rows = max(left.shape[0], 1)
    if isinstance(right, np.ndarray):
        state["right"] = right
        cost = 4 * right.shape[0]
    else:
        state |= _name_arrays("right", right)
        cost = _BYTES_PER_TERM * float(np.diff(right.indptr)[left.indices].sum()) / n_rows
    n_bytes = BYTES_PER_SCORE + int(cost / max(data.train.n_items, 1))
    return Ranking(_score_products, state, "cpu", n_bytes).rank_on_device(device, queries, k, data)


def _score_products(state: Mapping[str, Tensor], users: Tensor) -> Tensor:
    """Return the rows ``left[users] @ right``, ``float32 (b, n_items)``, as a new tensor.

    The state has the CSR arrays ``left.starts``, ``left.columns``, ``left.values``, and either
    those of ``right`` with ``right.width``, or the dense ``right``.
    """
    owners, positions = gather_rows(state["left.starts"], users)
    columns, values = state["left.columns"][positions].long(), state["left.values"][positions]
    if "right" in state:
        rows = values.new_zeros((len(users), state["right"].shape[0]))
        rows[owners, columns] = values
        return rows @ state["right"]
    terms, positions = gather_rows(state["right.starts"], columns)
    scores = values.new_zeros((len(users), int(state["right.width"])))
    cells = (owners[terms], state["right.columns"][positions].long())
    products = values[terms] * state["right.values"][positions]
    return scores.index_put_(cells, products, accumulate=True)


def gather_rows(starts: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return, for each entry of some rows of a CSR matrix, the place of its row and its own.

    Args:
        starts: The position where each row of the matrix starts, ``int64[n + 1]``.
        rows: Rows, ``int64[b]``; their entries are returned in this order.

    >>> import torch
    >>> owners, positions = gather_rows(torch.tensor([0, 2, 3]), torch.tensor([1, 0]))
    >>> owners.tolist(), positions.tolist()
    ([0, 1, 1], [2, 0, 1])
    """
    import torch

    counts = starts[rows + 1] - starts[rows]
    owners = torch.arange(len(rows), device=rows.device).repeat_interleave(counts)
    shifts = starts[rows] - (counts.cumsum(0) - counts)
    return owners, torch.arange(len(owners), device=rows.device) + shifts[owners]


def _name_arrays(name: str, matrix: Matrix) -> dict[str, AnyArray]:
    """Return the arrays of a CSR matrix as a state."""
    return {
        f"{name}.starts": matrix.indptr.astype(np.int64),
        f"{name}.columns": matrix.indices.astype(np.int32),
        f"{name}.values": matrix.data.astype(np.float32),
        f"{name}.width": np.array(matrix.shape[1]),
    }


Block = TypeVar("Block")


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """A CSR matrix ``float32 (n, m)`` on a device.

    Args:
        starts: The position in ``columns`` where each row starts, ``int64[n + 1]``.
        columns: The columns of the rows in turn, ``int64``.
        values: Their values, ``float32``.
        n_columns: m.
    """

    starts: Tensor
    columns: Tensor
    values: Tensor
    n_columns: int

    @classmethod
    def copy(cls, matrix: Matrix, device: Any) -> DeviceRows:
        """Copy a matrix to a ``torch.device``."""
        import torch

        values = np.ascontiguousarray(matrix.data, dtype=np.float32)
        starts, columns = (
            torch.tensor(codes, dtype=torch.int64, device=device)
            for codes in (matrix.indptr, matrix.indices)
        )
        return cls(starts, columns, torch.tensor(values, device=device), int(matrix.shape[1]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def to_dense(self, start: int, stop: int) -> Tensor:
        """Return rows ``start`` to ``stop`` as a new dense tensor, ``(stop - start, m)``."""
        import torch

        rows = torch.arange(start, stop, device=self.starts.device)
        owners, positions = gather_rows(self.starts, rows)
        dense = self.values.new_zeros((stop - start, self.n_columns))
        dense[owners, self.columns[positions]] = self.values[positions]
        return dense

    def multiply(self, start: int, stop: int) -> Tensor:
        """Return the products of rows ``start`` to ``stop`` with all rows, ``(stop - start, n)``.

        The other rows are dense in blocks of as many.
        """
        targets, size = self.to_dense(start, stop), stop - start
        products = self.values.new_empty((stop - start, len(self)))
        for first in range(0, len(self), size):
            last = min(first + size, len(self))
            products[:, first:last] = targets @ self.to_dense(first, last).T
        return products


def map_device_blocks(
    work: Callable[[int, int], Block], n_rows: int, size: int, *, start: int = 0
) -> Iterator[Block]:
    """Yield ``work(start, stop)`` for blocks of rows, with half as many when memory runs out."""
    while start < n_rows:
        stop = min(start + size, n_rows)
        try:
            block = work(start, stop)
        except (RuntimeError, MemoryError) as error:
            if stop - start == 1 or not is_out_of_memory(error):
                raise
            size = (stop - start) // 2
            continue
        yield block
        start = stop


@contextmanager
def report_full_device(
    name: str, where: str = "device", remedy: str = "set device: cpu"
) -> Iterator[None]:
    """Raise TooLittleMemory, with a remedy, if memory runs out in the block."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        problem = f"{name}: the device has too little memory"
        raise TooLittleMemory(problem, where=where, remedy=remedy) from error


_EXTRA_VECTORS = 8
"""Vectors that are iterated beside those that are wanted, which converge sooner by them."""

_MAX_BLOCKS = 5
"""Number of blocks of vectors of a subspace, from which the best two are then kept."""

_MAX_ROUNDS = 1000
"""Number of blocks after which the iteration ends, converged or not."""

_TOLERANCE = 1e-9
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
    ``_MAX_BLOCKS`` blocks. The first vectors are the same in every run.
    """
    import torch

    width = min(k + _EXTRA_VECTORS, n)
    start = np.random.default_rng(0).standard_normal((n, width))
    basis = torch.linalg.qr(torch.from_numpy(start).to(device)).Q
    images = multiply(basis)
    for _ in range(_MAX_ROUNDS):
        projected = basis.T @ images
        values, rotation = torch.linalg.eigh((projected + projected.T) / 2)
        values, rotation = values.flip(0), rotation.flip(1)
        best = rotation[:, :width]
        residuals = images @ best - basis @ (best * values[:width])
        is_done = residuals[:, :k].norm(dim=0).max() <= _TOLERANCE * values[0]
        if is_done or basis.shape[1] == n:
            break
        if basis.shape[1] + width > min(_MAX_BLOCKS * width, n):
            kept = rotation[:, : min(2 * width, basis.shape[1])]
            basis, images = basis @ kept, images @ kept
        added = residuals[:, : n - basis.shape[1]]
        for _ in range(3):  # residuals of converged vectors are rounding errors
            added = torch.linalg.qr(added - basis @ (basis.T @ added)).Q
        basis, images = torch.cat([basis, added], 1), torch.cat([images, multiply(added)], 1)
    return values[:k], basis @ rotation[:, :k]


_BYTES_PER_PRODUCT = 32
"""Maximum memory per product of two rows while its block is ranked."""

_DENSE_COST = 1e-5
"""Cost of an operation of a dense product on a GPU, in counts of a shared column on a CPU.

An H200 took 2e-6 beside 16 cores; others have a fifth of its rate.
"""


def dense_is_faster(matrix: Matrix) -> bool:
    """Return whether dense products of all rows on a GPU are faster than counts on a CPU.

    A CPU counts each pair of rows of each column; a GPU multiplies whole rows, faster by
    ``1 / DENSE_COST``, but few rows of a large catalogue share a column.
    """
    n, m = matrix.shape
    sizes = np.bincount(matrix.indices, minlength=1).astype(np.float64)
    return bool(_DENSE_COST * n * n * m < float(sizes @ sizes))


def find_nearest_on_device(
    matrix: Matrix,
    neighbors: int,
    similarity: Similarity,
    device: Any,
    *,
    memory_limit: int | None = None,
) -> Matrix:
    """Return the neighbours of ``kernels.neighbours.find_nearest``, CSR ``(n, n)``.

    Args:
        matrix: CSR ``(n, m)``.
        neighbors: Number of neighbours of each row.
        similarity: The similarity.
        device: A ``torch.device``.
        memory_limit: Bytes of the blocks; None for those of ``count_available_bytes``.

    Raises:
        TooLittleMemory: The device cannot hold the products of one row.
    """
    import torch
    from scipy.sparse import csr_array

    matrix = matrix.astype(np.float32)
    n, m = matrix.shape
    limit = count_available_bytes(device) if memory_limit is None else memory_limit
    size = max(1, limit // (8 * m + _BYTES_PER_PRODUCT * n + 1))

    with report_full_device("nearest neighbours"), torch.no_grad():
        rows = DeviceRows.copy(matrix, device)
        left, right = (
            torch.tensor(weights, device=device) for weights in similarity.weigh(matrix)
        )

        def select_block(start: int, stop: int) -> tuple[AnyArray, AnyArray, AnyArray]:
            products = rows.multiply(start, stop)
            block = similarity.divide(products, left[start:stop, None], right)
            targets = torch.arange(start, stop, device=device)
            block[targets - start, targets] = -float("inf")
            columns, values = top_k(block, min(neighbors, n))
            columns, order = columns.masked_fill(~(values > 0), n).sort(dim=1)
            is_neighbour = columns < n
            counts, best = is_neighbour.sum(dim=1), values.gather(1, order)[is_neighbour]
            codes = copy_to_array(columns[is_neighbour])
            return copy_to_array(counts), codes, copy_to_array(best)

        blocks = [*map_device_blocks(select_block, n, size)]
    empty = (np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    counts, indices, data = (np.concatenate(parts) for parts in zip(empty, *blocks, strict=True))
    indptr = np.cumsum(counts).astype(np.int32 if indices.size < 2**31 else np.int64)
    return csr_array((data, indices, indptr), shape=(n, n))
