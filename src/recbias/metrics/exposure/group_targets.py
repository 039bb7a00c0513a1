"""The shares of the exposure that groups of items should have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.errors import NothingLeft, OutOfRange, UnknownName
from recbias.core.outputs.evidence import Evidence
from recbias.core.suggestions import suggest
from recbias.metrics.exposure.browsing import select_relevant
from recbias.metrics.exposure.item_groups import ItemGroups

TargetName: TypeAlias = Literal["catalogue", "interactions", "relevant", "equal"]
"""The targets that are computed."""

Target: TypeAlias = TargetName | Mapping[str, float]
"""A target that is computed, or the share of each group."""

TOLERANCE = 1e-6
"""How far the shares of a target may sum to another number than 1."""

NEEDS: Mapping[str, frozenset[str]] = {
    "interactions": frozenset({"train"}),
    "relevant": frozenset({"test"}),
}
"""The evidence that a target needs besides the items."""


def list_target_needs(target: Target) -> frozenset[str]:
    """Return the evidence that a target needs besides the items."""
    return NEEDS.get(target, frozenset()) if isinstance(target, str) else frozenset()


def validate_target(target: Target) -> None:
    """Check the shares of a target.

    Raises:
        OutOfRange: A share is negative, or they do not sum to 1.
    """
    if isinstance(target, str):
        return
    remedy = "write the share of each group, 0 or more, so that they sum to 1: {F: 0.5, M: 0.5}"
    wrong = {name: share for name, share in target.items() if not share >= 0}
    if wrong:
        name, share = next(iter(wrong.items()))
        message = f"the share of {name!r} is {share:g}, not 0 or more"
        raise OutOfRange(message, where="target", remedy=remedy)
    total = math.fsum(target.values())
    if not abs(total - 1.0) <= TOLERANCE:
        message = f"the shares of the target sum to {total:g}, not to 1"
        raise OutOfRange(message, where="target", remedy=remedy)


def compute_target_shares(evidence: Evidence, target: Target, groups: ItemGroups) -> FloatArray:
    """Return the target share of each group, the same for all queries, ``float64[g]``.

    A group that a mapping does not name has 0. ``relevant`` are the relevant items of all queries
    together. NaN if there is none, or no training interaction.

    Raises:
        UnknownName: A mapping names a group that no item has.
        MissingEvidence: The target needs interactions or a test set, which there are not.
        NothingLeft: The training interactions are all with items without a group.
    """
    if not isinstance(target, str):
        return _read_shares(target, groups)
    if target == "equal":
        totals = np.ones(len(groups.names))
    elif target == "catalogue":
        totals = groups.sizes
    elif target == "interactions":
        totals = evidence.popularity @ groups.weights[: len(evidence.item_ids)]
        if not totals.sum() > 0:
            message = f"no training interaction is with an item that has {groups.attribute}"
            raise NothingLeft(message, where="target", remedy="choose the target catalogue")
    else:
        totals = np.asarray(groups.sum_members(select_relevant(evidence)).sum(axis=0))
    total = float(totals.sum())
    return np.asarray(totals / total if total > 0 else np.full(totals.size, np.nan))


def find_entries(matrix: Matrix, rows: AnyArray, columns: AnyArray) -> FloatArray:
    """Return the entries of a sparse matrix at some cells, 0 where none is stored, ``float64[n]``.

    >>> from scipy.sparse import csr_array
    >>> matrix = csr_array([[0.0, 5.0], [7.0, 0.0]])
    >>> find_entries(matrix, np.array([1, 0]), np.array([0, 0])).tolist()
    [7.0, 0.0]
    """
    ordered = matrix.tocsr()
    ordered.sort_indices()
    width = max(ordered.shape[1], 1)
    stored_rows = np.repeat(np.arange(ordered.shape[0]), np.diff(ordered.indptr))
    keys = stored_rows * width + ordered.indices
    requested = np.asarray(rows, dtype=np.int64) * width + columns
    at = np.searchsorted(keys, requested)
    found = np.append(keys, -1)[at] == requested
    return np.where(found, np.append(ordered.data, 0.0)[at], 0.0)


def _read_shares(target: Mapping[str, float], groups: ItemGroups) -> FloatArray:
    for name in target:
        if name not in groups.names:
            message = f"no item that may be recommended has the {groups.attribute} {name!r}"
            remedy = suggest(name, groups.names)
            raise UnknownName(message, where="target", remedy=remedy)
    return np.array([float(target.get(name, 0.0)) for name in groups.names])
