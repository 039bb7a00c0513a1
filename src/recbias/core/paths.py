"""Conversion of paths that users write."""

from __future__ import annotations

import os
from pathlib import Path


def to_local_path(path: Path | str) -> Path:
    """Return a path that every library reads as a path of this machine.

    A leading ``~``, if the shell left it there, is the home folder. A relative path with a colon
    becomes absolute, because pandas and pyarrow read ``s3:results`` as a URL.

    >>> to_local_path("~/results") == Path.home() / "results"
    True
    >>> to_local_path("s3:results").is_absolute()
    True
    """
    expanded = Path(os.path.expanduser(path))  # noqa: PTH111  Path.expanduser raises for ~nobody
    return expanded.absolute() if ":" in str(expanded) else expanded
