"""Conversion of weights that are stored as pickles to ``safetensors``, once."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError  # noqa: TID251  an error of torch, which reads no code
from typing import Any

from recbias.core.errors import Contradiction, MalformedLine, MissingFile, Unwritable
from recbias.core.stage_context import warn
from recbias.language.backends import (
    describe_failure,
    load_config,
    load_tokenizer,
    refuse_missing_weights,
    silence_transformers,
)
from recbias.language.model_folders import CONFIG, VOCABULARIES, WEIGHTS, Source, list_code
from recbias.language.scoring.sentence_models import CLASSES, find_kind

PICKLE = "pytorch_model.bin"
"""The file of weights that ``torch`` writes; the index of several files is named after it."""


@dataclass(frozen=True)
class Conversion:
    """What was converted: the class of the model, and the number of its parameters."""

    architecture: str
    n_parameters: int


def convert_weights(folder: Path, target: Path) -> Conversion:
    """Write the model of a folder to a new folder, with its weights as ``safetensors``.

    The weights are read without running code that a pickle may hold. Code in the folder is
    neither run nor copied. The configuration and the tokenizer are written, too.

    Args:
        folder: A folder with ``config.json``, ``pytorch_model.bin`` (or the index of several
            files) and the files of a tokenizer.
        target: The new folder.

    Raises:
        MissingFile: There is no such folder or file, or it cannot be read.
        MalformedLine: The weights hold code, or other objects than tensors by name.
        Contradiction: The folder has ``safetensors`` already, or its model is of a type that
            ``transformers`` does not have.
        Unwritable: The target exists, or cannot be written.
    """
    _check_folders(folder, target)
    if code := list_code(folder):
        warn(f"the folder holds code ({', '.join(code)}), which is neither run nor copied")
    source = Source(folder)
    config = load_config(source)
    vars(config).pop("auto_map", None)
    tokenizer = _load_tokenizer(source)
    weights = _read_pickles(folder)
    network = _build_network(source, config, weights)
    with _write_folder(target) as new, silence_transformers():
        network.save_pretrained(new)
        tokenizer.save_pretrained(new)
    return Conversion(type(network).__name__, network.num_parameters())


def _check_folders(folder: Path, target: Path) -> None:
    if not folder.is_dir():
        raise MissingFile(
            "is not a folder", where=str(folder), remedy="name the folder of a model"
        )
    if (folder / WEIGHTS).exists() or (folder / f"{WEIGHTS}.index.json").exists():
        message = f"has {WEIGHTS} already"
        raise Contradiction(message, where=str(folder), remedy="use the folder as it is")
    if target.exists():
        raise Unwritable("exists already", where=str(target), remedy="name a new folder: --to NEW")
    if not (folder / CONFIG).is_file():
        raise MissingFile(
            f"has no {CONFIG}", where=str(folder), remedy="add it from the publisher"
        )


def _read_pickles(folder: Path) -> dict[str, Any]:
    """Return the tensors of all weight files by name."""
    weights: dict[str, Any] = {}
    for path in _list_pickles(folder):
        read = _read_pickle(path)
        other_names = sorted(
            str(name) for name, value in read.items() if not hasattr(value, "dtype")
        )
        if other_names:
            message = f"holds {other_names[0]!r}, which is not a tensor"
            remedy = "save the state_dict of the model"
            raise MalformedLine(message, where=str(path), remedy=remedy)
        weights |= read
    return weights


def _list_pickles(folder: Path) -> list[Path]:
    index = folder / f"{PICKLE}.index.json"
    if (folder / PICKLE).is_file():
        return [folder / PICKLE]
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        paths = [folder / Path(name).name for name in sorted(names)]
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        message = f"has no {PICKLE}, nor a readable {index.name}"
        remedy = "name a folder with weights that torch has saved"
        raise MissingFile(message, where=str(folder), remedy=remedy) from error
    for path in paths:
        if not path.is_file():
            raise MissingFile("is missing", where=str(path), remedy="download the model again")
    return paths


def _read_pickle(path: Path) -> Mapping[Any, Any]:
    import torch

    try:
        with warnings.catch_warnings(action="ignore"):  # about pickles of other programs
            read = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        message = "is not a file of tensors: it holds code or other objects, and is not read"
        remedy = "ask its publisher for safetensors; a pickle with code can do anything"
        raise MalformedLine(message, where=str(path), remedy=remedy) from error
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, TypeError) as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        message = f"cannot be read: {reason}"
        raise MissingFile(message, where=str(path), remedy="download the file again") from error
    if isinstance(read, Mapping):
        return read
    message = f"holds a {type(read).__name__}, not tensors by name"
    raise MalformedLine(message, where=str(path), remedy="save the state_dict of the model")


def _build_network(source: Source, config: Any, weights: dict[str, Any]) -> Any:
    """Return the model with these weights, by the architecture that they were saved from."""
    import transformers

    name = (config.architectures or [""])[0]
    auto = getattr(transformers, str(name), None)
    if auto is None or not hasattr(auto, "from_pretrained"):
        auto = getattr(transformers, CLASSES[find_kind(source)])
    options = {"config": config, "state_dict": weights, "output_loading_info": True}
    kinds = [tensor.dtype for tensor in weights.values() if tensor.is_floating_point()]
    with silence_transformers(), describe_failure("weights", source):
        network, info = auto.from_pretrained(None, dtype=next(iter(kinds), None), **options)
    refuse_missing_weights(source, info)
    return network


def _load_tokenizer(source: Source) -> Any:
    """Return the tokenizer; that of BERT for a ``vocab.txt`` alone, as dialogue models have."""
    import transformers

    names = {path.name for path in source.folder.iterdir()}
    if names & VOCABULARIES == {"vocab.txt"} and "tokenizer_config.json" not in names:
        library: Any = transformers
        with silence_transformers(), describe_failure("tokenizer", source):
            return library.BertTokenizerFast.from_pretrained(source.folder, local_files_only=True)
    return load_tokenizer(source)


@contextmanager
def _write_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes the target; it is removed after an error."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            yield new
            new.chmod(0o755)
            new.rename(target)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"cannot be written: {reason}"
        raise Unwritable(message, where=str(target), remedy="name another folder") from error
