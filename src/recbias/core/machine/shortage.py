"""Too little memory: how its many errors are recognized, what is said, and a check at the start.

It imports little, since memory may run out while the other modules are imported.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from contextlib import suppress

from recbias.core.errors import RecbiasError, TooLittleMemory
from recbias.core.machine.cores import count_cores

SHORTAGES = (MemoryError, OSError, ImportError, RuntimeError, SystemError)
"""The classes of errors by which memory that ran out is reported, among other faults."""

_MESSAGES = (
    *("failed to map segment", "cannot allocate", "can't allocate", "unable to allocate"),
    *("can't start new thread", "bad_alloc", "bad allocation", "not enough memory"),
)
"""Parts of the messages of libraries and of the system that memory ran out."""

_FEWEST_BYTES = 512 * 2**20
"""The address space that the libraries of every command take up with one thread."""

_FEWEST_BYTES_OF_A_RUN = 1152 * 2**20
"""The same for a run, of which each process also compiles loops."""

_BYTES_OF_TORCH = 1280 * 2**20
"""The address space that torch adds."""

_BYTES_OF_A_THREAD = 80 * 2**20
"""The address space of each further thread: buffers in two copies of OpenBLAS."""

_THREADS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")

_REMEDY = "use fewer --workers"


def is_shortage(error: BaseException | None) -> bool:
    """Return whether an error, or the one that caused it, says that memory ran out.

    Python and the libraries have no class for it: a library that does not fit is an
    ``ImportError``, a thread that does not a ``RuntimeError``. An error of recbias never is one:
    it has its own remedy.

    >>> is_shortage(ImportError("libx.so: failed to map segment from shared object"))
    True
    >>> is_shortage(ImportError("No module named 'x'"))
    False
    """
    while error is not None and not isinstance(error, RecbiasError):
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        is_generic = isinstance(error, (ImportError, RuntimeError, SystemError))
        if is_generic and _find_lines(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def raise_shortage(error: BaseException) -> None:
    """Raise the error if it says that memory ran out."""
    if is_shortage(error):
        raise error


def describe_shortage(error: BaseException | None = None) -> tuple[str, str]:
    """Return what is said when memory ran out, and the remedy.

    >>> describe_shortage(MemoryError("Unable to allocate 4 TB"))[0]
    'out of memory: Unable to allocate 4 TB'
    """
    message = "out of memory"
    lines = _find_lines(error) or str(error or "").splitlines()
    if lines:
        message += f": {lines[0]}"
    limit = measure_process_limit()
    if not limit:
        return message, f"free some memory, or {_REMEDY}"
    megabytes = f"{limit / 2**20:,.0f} MB"
    message += f" (each process may use {megabytes}: ulimit -v or -d)"
    return message, f"allow more memory (ulimit -v unlimited), or {_REMEDY}"


def measure_process_limit() -> int:
    """Return the bytes of address space or data that a process may use; 0 without a limit."""
    return min(_list_limits().values(), default=0)


def require_room_for_command() -> None:
    """Refuse a limit under which no command can work; reserve the buffers of OpenBLAS.

    Where memory runs out while OpenBLAS is loaded or takes its buffers, it ends the process or
    tries for ever. Where there is a limit, both of its copies are therefore used first.

    Raises:
        TooLittleMemory: The limit of the process is too small.
    """
    if _require_room(_FEWEST_BYTES):
        import numpy as np
        import scipy.special  # noqa: F401  its modules load OpenBLAS, too
        from scipy.linalg import blas

        matrix = np.ones((256, 256))
        _ = matrix @ matrix, blas.dgemm(1.0, matrix, matrix)


def require_room_for_run(libraries: Collection[str]) -> None:
    """Refuse a limit under which the libraries of a run cannot be loaded.

    Raises:
        TooLittleMemory: The limit of the process is too small.
    """
    _require_room(_FEWEST_BYTES_OF_A_RUN + _BYTES_OF_TORCH * ("torch" in libraries))


def _require_room(fewest: int) -> bool:
    """Return whether there is a limit on the address space; refuse one that is too small."""
    limit = _list_limits().get("v", 0)
    needed = fewest + _BYTES_OF_A_THREAD * (_count_threads() - 1)
    if 0 < limit < needed:
        message = (
            f"the memory is too small: each process may use {limit / 2**20:,.0f} MB (ulimit -v), "
            f"and needs at least {needed / 2**20:,.0f} MB"
        )
        remedy = f"allow more memory: ulimit -v unlimited, or at least {needed // 1024}"
        raise TooLittleMemory(message, remedy=remedy)
    return limit > 0


def _find_lines(error: BaseException | None) -> list[str]:
    """Return the lines of a message that say that memory ran out; some libraries add advice."""
    lines = str(error or "").splitlines()
    return [line for line in lines if any(text in line.lower() for text in _MESSAGES)]


def _list_limits() -> dict[str, int]:
    """Return the limits of the process in bytes, by the option of ``ulimit``."""
    limits: dict[str, int] = {}
    with suppress(ImportError):  # Windows
        import resource

        for option, kind in (("v", resource.RLIMIT_AS), ("d", resource.RLIMIT_DATA)):
            limit = resource.getrlimit(kind)[0]
            if limit != resource.RLIM_INFINITY:
                limits[option] = limit
    return limits


def _count_threads() -> int:
    """Return the number of threads that OpenBLAS starts."""
    stated = (os.environ.get(name, "") for name in _THREADS_VARIABLES)
    counts = [int(text) for text in stated if text.isdecimal() and int(text)]
    return min([count_cores(), *counts[:1]])
