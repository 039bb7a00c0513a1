"""Files that are made once and used by whoever needs the same: what tokenising makes, say."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_folder: ContextVar[Path | None] = ContextVar("scratch", default=None)


@contextmanager
def scratch_in(folder: Path) -> Iterator[None]:
    """Keep the files that are made inside this block in ``folder``, for later work too."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


@contextmanager
def made_once(name: str, make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a file that is made where nobody has made it before; whole or not at all.

    Where nobody has said where such files are kept, it is made for this block only.

    Args:
        name: Its name, which must say everything that its content hangs on, as a digest does.
        make: Writes it to the path that it is given.
    """
    kept = _folder.get()
    folder = Path(tempfile.mkdtemp(prefix="recbias-")) if kept is None else kept
    path = folder / name
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            written = folder / f"{name}.{os.getpid()}-{uuid.uuid4().hex}"
            try:
                make(written)
                written.replace(path)
            finally:
                written.unlink(missing_ok=True)
        else:
            os.utime(path)
        yield path
    finally:
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)
