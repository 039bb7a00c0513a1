"""The files of causal language models: folders of ``safetensors``, and GGUF files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from recbias.core.errors import Contradiction, MissingFile, UserError
from recbias.core.input_files import has_file
from recbias.core.packages import require_packages
from recbias.core.stage_context import record_fact
from recbias.language.model_folders import Source, find_model, list_model_files

GGUF = ".gguf"
"""The extension of model files of llama.cpp, which hold weights, vocabulary and settings."""

SAMPLED_BYTES = 2**20
"""The bytes at each end of a file that identify it."""


def check_causal_model(name: str, revision: str | None = None) -> tuple[Source, str]:
    """Return a model and the name of its GGUF file, empty for a folder of ``safetensors``.

    Raises:
        MissingFile: As for ``find_model``.
        MissingExtra: A package that reads the file is not installed.
        Contradiction: A revision of a model that is not from a hub.
    """
    with locate_at_model():
        source, gguf = _find_causal_model(name, revision)
    if gguf:
        require_packages("a GGUF file", "accelerate", "gguf", where="model")
    return source, gguf


@contextmanager
def locate_at_model() -> Iterator[None]:
    """Locate errors about an encoder at the setting ``model`` instead."""
    try:
        yield
    except UserError as error:
        if error.where == "encoder":
            error.where = "model"
        raise


def _find_causal_model(name: str, revision: str | None) -> tuple[Source, str]:
    local = _find_local(name)
    if local is not None:
        if revision is not None:
            message = f"{name} is not a model of a hub and has no revision {revision}"
            raise Contradiction(message, where="revision", remedy="leave revision out")
        record_fact("model", Path(name).name)
        record_fact("revision", local[0].revision)
        return local
    return find_model(name, revision), ""


def list_causal_model_files(name: str) -> tuple[Path, ...]:
    """Return the sorted files of a model on this machine; none for a model of a hub."""
    try:
        source, gguf = _find_local(name) or (None, "")
    except MissingFile:
        return ()
    if source is None or not gguf:
        return list_model_files(name)
    return (source.folder / gguf,)


@cache
def identify_files(name: str) -> str:
    """Return a digest of the files of a model on this machine; empty for a model of a hub.

    Names, sizes, and the first and last mebibyte of each file are hashed, so that it is fast for
    files of any size.
    """
    digest = sha256()
    paths = list_causal_model_files(name)
    for path in paths:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as stream:
            digest.update(stream.read(SAMPLED_BYTES))
            stream.seek(max(0, size - SAMPLED_BYTES))
            digest.update(stream.read())
    return f"sha256:{digest.hexdigest()[:16]}" if paths else ""


def _find_local(name: str) -> tuple[Source, str] | None:
    """Return a ``.gguf`` file and its folder, given or in the installed package of this name."""
    path = Path(name).expanduser()
    if path.suffix.lower() == GGUF:
        if not has_file(path):
            message = f"the file {name} does not exist"
            raise MissingFile(message, where="model", remedy="name a .gguf file")
        return Source(path.parent), path.name
    return _find_installed_gguf(name)


def _find_installed_gguf(name: str) -> tuple[Source, str] | None:
    try:
        package = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None
    paths = sorted(str(path) for path in package.files or () if path.suffix == GGUF)
    if not paths:
        return None
    path = Path(str(package.locate_file(paths[0])))
    return Source(path.parent, f"{package.name} {package.version}"), path.name
