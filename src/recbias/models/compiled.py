"""Loops over samples and rows that numpy has no word for, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

ANY_ORDER = frozenset({"reassoc", "contract", "arcp", "nsz"})
"""Sums may be made in any order, as in a matrix product; what is not finite stays so."""


@cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays, tuples and numbers as machine code of this processor.

    It is compiled at the first call for each combination of types, and kept where numba keeps
    such code: beside the source, or in the user's cache. Where neither can be written to, each
    process compiles anew. The same arguments have the same result each time.
    """
    import numba

    njit: Any = partial(numba.njit, fastmath=set(ANY_ORDER), error_model="numpy", nogil=True)
    try:
        kept: Callable[..., Any] = njit(cache=True)(loop)
    except RuntimeError:  # there is no place to keep it
        kept = njit()(loop)
    return kept
