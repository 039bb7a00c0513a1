"""A stage: one piece of work, what it needs, and the address of what it makes.

The address is made of everything that could change the result: the kind of work, the plug-in with
its parameters and version, the code of the floors it runs on, the versions of the libraries, the
seed, and the addresses of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from recbias.core.digests import compute_digest, digest_file

FLOORS: Mapping[str, tuple[str, ...]] = {
    "dataset": ("core", "formats", "numerics", "data", "language"),
    "split": ("core", "formats", "numerics", "data"),
    "queries": ("core", "formats", "numerics", "data", "language"),
    "label": ("core", "formats", "numerics", "statistics", "language", "detectors"),
    "trial": ("core", "formats", "numerics", "statistics", "language", "models", "metrics"),
    "search": ("core",),
    "fit": ("core", "formats", "numerics", "statistics", "language", "models"),
    "answer": ("core", "formats", "numerics", "statistics", "language", "models"),
    "measure": ("core", "numerics", "statistics", "metrics"),
    "compare": ("core", "statistics"),
}
"""Each kind of stage, and the packages whose code it runs."""

CODE = {".py", ".yaml", ".txt", ".csv", ".json"}
"""The files of a package that can change a result."""

LIBRARIES = ("numpy", "scipy", "pandas")
"""Packages whose version is part of every address."""


@dataclass(frozen=True)
class Keys:
    """Where a stage's result belongs in the tables; blank where it does not apply."""

    dataset: str = ""
    seed: int | None = None
    fold: int | None = None
    model: str = ""


@dataclass(frozen=True)
class Stage:
    """One step of a run.

    Args:
        kind: One of the keys of ``FLOORS``.
        title: What a person reads: ``fit ItemKNN``.
        digest: The address of the result.
        work: Called with the results of ``inputs``, in order; returns the result.
        inputs: The stages it needs.
        keys: Where the result belongs in the tables.
        place: What of the spec asks for it, ``FILE:LINE:COLUMN: metrics[0]``, for messages.
        files: The input files it reads, with the digests that its address is made of.
    """

    kind: str
    title: str
    digest: str
    work: Callable[..., Any] = field(compare=False)
    inputs: tuple[Stage, ...] = field(compare=False, repr=False)
    keys: Keys
    place: str = field(default="", compare=False)
    files: Mapping[Path, str] = field(default_factory=dict, compare=False, repr=False)


def address(
    kind: str,
    *,
    identity: Mapping[str, object],
    inputs: tuple[Stage, ...] = (),
    libraries: tuple[str, ...] = (),
) -> str:
    """Return the content address of a stage's result."""
    return compute_digest(
        {
            "kind": kind,
            "identity": identity,
            "inputs": [each.digest for each in inputs],
            "code": [code_digest(floor) for floor in FLOORS[kind]],
            "libraries": {name: library_version(name) for name in (*LIBRARIES, *libraries)},
        }
    )


@cache
def code_digest(floor: str) -> str:
    """Return the digest of the source files of one package of recbias, and its data files."""
    folder = Path(__file__).parents[1] / floor
    files = sorted(path for path in folder.rglob("*") if path.suffix in CODE)
    return compute_digest(
        [[path.relative_to(folder).as_posix(), digest_file(path)] for path in files]
    )


@cache
def library_version(name: str) -> str:
    """Return the installed version of a package, blank where it is absent."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
