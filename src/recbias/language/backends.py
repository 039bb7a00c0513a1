"""Pretrained language models as ``torch`` modules and tokenizers, without the network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from recbias.core.errors import MissingFile, UserError
from recbias.core.machine.memory import is_shortage
from recbias.core.models.devices import Device
from recbias.core.stage_context import warn
from recbias.language.model_folders import (
    COMPLETE_MODEL,
    CONFIG,
    Source,
    find_model,
    list_code,
)
from recbias.numerics.devices import resolve_device

_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Read local files only, and run no code from a model folder."""

_KERNELS = ("_attn_implementation", "_experts_implementation")
"""Settings that may name a package, or code on a hub."""


def check_model(name: str, revision: str | None = None) -> None:
    """Refuse a language model that is not available, or whose tokenizer cannot be loaded."""
    source = find_model(name, revision)
    load_config(source)
    load_tokenizer(source)


def load_tokenizer(source: Source, **options: Any) -> Any:
    """Return the tokenizer of a model; MissingFile if it cannot be read or is not a fast one."""
    from transformers import AutoTokenizer

    with silence_transformers(), describe_failure("tokenizer", source):
        tokenizer = AutoTokenizer.from_pretrained(source.folder, **_LOCAL, **options)
        tokenizer("text")  # some faults of its settings show only now
    if not tokenizer.is_fast:
        kind = type(tokenizer).__name__
        message = f"the tokenizer in {source.folder} ({kind}) is not a fast tokenizer"
        raise MissingFile(message, where="encoder", remedy="name a model with a tokenizer.json")
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):  # made without files
        message = f"{source.folder} has no vocabulary of a tokenizer"
        raise MissingFile(message, where="encoder", remedy="add tokenizer.json from the publisher")
    return tokenizer


def load_encoder(source: Source, *, weights: bool = True) -> Any:
    """Return the encoder of a model as a ``torch`` module in ``float32``, in evaluation mode.

    Of an encoder-decoder model, the encoder is returned. Weights are read from ``safetensors``
    only, as other weight files can hold code; without ``weights`` they are uninitialised, to be
    filled from a stored state. MissingFile if a file cannot be read.
    """
    import transformers

    auto: Any = transformers.AutoModel
    config = load_config(source)
    with silence_transformers(), describe_failure("weights", source):
        if weights:
            model = load_weights(auto, source, config=config, dtype=config.dtype)
        else:
            model = auto.from_config(config, trust_remote_code=False)
    return (model.get_encoder() if config.is_encoder_decoder else model).float().eval()


def load_token_classifier(source: Source, device: Device = "auto") -> Any:
    """Return a token classifier in evaluation mode on a device; as ``load_encoder``."""
    import transformers

    auto: Any = transformers.AutoModelForTokenClassification
    config = load_config(source)
    with silence_transformers(), describe_failure("weights", source):
        model = load_weights(auto, source, config=config, dtype=config.dtype)
    return model.to(resolve_device(device)).eval()


def load_config(source: Source) -> Any:
    """Return a configuration with weights in ``float32``.

    It names no file, which may be a pickle, and no kernel of attention, which may be downloaded or
    need a GPU: the kernels of ``torch`` compute the same.

    Raises:
        MissingFile: It cannot be read, is of a type that only code in the folder defines, or is
            that of quantised weights or of more layers than there are weights.
    """
    import torch
    import transformers

    _refuse_own_type(source)
    auto: Any = transformers.AutoConfig
    with silence_transformers(), describe_failure(CONFIG, source):
        config = auto.from_pretrained(source.folder, **_LOCAL)
    _refuse_quantised(config, source)
    _refuse_other_depth(config, source)
    for part in (config, *list_parts(config)):
        for name in _KERNELS:
            setattr(part, name, None)
    config.dtype = torch.float32
    config.transformers_weights = None
    return config


def list_parts(config: Any) -> list[Any]:
    """Return the configurations inside another one, as that of the text of a multimodal model."""
    import transformers

    parts: Any = vars(config).values()
    return [part for part in parts if isinstance(part, transformers.PreTrainedConfig)]


