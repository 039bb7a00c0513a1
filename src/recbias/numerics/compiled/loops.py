"""Compilation of Python loops by numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pickle import UnpicklingError  # noqa: TID251  an error that numba raises; no pickle is read
from typing import Any

import numpy as np

from recbias.numerics.compiled.prefetch import register_prefetch

FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz"})
"""Allow any order of summation, as in a matrix product, but keep NaN and infinity."""


_CACHE_ERRORS = (
    *(OSError, EOFError, UnpicklingError, ValueError, TypeError),
    *(AttributeError, ImportError, LookupError, RuntimeError),
)
"""What numba raises if the cached machine code cannot be read or written."""


@cache
def compile_loop(
    loop: Callable[..., Any], *, exact: bool = False, parts: tuple[Callable[..., Any], ...] = ()
) -> Callable[..., Any]:
    """Compile a function of arrays, tuples and numbers to machine code.

    It is compiled at the first call for each combination of argument types and cached by numba,
    beside the source or in the user's cache folder. If the cache is not writable, full or corrupt,
    each process compiles again. The results are deterministic. With ``exact``, every operation is
    rounded as numpy rounds it; else sums may be taken in any order. The ``parts`` are functions
    that the loop calls, and are compiled in the same way; a change of theirs is not seen by the
    cache, unless the file of the loop changes too.
    """
    import numba
    from numba.extending import register_jitable

    register_prefetch()
    fast = False if exact else set(FAST_MATH)
    for part in parts:
        register_jitable(fastmath=fast, error_model="numpy")(part)
    njit: Any = partial(numba.njit, fastmath=fast, error_model="numpy", nogil=True)
    try:
        compiled: Any = njit(cache=True)(loop)
    except RuntimeError:  # no folder for the cache
        compiled = njit()(loop)
    if not hasattr(compiled, "compile"):  # compilation is switched off, as by NUMBA_DISABLE_JIT
        return loop

    described: set[Any] = set()

    def run(*arguments: Any) -> Any:
        nonlocal compiled
        kinds = _describe(arguments)
        if kinds not in described:
            types = tuple(compiled.typeof_pyval(argument) for argument in arguments)
            try:
                compiled.compile(types)
            except _CACHE_ERRORS:
                compiled = njit()(loop)
            run.compiled = compiled  # type: ignore[attr-defined]
            described.add(kinds)
        return compiled(*arguments)

    return run


def _describe(argument: Any) -> Any:
    """Return what decides the type of an argument for numba, whose own description is slow."""
    if isinstance(argument, tuple):
        return tuple(map(_describe, argument))
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        return argument.dtype, argument.ndim, flags.c_contiguous, flags.writeable, flags.aligned
    return type(argument)


class CompiledOnce:
    """A compiled loop whose arguments have the same types in all calls.

    The first call is that of ``compile_loop``; the others take microseconds, as no types are
    compared.
    """

    def __init__(self, loop: Callable[..., Any]) -> None:
        self._loop = loop
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Return the result of the loop."""
        if self._compiled is not None:
            return self._compiled(*arguments)
        run = compile_loop(self._loop)
        result = run(*arguments)
        self._compiled = getattr(run, "compiled", run)
        return result
