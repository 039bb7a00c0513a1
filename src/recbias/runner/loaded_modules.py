"""Modules that a process imported before their source was changed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import ModuleType

from recbias.core.errors import ChangedFile
from recbias.runner.loaded_code import compile_source, drop_lines, has_code_of_source

_HEADER_BYTES = 16
_MASK = 2**32 - 1


def require_loaded_version(path: Path) -> None:
    """Check that the module that this process imported from a file is the one in the file.

    Python writes the time and the size of the source into the compiled file (``.pyc``) when it
    imports a module. If they differ, the code is compared: a source that was only written again,
    or has other comments, runs the same. Where Python writes no such file, the functions and the
    constants of the module are compared with the source, compiled again. The code of a module that
    pytest imports in its own way is not that of its source, and a change of it cannot be seen.

    Raises:
        ChangedFile: The file was changed after the import: the code that runs is another one.
    """
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        cached = getattr(spec, "cached", None)
        if cached and getattr(module, "__file__", None) == str(path):
            is_usual = type(getattr(spec, "loader", None)) is SourceFileLoader
            if is_usual and not _is_of_source(module, Path(cached), path):
                message = f"the code in {path} changed after this process had imported it"
                remedy = "start Python again; in a notebook, restart the kernel"
                raise ChangedFile(message, remedy=remedy)
            return


def _is_of_source(module: ModuleType, cached: Path, path: Path) -> bool:
    """Return whether a module was made of its source as it is."""
    if not sys.dont_write_bytecode and os.access(cached.parent, os.W_OK):
        with suppress(OSError):
            with cached.open("rb") as stream:
                header = stream.read(_HEADER_BYTES)
            status = path.stat()
            expected = (int(status.st_mtime) & _MASK, status.st_size & _MASK)
            fields = [int.from_bytes(header[at : at + 4], "little") for at in (4, 8, 12)]
            if len(header) == _HEADER_BYTES and header[:4] == MAGIC_NUMBER and fields[0] == 0:
                return tuple(fields[1:]) == expected or _runs_same(cached, path)
    return has_code_of_source(module, path)


def _runs_same(cached: Path, path: Path) -> bool:
    """Return whether a source has the code of a compiled file, on whatever lines."""
    name = path.stem
    compiled = SourcelessFileLoader(name, str(cached)).get_code(name)
    now = compile_source(path)
    return compiled is not None and now is not None and drop_lines(compiled) == drop_lines(now)
