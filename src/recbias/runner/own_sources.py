"""The modules of plug-ins in worker processes, which import them later than the plan was made."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from recbias.core.errors import ChangedFile
from recbias.core.input_files import WatchedPath
from recbias.runner.source_digest import digest_own_sources, strip_source
from recbias.runner.stage import Stage


@dataclass(frozen=True)
class OwnSource:
    """A module outside recbias as the process that planned the run knows it.

    Args:
        digest: The digest of its source code.
        watched: Its file before there were workers.
    """

    digest: str
    watched: WatchedPath


_expected: dict[Path, OwnSource] = {}


def list_own_sources(stages: Iterable[Stage], *, omit: Collection[Path]) -> dict[Path, OwnSource]:
    """Return the modules outside recbias that stages can run, except some."""
    digests: dict[Path, str] = {}
    for stage in stages:
        digests |= digest_own_sources(stage.work)
    return {
        path: OwnSource(digest, WatchedPath.look(path))
        for path, digest in digests.items()
        if path not in omit
    }


def expect_own_sources(sources: Mapping[Path, OwnSource]) -> None:
    """Make ``require_own_sources`` compare with what the process that planned knows."""
    _expected.update(sources)


def add_to_search_path(folders: Iterable[str]) -> None:
    """Let this process find the modules that the one that planned can import."""
    sys.path += [folder for folder in folders if folder not in sys.path]


def require_own_sources() -> None:
    """Check that the modules that this worker imports are those on which addresses depend.

    Raises:
        ChangedFile: One was changed or removed since the run was planned, or replaced and put
            back since there are workers.
    """
    for path, planned in _expected.items():
        now = WatchedPath.look(path)
        try:
            source = path.read_text(encoding="utf-8", errors="backslashreplace")
        except OSError:
            source = ""
        digest = hashlib.sha256(strip_source(source).encode()).hexdigest()
        if digest != planned.digest or not planned.watched.is_same(now):
            message = f"the code in {path} changed while the run was using it"
            remedy = "run again, and do not change the code before the run has ended"
            raise ChangedFile(message, remedy=remedy)
