"""A stage of a run, and its address: the digest of everything that could change its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from recbias.core.digests import compute_digest
from recbias.runner.source_digest import digest_sources

LIBRARIES = ("numpy", "scipy", "pandas")
"""Packages whose version is part of every address."""


@dataclass(frozen=True)
class Keys:
    """The dataset, seed, fold and model that a result belongs to; blank if one does not apply."""

    dataset: str = ""
    seed: int | None = None
    fold: int | None = None
    model: str = ""


@dataclass(frozen=True)
class Stage:
    """One step of a run.

    Args:
        kind: ``dataset``, ``split``, ``queries``, ``label``, ``trial``, ``search``, ``fit``,
            ``answer`` or ``measure``.
        title: What users read: ``fit ItemKNN``.
        work: Called with the results of ``inputs``, in order; returns the result.
        spec_location: The entry of the spec that requests it, for messages:
            ``FILE:LINE:COLUMN: metrics[0]``.
        files: The input files that it reads, with their digests at planning time.
    """

    kind: str
    title: str
    digest: str
    work: Callable[..., Any] = field(compare=False)
    inputs: tuple[Stage, ...] = field(compare=False, repr=False)
    keys: Keys
    spec_location: str = field(default="", compare=False)
    files: Mapping[Path, str] = field(default_factory=dict, compare=False, repr=False)


def assign_address(
    stage: Stage,
    identity: Mapping[str, object],
    *,
    inputs: tuple[Stage, ...] | None = None,
    libraries: tuple[str, ...] = (),
) -> Stage:
    """Return a stage at the content address of its result.

    The modules of its work and of its plug-ins count, with all that they import.

    Args:
        stage: The stage.
        identity: The plug-ins with their settings, the seed, and so on.
        inputs: The inputs that count, if not all of the stage.
        libraries: Packages whose version matters besides ``LIBRARIES``.
    """
    digest = compute_digest(
        {
            "kind": stage.kind,
            "identity": identity,
            "inputs": [source.digest for source in (stage.inputs if inputs is None else inputs)],
            "code": digest_sources(stage.work),
            "libraries": {name: library_version(name) for name in (*LIBRARIES, *libraries)},
        }
    )
    return replace(stage, digest=digest)


@cache
def library_version(name: str) -> str:
    """Return the installed version of a package, blank where it is absent."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
