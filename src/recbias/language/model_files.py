"""Folders of pretrained language models: given, installed with a package, or from the hub.

A causal model may be a GGUF file, which ``transformers`` reads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from recbias.core.context import record_fact
from recbias.core.errors import Contradiction, DownloadFailed, MalformedLine, MissingFile
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

_GGUF = ".gguf"
"""The extension of model files of llama.cpp, which hold weights, vocabulary and settings."""

_SAMPLED_BYTES = 2**20  # the bytes at each end of a file that identify it

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
    """A language model on this machine.

    Args:
        folder: Its folder.
        revision: A commit, a package with its version, or blank.
        is_of_hub: Whether it is from the model hub.
        gguf: The name of its GGUF file; blank for a folder of ``safetensors``.
        setting: The setting that names it, for errors.
    """

    folder: Path
    revision: str = ""
    is_of_hub: bool = False
    gguf: str = ""
    setting: str = "encoder"

    @property
    def commit(self) -> str | None:
        """The commit of a model from the hub, else None."""
        return self.revision if self.is_of_hub else None


def find_model(name: str, revision: str | None = None, *, setting: str = "encoder") -> Source:
    """Return a language model; it is downloaded from the model hub if allowed.

    A name that is a path (``./``, ``../``, ``~`` or absolute) is a folder. Any other name is first
    looked up as an installed package that holds a model, then as a repository in the cache of the
    Hugging Face hub, then on the hub, whose ``revision`` is a commit, tag or branch (None: main).
    A ``model``, but no ``encoder``, may also be a ``.gguf`` file, or be one in the package. The
    model and its revision are recorded with the stage.

    Raises:
        MissingFile: It is not found and the network may not be used, or files are missing.
        MalformedLine: Its weights are in files other than ``safetensors`` in its folder.
        DownloadFailed: The hub does not provide it.
        Contradiction: A revision of a model that is not from a hub.
        MissingExtra: A package that reads a GGUF file is not installed.
    """
    source = _find_local(name, setting) or _find_on_hub(name, revision, setting)
    if revision is not None and not source.is_of_hub:
        message = f"{name} is not a model of a hub and has no revision {revision}"
        raise Contradiction(message, where="revision", remedy="leave revision out")
    if source.gguf:
        require_packages("a GGUF file", "accelerate", "gguf", where=setting)
    elif missing := _find_missing_file(source.folder):
        message = f"the model {name} has no {missing}"
        raise MissingFile(message, where=setting, remedy=COMPLETE_MODEL)
    is_path = bool(source.gguf) or Path(name).is_absolute()
    record_fact("model", Path(name).name if is_path else name)
    record_fact("revision", source.revision)
    return source


def list_model_files(name: str) -> tuple[Path, ...]:
    """Return the sorted files of a language model on this machine.

    Empty for a model of a hub, which is identified by its name and revision, and for a model that
    is not found, which ``find_model`` reports.
    """
    try:
        source = _find_local(name, "model")
    except MissingFile:
        source = None
    if source is None or source.gguf:
        return () if source is None else (source.folder / source.gguf,)
    with convert_read_errors(source.folder):
        paths = [path for path in source.folder.iterdir() if path.suffix in _MODEL_FILES]
    return tuple(sorted(path for path in paths if not path.is_dir()))


def _find_local(name: str, setting: str) -> Source | None:
    """Return the model at a path, or in the installed package of this name."""
    path = Path(name).expanduser()
    if setting == "model" and path.suffix.lower() == _GGUF:
        if has_file(path):
            return Source(path.parent, gguf=path.name, setting=setting)
        message = f"the file {name} does not exist"
        raise MissingFile(message, where=setting, remedy="name a .gguf file")
    if not (name.startswith((".", "~")) or path.is_absolute()):
        return _find_installed(name, setting)
    if has_file(path / CONFIG):
        return Source(path, setting=setting)
    fault = "has no config.json" if path.is_dir() else "does not exist"
    message = f"the folder {name} {fault}"
    raise MissingFile(message, where=setting, remedy="name the folder of a model")


def _find_installed(name: str, setting: str) -> Source | None:
    """Return the model in the installed package of this name."""
    try:
        package = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None
    revision, files = f"{package.name} {package.version}", package.files or ()
    for path in sorted(path for path in files if path.suffix == _GGUF):
        if setting == "model":
            file = Path(str(package.locate_file(path)))
            return Source(file.parent, revision, gguf=file.name, setting=setting)
    configs = [path for path in files if path.name == CONFIG]
    for config in sorted(configs, key=lambda path: len(path.parts)):
        folder = Path(str(package.locate_file(config))).parent
        if any(folder.glob("*.safetensors")):
            return Source(folder, revision, setting=setting)
    return None


def _find_on_hub(name: str, revision: str | None, setting: str) -> Source:
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
        command = f"hf download {name}" + (f" --revision {revision}" if revision else "")
        remedy = f"download it once: {command}; or name a folder or an installed package"
        if is_offline():
            message = f"the model {name} is not on this machine, and the network may not be used"
            raise MissingFile(message, where=setting, remedy=remedy) from error
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        message = f"the model {name} cannot be downloaded: {reason}"
        raise DownloadFailed(message, where=setting, remedy=remedy) from error
    return Source(Path(folder), Path(folder).name, is_of_hub=True, setting=setting)


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


@cache
def identify_files(name: str) -> str:
    """Return a digest of the files of a model on this machine; empty for a model of a hub.

    Names, sizes, and the first and last mebibyte of each file are hashed, so that it is fast for
    files of any size.
    """
    digest = sha256()
    paths = list_model_files(name)
    for path in paths:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as stream:
            digest.update(stream.read(_SAMPLED_BYTES))
            stream.seek(max(0, size - _SAMPLED_BYTES))
            digest.update(stream.read())
    return f"sha256:{digest.hexdigest()[:16]}" if paths else ""
