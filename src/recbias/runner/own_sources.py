"""The modules of plug-ins in worker processes, which import them later than the plan was made."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from recbias.core.errors import ChangedFile
from recbias.runner.source_digest import OWN_SOURCES, strip_source

_expected: dict[Path, str] = {}


def list_own_sources(*, omit: Collection[Path]) -> dict[Path, str]:
    """Return the digests of the modules outside recbias that stages can run, except some."""
    return {path: digest for path, digest in OWN_SOURCES.items() if path not in omit}


def expect_own_sources(sources: Mapping[Path, str]) -> None:
    """Make ``require_own_sources`` compare with these digests of the process that planned."""
    _expected.update(sources)


def require_own_sources() -> None:
    """Check that the modules that this worker imports are those on which addresses depend.

    Raises:
        ChangedFile: One was changed or removed since the run was planned.
    """
    for path, planned in _expected.items():
        try:
            source = path.read_text(encoding="utf-8", errors="backslashreplace")
        except OSError:
            source = ""
        if hashlib.sha256(strip_source(source).encode()).hexdigest() != planned:
            message = f"the code in {path} changed while the run was using it"
            remedy = "run again, and do not change the code before the run has ended"
            raise ChangedFile(message, remedy=remedy)
