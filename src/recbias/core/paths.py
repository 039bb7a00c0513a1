"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path


def local_path(path: Path | str) -> Path:
    """Return a path that every library takes for one of this machine.

    A ``~`` in front, which a shell may have left there, is the home folder. A relative path with
    a colon is made absolute: pandas and pyarrow take ``s3:results`` for an address.

    >>> local_path("~/results") == Path.home() / "results", local_path("s3:results").is_absolute()
    (True, True)
    """
    expanded = Path(os.path.expanduser(path))  # noqa: PTH111  Path.expanduser raises for ~nobody
    return expanded.absolute() if ":" in str(expanded) else expanded
