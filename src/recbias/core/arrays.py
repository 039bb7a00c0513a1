"""The array types of the package, each with its meaning."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Codes: TypeAlias = npt.NDArray[np.int32]
"""Dense codes of users, items or queries, from 0; -1 is none."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""Real numbers; NaN is undefined."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""A mask."""

Ids: TypeAlias = npt.NDArray[np.object_]
"""Identifiers as the user wrote them: Python strings."""

AnyArray: TypeAlias = npt.NDArray[Any]
"""An array of any type."""

Matrix: TypeAlias = Any
"""A ``scipy.sparse.csr_array``; scipy's own types are imported only where one is made."""


def freeze(array: AnyArray) -> AnyArray:
    """Return the array, not writable any more."""
    array.flags.writeable = False
    return array
