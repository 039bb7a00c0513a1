"""Lists of the scores of a matrix product, computed on the device of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.models.ranking.device_ranking import Ranking
from recbias.models.ranking.product_lists import DENSE_LIMIT, rank_by_product
from recbias.models.ranking.score_blocks import BYTES_PER_SCORE
from recbias.models.ranking.tensors import Tensor
from recbias.numerics.devices import find_accelerator

BYTES_PER_TERM = 64
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
        cost = BYTES_PER_TERM * float(np.diff(right.indptr)[left.indices].sum()) / n_rows
    n_bytes = BYTES_PER_SCORE + int(cost / max(data.train.n_items, 1))
    return Ranking(score_products, state, "cpu", n_bytes).rank_on_device(device, queries, k, data)


def score_products(state: Mapping[str, Tensor], users: Tensor) -> Tensor:
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
