"""Modules that a process imported before their source was changed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from recbias.core.errors import ChangedFile

_HEADER_BYTES = 16
_MASK = 2**32 - 1


def require_loaded_version(path: Path) -> None:
    """Check that the module that this process imported from a file is the one in the file.

    Python writes the time and the size of the source into the compiled file (``.pyc``) when it
    imports a module. Where it writes none, a change cannot be seen.

    Raises:
        ChangedFile: The file was changed after the import: the code that runs is another one.
    """
    for module in list(sys.modules.values()):
        cached = getattr(getattr(module, "__spec__", None), "cached", None)
        if cached and getattr(module, "__file__", None) == str(path):
            if not _is_of_source(Path(cached), path):
                message = f"the code in {path} changed after this process had imported it"
                remedy = "start Python again; in a notebook, restart the kernel"
                raise ChangedFile(message, remedy=remedy)
            return


def _is_of_source(cached: Path, path: Path) -> bool:
    """Return whether a compiled file was made of the source as it is; True if nobody can say."""
    if sys.dont_write_bytecode or not os.access(cached.parent, os.W_OK):
        return True
    with suppress(OSError):
        with cached.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
        status = path.stat()
        expected = (int(status.st_mtime) & _MASK, status.st_size & _MASK)
        fields = [int.from_bytes(header[at : at + 4], "little") for at in (4, 8, 12)]
        if len(header) == _HEADER_BYTES and header[:4] == MAGIC_NUMBER and fields[0] == 0:
            return tuple(fields[1:]) == expected
    return True
