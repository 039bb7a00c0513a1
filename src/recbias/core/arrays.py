"""The array types of the package."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Codes: TypeAlias = npt.NDArray[np.int32]
"""Integer codes of users, items or queries, from 0; -1 means none."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""Real numbers; NaN means undefined."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""A boolean mask."""

Ids: TypeAlias = npt.NDArray[np.object_]
"""Identifiers as they stand in the user's files: Python strings."""

AnyArray: TypeAlias = npt.NDArray[Any]
"""An array of any type."""

Matrix: TypeAlias = Any
"""A ``scipy.sparse.csr_array``; scipy is imported only where such a matrix is built."""


def freeze(array: AnyArray) -> AnyArray:
    """Make the array read-only and return it."""
    array.flags.writeable = False
    return array
