"""Folders of pretrained language models: given, installed with a package, or from the hub.

A causal model may be a GGUF file, which ``transformers`` reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from recbias.core.context import record_fact
from recbias.core.errors import (
    Contradiction,
    DownloadFailed,
    MalformedLine,
    MissingFile,
    UserError,
)
from recbias.core.files import convert_read_errors, has_file, is_offline
from recbias.core.packages import require_packages

CONFIG = "config.json"
"""The configuration file of every model folder."""

_WEIGHTS = "model.safetensors"
"""The weight file; the index of several weight files is named after it."""

_ADAPTER = "adapter_config.json"
"""A file that makes ``transformers`` read further weights, from files of any kind."""

_MODEL_FILES = frozenset({".jinja", ".json", ".txt", ".model", ".safetensors"})
"""The extensions of the files that are read, and downloaded from a hub."""

_VOCABULARIES = frozenset(
    {"tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model"}
    | {"sentencepiece.bpe.model", "spm.model"}
)
"""Files of which a tokenizer needs at least one."""

COMPLETE_MODEL = (
    "complete it: save_pretrained of the model and of its tokenizer; weights in other files than "
    "safetensors can hold code and are not read"
)


@dataclass(frozen=True)
class Source:
    """A language model on this machine; its revision is a commit, a package's version or blank."""

    folder: Path
    revision: str = ""
    is_of_hub: bool = False

    @property
    def commit(self) -> str | None:
        """The commit of a model from the hub, else None."""
        return self.revision if self.is_of_hub else None


def find_model(name: str, revision: str | None = None) -> Source:
    """Return a language model; it is downloaded from the model hub if allowed.

    A name that is a path (``./``, ``../``, ``~`` or absolute) is a folder. Any other name is first
    looked up as an installed package that holds a model, then as a repository in the cache of the
    Hugging Face hub, then on the hub, whose ``revision`` is a commit, tag or branch (None: main).
    The model and its revision are recorded with the stage.

    Raises:
        MissingFile: It is not found and the network may not be used, or files are missing.
        MalformedLine: Its weights are in files other than ``safetensors`` in its folder.
        DownloadFailed: The hub does not provide it.
        Contradiction: A revision of a model that is not from a hub.
    """
    local = _find_folder(name) or _find_installed(name)
    if local is not None:
        _refuse_revision(name, revision)
    source = local or _find_on_hub(name, revision)
    missing = _find_missing_file(source.folder)
    if missing:
        message = f"the model {name} has no {missing}"
        raise MissingFile(message, where="encoder", remedy=COMPLETE_MODEL)
    record_fact("model", Path(name).name if Path(name).is_absolute() else name)
    record_fact("revision", source.revision)
    return source


def _refuse_revision(name: str, revision: str | None) -> None:
    """Raise Contradiction if a model that is on this machine has a revision."""
    if revision is not None:
        message = f"{name} is not a model of a hub and has no revision {revision}"
        raise Contradiction(message, where="revision", remedy="leave revision out")


def list_model_files(name: str) -> tuple[Path, ...]:
    """Return the sorted files of a language model in a folder or an installed package.

    Empty for a model of a hub, which is identified by its name and revision, and for a model that
    is not found, which ``find_model`` reports.
    """
    try:
        source = _find_folder(name) or _find_installed(name)
    except MissingFile:
        source = None
    if source is None:
        return ()
    with convert_read_errors(source.folder):
        paths = [path for path in source.folder.iterdir() if path.suffix in _MODEL_FILES]
    return tuple(sorted(path for path in paths if not path.is_dir()))


def list_code(folder: Path) -> list[str]:
    """Return the files of code in the folder of a model; none of them is ever run.

    The file that makes a folder a Python package is none of the model.
    """
    with convert_read_errors(folder):
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".py")
    return [name for name in names if name != "__init__.py"]


def _find_folder(name: str) -> Source | None:
    folder = Path(name).expanduser()
    if not (name.startswith((".", "~")) or folder.is_absolute()):
        return None
    if has_file(folder / CONFIG):
        return Source(folder)
    fault = "has no config.json" if folder.is_dir() else "does not exist"
    message = f"the folder {name} {fault}"
    raise MissingFile(message, where="encoder", remedy="name the folder of a model")


def _find_package(name: str) -> metadata.Distribution | None:
    """Return the installed package of a name."""
    try:
        return metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _find_installed(name: str) -> Source | None:
    """Return the model in the installed package of this name."""
    if (package := _find_package(name)) is None:
        return None
    configs = [path for path in package.files or () if path.name == CONFIG]
    for config in sorted(configs, key=lambda path: len(path.parts)):
        folder = Path(str(package.locate_file(config))).parent
        if any(folder.glob("*.safetensors")):
            return Source(folder, f"{package.name} {package.version}")
    return None