def _refuse_quantised(config: Any, source: Source) -> None:
    """Refuse weights that only a package for quantisation reads, for some GPUs."""
    if any(getattr(part, "quantization_config", None) for part in (config, *list_parts(config))):
        message = f"the weights in {source.folder} are quantised (quantization_config)"
        remedy = "name the model in full precision that it was made of, or its GGUF file"
        raise MissingFile(message, where="encoder", remedy=remedy)


def _refuse_other_depth(config: Any, source: Source) -> None:
    """Refuse more layers than there are weights: to build a million layers takes an hour."""
    from safetensors import safe_open

    paths = list(source.folder.glob("*.safetensors"))
    sizes = [getattr(part, "num_hidden_layers", 0) for part in (config, *list_parts(config))]
    with describe_failure("weights", source):
        n_layers = max((size for size in sizes if isinstance(size, int)), default=0)
        n_weights = 0
        for path in paths:
            with safe_open(path, framework="numpy") as file:
                n_weights += len(file.keys())
    if paths and n_layers > n_weights:
        message = (
            f"{CONFIG} in {source.folder} has {n_layers:,} layers, more than there are weights"
        )
        raise MissingFile(message, where="encoder", remedy=COMPLETE_MODEL)


def _refuse_own_type(source: Source) -> None:
    """Refuse a model that is defined by code in its folder, or on a hub."""
    import transformers

    types: Any = transformers.CONFIG_MAPPING
    try:
        config = json.loads((source.folder / CONFIG).read_text(encoding="utf-8"))
        kind, has_code = config.get("model_type"), "auto_map" in config
    except (OSError, ValueError, AttributeError, RecursionError):
        return  # the library says why
    if has_code and kind not in types:
        message = f"the model in {source.folder} ({kind}) is defined by code, which is not run"
        remedy = "name a model of a type that transformers has; or score the sentences elsewhere"
        raise MissingFile(message, where="encoder", remedy=remedy)


def load_weights(auto: Any, source: Source, **options: Any) -> Any:
    """Return a model with all its weights; missing ones would be initialised at random.

    Code in its folder is not run, which is a warning.
    """
    if "gguf_file" not in options and (code := list_code(source.folder)):
        warn(f"the folder of the model holds code ({', '.join(code)}), which is not run")
    options |= {"use_safetensors": True, "output_loading_info": True, **_LOCAL}
    model, info = auto.from_pretrained(source.folder, **options)
    refuse_missing_weights(source, info)
    return model


def refuse_missing_weights(source: Source, info: Mapping[str, Any]) -> None:
    """Raise MissingFile if a model was loaded without some of its weights."""
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        message = (
            f"the weights in {source.folder} belong to another model: no {', '.join(missing)}"
        )
        raise MissingFile(message, where="encoder", remedy=COMPLETE_MODEL)


def count_positions(network: Any, tokenizer: Any) -> int:
    """Return the number of tokens that a model can read.

    Encoders such as RoBERTa count positions from behind the padding index, so the first position
    embeddings are not available to tokens.
    """
    n_tokens = int(tokenizer.model_max_length)
    n_positions = getattr(network.config, "max_position_embeddings", None) or 0
    if n_positions <= 0:
        return n_tokens
    n_unavailable = 0
    for name, module in network.named_modules():
        padding_index = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding_index is not None:
            n_unavailable = max(n_unavailable, padding_index + 1)
    return min(n_tokens, n_positions - n_unavailable)


@contextmanager
def describe_failure(content: str, source: Source) -> Iterator[None]:
    """Turn an error of the libraries into one that names the model folder."""
    import torch

    try:
        yield
    except (UserError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # the libraries raise any error for files that they do not expect
        if is_shortage(error):
            raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        if "mismatched" in str(error):
            reason = f"they do not match {CONFIG}"
        message = f"the {content} in {source.folder} cannot be read: {reason}"
        remedy = "download or save the model again, or name another"
        raise MissingFile(message, where="encoder", remedy=remedy) from error


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Disable progress bars, and warnings about weights that are unused on purpose."""
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
