"""The address of a stored result, which decides whether it is reused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from recbias.core.digests import compute_digest, digest_text, to_canonical_json
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
    digest = compute_address(
        stage, to_canonical_json(identity), inputs=inputs, libraries=libraries, code=code
    )
    return replace(stage, digest=digest)


def compute_address(
    stage: Stage,
    identity: str,
    *,
    inputs: tuple[Stage, ...] | None = None,
    libraries: tuple[str, ...] = (),
    code: str = "",
) -> str:
    """Return the content address of the result of a stage.

    It is the digest of canonical JSON, of which the parts that many stages share are made once.
    ``identity`` is canonical JSON; see ``assign_address`` for the others.
    """
    return join_address(
        stage.kind,
        identity,
        stage.inputs if inputs is None else inputs,
        libraries,
        code or digest_sources(stage.work),
    )


def join_address(
    kind: str, identity: str, inputs: Iterable[Stage], libraries: tuple[str, ...], code: str
) -> str:
    """Return the content address of the result of a stage of a kind; see ``compute_address``."""
    digests = ",".join([f'"{source.digest}"' for source in inputs])
    return digest_text(
        f'{{"code":"{code}","identity":{identity},"inputs":[{digests}],"kind":"{kind}",'
        f'"libraries":{_list_versions(libraries)}}}'
    )


@cache
def _list_versions(libraries: tuple[str, ...]) -> str:
    """Return the versions of ``LIBRARIES`` and of other packages as canonical JSON."""
    names = (*LIBRARIES, *libraries)
    return to_canonical_json({name: library_version(name) for name in names})


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