def _find_on_hub(name: str, revision: str | None) -> Source:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    patterns = [f"*{extension}" for extension in sorted(_MODEL_FILES)]
    try:
        try:
            folder = snapshot_download(
                name, revision=revision, allow_patterns=patterns, local_files_only=True
            )
            _refuse_incomplete(Path(folder))
        except LocalEntryNotFoundError:
            if is_offline():
                raise
            folder = snapshot_download(name, revision=revision, allow_patterns=patterns)
    except (OSError, ValueError) as error:
        raise _describe_download_failure(name, revision, error) from error
    return Source(Path(folder), Path(folder).name, is_of_hub=True)


def _refuse_incomplete(folder: Path) -> None:
    from huggingface_hub.errors import LocalEntryNotFoundError

    missing = _find_missing_file(folder)
    if missing:
        raise LocalEntryNotFoundError(f"its {missing} is not in the cache")


def _find_missing_file(folder: Path) -> str:
    """Return the first file that a model folder lacks, or blank."""
    with convert_read_errors(folder):
        paths = [path for path in folder.iterdir() if not path.is_dir()]
    names = {path.name for path in paths if has_file(path)}  # refuses a pipe of any name
    if _ADAPTER in names:
        message = "the folder holds an adapter, whose weights are added to those of another model"
        remedy = "merge it into its model and save that (merge_and_unload, save_pretrained)"
        raise MalformedLine(message, where=str(folder / _ADAPTER), remedy=remedy)
    if CONFIG not in names:
        return CONFIG
    if not names & _VOCABULARIES:
        return f"tokenizer ({', '.join(sorted(_VOCABULARIES))})"
    return "" if _WEIGHTS in names else _find_missing_shard(folder / f"{_WEIGHTS}.index.json")


def _find_missing_shard(index: Path) -> str:
    """Return the first missing weight file that an index names, or blank."""
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return f"{_WEIGHTS}, nor a readable {index.name}"
    for shard in sorted(shards, key=str):
        if not _is_shard(shard):
            name = str(shard)[:80]
            message = f"it names {name!r}, which is not a .safetensors file in the same folder"
            raise MalformedLine(message, where=str(index), remedy=COMPLETE_MODEL)
    return next((shard for shard in sorted(shards) if not (index.parent / shard).is_file()), "")


def _is_shard(name: object) -> bool:
    """Return whether an entry of an index is the bare name of a ``.safetensors`` file."""
    is_bare = isinstance(name, str) and not set("/\\:\0") & set(name)
    return is_bare and Path(str(name)).suffix == ".safetensors"


def _describe_download_failure(
    name: str, revision: str | None, error: Exception
) -> MissingFile | DownloadFailed:
    command = f"hf download {name}" + (f" --revision {revision}" if revision else "")
    remedy = f"download it once: {command}; or name a folder or an installed package"
    if is_offline():
        message = f"the model {name} is not on this machine, and the network may not be used"
        return MissingFile(message, where="encoder", remedy=remedy)
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    message = f"the model {name} cannot be downloaded: {reason}"
    return DownloadFailed(message, where="encoder", remedy=remedy)


_GGUF = ".gguf"
"""The extension of model files of llama.cpp, which hold weights, vocabulary and settings."""

_SAMPLED_BYTES = 2**20  # the bytes at each end of a file that identify it


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
        _refuse_revision(name, revision)
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
            digest.update(stream.read(_SAMPLED_BYTES))
            stream.seek(max(0, size - _SAMPLED_BYTES))
            digest.update(stream.read())
    return f"sha256:{digest.hexdigest()[:16]}" if paths else ""


def _find_local(name: str) -> tuple[Source, str] | None:
    """Return a ``.gguf`` file and its folder, given or in the installed package of this name."""
    path = Path(name).expanduser()
    if path.suffix.lower() == _GGUF:
        if not has_file(path):
            message = f"the file {name} does not exist"
            raise MissingFile(message, where="model", remedy="name a .gguf file")
        return Source(path.parent), path.name
    return _find_installed_gguf(name)


def _find_installed_gguf(name: str) -> tuple[Source, str] | None:
    if (package := _find_package(name)) is None:
        return None
    paths = sorted(str(path) for path in package.files or () if path.suffix == _GGUF)
    if not paths:
        return None
    path = Path(str(package.locate_file(paths[0])))
    return Source(path.parent, f"{package.name} {package.version}"), path.name
