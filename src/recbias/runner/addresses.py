"""The address of a stored result, which decides whether it is reused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from recbias.core.digests import compute_digest
from recbias.runner.source_digest import digest_sources
from recbias.runner.stage import Stage

LIBRARIES = ("numpy", "scipy", "pandas")
"""Packages whose version is part of every address."""


def assign_address(
    stage: Stage,
    identity: Mapping[str, object],
    *,
    inputs: tuple[Stage, ...] | None = None,
    libraries: tuple[str, ...] = (),
    code: str = "",
) -> Stage:
    """Return a stage at the content address of its result.

    The modules of its work and of its plug-ins count, with all that they import.

    Args:
        stage: The stage.
        identity: The plug-ins with their settings, the seed, and so on.
        inputs: The inputs that count, if not all of the stage.
        libraries: Packages whose version matters besides ``LIBRARIES``.
        code: The digest of the modules, if it is known.
    """
    digest = compute_digest(
        {
            "kind": stage.kind,
            "identity": identity,
            "inputs": [source.digest for source in (stage.inputs if inputs is None else inputs)],
            "code": code or digest_sources(stage.work),
            "libraries": {name: library_version(name) for name in (*LIBRARIES, *libraries)},
        }
    )
    return replace(stage, digest=digest)


def address_values(
    plugin: object, identity: Mapping[str, object], libraries: tuple[str, ...]
) -> str:
    """Return the digest of what could change the values that a plug-in gives to a text."""
    return compute_digest(
        {
            "identity": identity,
            "code": digest_sources(plugin),
            "libraries": {name: library_version(name) for name in (*LIBRARIES, *libraries)},
        }
    )


@cache
def library_version(name: str) -> str:
    """Return the installed version of a package, blank where it is absent."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
