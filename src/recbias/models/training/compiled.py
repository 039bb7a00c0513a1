"""Loops over samples and rows that numpy has no word for, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pickle import UnpicklingError  # noqa: TID251  an error of numba's; nothing is read by it here
from typing import Any

ANY_ORDER = frozenset({"reassoc", "contract", "arcp", "nsz"})
"""Sums may be made in any order, as in a matrix product; what is not finite stays so."""


_BROKEN = (
    *(OSError, EOFError, UnpicklingError, ValueError, TypeError),
    *(AttributeError, ImportError, LookupError, RuntimeError),
)
"""What numba raises where the code that it kept cannot be read, or none can be kept."""


@cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays, tuples and numbers as machine code of this processor.

    It is compiled at the first call for each combination of types, and kept where numba keeps
    such code: beside the source, or in the user's cache. Where neither can be written to, is full
    or holds something broken, each process compiles anew. The same arguments have the same result
    each time.
    """
    import numba

    njit: Any = partial(numba.njit, fastmath=set(ANY_ORDER), error_model="numpy", nogil=True)
    try:
        runs: Any = njit(cache=True)(loop)
    except RuntimeError:  # there is no place to keep it
        runs = njit()(loop)
    if not hasattr(runs, "compile"):  # numba is told to compile nothing
        return loop

    def run(*arguments: Any) -> Any:
        nonlocal runs
        types = tuple(runs.typeof_pyval(each) for each in arguments)
        try:
            runs.compile(types)
        except _BROKEN:
            runs = njit()(loop)
        return runs(*arguments)

    return run
