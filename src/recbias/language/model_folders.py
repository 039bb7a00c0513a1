"""Folders of pretrained language models: given, installed with a package, or from the hub."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from recbias.core.errors import Contradiction, DownloadFailed, MalformedLine, MissingFile
from recbias.core.input_files import convert_read_errors, has_file
from recbias.core.network import is_offline
from recbias.core.stage_context import record_fact

CONFIG = "config.json"
"""The configuration file of every model folder."""

WEIGHTS = "model.safetensors"
"""The weight file; the index of several weight files is named after it."""

ADAPTER = "adapter_config.json"
"""A file that makes ``transformers`` read further weights, from files of any kind."""

MODEL_FILES = frozenset({".jinja", ".json", ".txt", ".model", ".safetensors"})
"""The extensions of the files that are read, and downloaded from a hub."""

VOCABULARIES = frozenset(
    {"tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model"}
    | {"sentencepiece.bpe.model", "spm.model"}
)
"""Files of which a tokenizer needs at least one."""

COMPLETE_MODEL = (
    "complete it: save_pretrained of the model and of its tokenizer; weights in other files than "
    "safetensors can hold code and are not read (recbias convert FOLDER writes those without any)"
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
    if local is not None and revision is not None:
        message = f"{name} is not a model of a hub and has no revision {revision}"
        raise Contradiction(message, where="revision", remedy="leave revision out")
    source = local or _find_on_hub(name, revision)
    missing = _find_missing_file(source.folder)
    if missing:
        message = f"the model {name} has no {missing}"
        raise MissingFile(message, where="encoder", remedy=COMPLETE_MODEL)
    record_fact("model", Path(name).name if Path(name).is_absolute() else name)
    record_fact("revision", source.revision)
    return source


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
        paths = [path for path in source.folder.iterdir() if path.suffix in MODEL_FILES]
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


def _find_installed(name: str) -> Source | None:
    """Return the model in the installed package of this name."""
    try:
        package = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
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

    patterns = [f"*{extension}" for extension in sorted(MODEL_FILES)]
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
    if ADAPTER in names:
        message = "the folder holds an adapter, whose weights are added to those of another model"
        remedy = "merge it into its model and save that (merge_and_unload, save_pretrained)"
        raise MalformedLine(message, where=str(folder / ADAPTER), remedy=remedy)
    if CONFIG not in names:
        return CONFIG
    if not names & VOCABULARIES:
        return f"tokenizer ({', '.join(sorted(VOCABULARIES))})"
    return "" if WEIGHTS in names else _find_missing_shard(folder / f"{WEIGHTS}.index.json")


def _find_missing_shard(index: Path) -> str:
    """Return the first missing weight file that an index names, or blank.

    MalformedLine refuses a file of another kind or outside the folder: ``transformers`` would read
    it as a pickle, or its content would not be part of the address of the results.
    """
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return f"{WEIGHTS}, nor a readable {index.name}"
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
