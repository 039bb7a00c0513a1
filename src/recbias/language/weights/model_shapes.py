"""The memory of language models, by their configuration and the headers of their weight files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import Any

from recbias.core.errors import UserError
from recbias.language.causal_model_files import GGUF, list_causal_model_files
from recbias.language.model_folders import CONFIG, WEIGHTS
from recbias.language.scoring.target_probabilities import ROWS
from recbias.language.weights.gguf_header import read_header

FLOAT = 4
"""Bytes of a number in single precision."""

HALF = 2
"""Bytes of a number of 16 bits."""

CONVERSION = 1.5
"""The share of the largest matrix that exists beside it while it is converted."""

COPIES = 4
"""The arrays of each weight in training: itself, its gradient, and the two means of AdamW."""

CHARACTERS_PER_TOKEN = 4.0
"""The number of characters of a token of text, about."""

LARGEST = 2**53
"""The largest number of weights of a model; a file that states more is damaged."""

DAMAGE = (
    *(UserError, OSError, ValueError, KeyError, TypeError, AttributeError),
    *(OverflowError, RecursionError),
)
"""What reading the files of a model raises that are missing, damaged or of another kind."""

NAMES: Mapping[str, Sequence[str]] = {
    "width": ("hidden_size", "n_embd", "d_model", "dim", "embedding_length"),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "block_count"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads", "attention.head_count"),
    "key_heads": ("num_key_value_heads", "attention.head_count_kv"),
    "inner": (
        *("intermediate_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim", "encoder_ffn_dim"),
        "feed_forward_length",
    ),
    "vocabulary": ("vocab_size", "tokenizer.ggml.tokens"),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx", "context_length"),
}
"""The names that configurations, and the headers of GGUF files, have for a size."""


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a transformer.

    Args:
        parameters: The number of its weights.
        width: The size of the state of a token.
        layers: The number of layers.
        heads: The number of heads of each attention.
        key_heads: Those of them that have keys and values of their own.
        inner: The size of the inner layer of the feed-forward networks.
        vocabulary: The number of tokens that it knows.
        positions: The number of tokens that it reads at most; 0 if it does not say.
        is_masked: Whether its head predicts masked tokens.
        is_quantised: Whether its file has numbers of fewer bits, which are converted.
        number: The bytes of a number.
    """

    parameters: int
    width: int
    layers: int
    heads: int
    key_heads: int
    inner: int
    vocabulary: int
    positions: int
    is_masked: bool = False
    is_quantised: bool = False
    number: int = FLOAT

    @property
    def bytes(self) -> float:
        """The bytes of the weights in memory."""
        return float(self.number * self.parameters)

    @property
    def loading(self) -> float:
        """The bytes of loading the weights: a quantised matrix is converted beside the others."""
        largest = FLOAT * self.vocabulary * self.width
        return self.bytes + self.is_quantised * CONVERSION * largest

    @property
    def trained(self) -> float:
        """The bytes of the weights with their gradients and moments."""
        return COPIES * self.bytes

    def convert(self, precision: str) -> ModelShape:
        """Return the shape with numbers of 16 bits if that is the precision."""
        return replace(self, number=HALF) if precision == "bfloat16" else self

    def limit_length(self, length: float) -> float:
        """Return the number of tokens of a text that are read."""
        return min(length, self.positions or length)

    def count_reading(self, tokens: float) -> float:
        """Return the bytes of a batch while a layer reads it, without gradients.

        These are the inner states before and after their activation and in the layout of the
        library of the products, and the states that they are computed from and added to.
        """
        return self.number * tokens * (3 * self.inner + 5 * self.width)

    def count_scoring(self, tokens: float, predicted: float | None = None) -> float:
        """Return the bytes of a batch that is read, and of whose tokens some are predicted.

        A predicted token has a logit for each token of the vocabulary, which are normalised in
        blocks; they are computed when the states of the layers are freed. By default all are
        predicted.
        """
        rows = tokens if predicted is None else predicted
        logits = self.number * rows + FLOAT * min(rows, ROWS)
        return max(self.count_reading(tokens), self.vocabulary * logits)

    def count_cache(self, tokens: float) -> float:
        """Return the bytes of the keys and values of tokens in all layers."""
        share = self.key_heads / max(self.heads, 1)
        return self.number * tokens * 2 * self.layers * self.width * share

    def count_training(self, tokens: float, length: float) -> float:
        """Return the bytes of what a batch keeps for its gradients, with dropout.

        Each layer keeps its input, the queries, keys and values, the sums and their norms, and the
        inner states; each head keeps, for each pair of tokens, the attention before and after
        dropout, and which were dropped. One layer has its gradients beside it.

        Args:
            tokens: The number of tokens of the batch, padding included.
            length: The number of tokens of its texts.
        """
        states = 8.5 * self.width + 2 * self.inner
        attention = self.heads * length * 13 / FLOAT
        return FLOAT * tokens * (self.layers + 1) * (states + attention)


def read_shape(name: str) -> ModelShape | None:
    """Return the shape of a language model; None if it is not on this machine, or says too little.

    Args:
        name: A folder, a GGUF file or an installed package that has either.
    """
    try:
        files = list_causal_model_files(name)
        config, parameters = _read_files(files)
        sizes = {key: _find_size(config, names) for key, names in NAMES.items()}
        is_masked = _is_masked(config)
        _refuse_absurd(parameters, sizes.values())
    except DAMAGE:
        return None
    sizes["inner"] = sizes["inner"] or 4 * sizes["width"]
    sizes["key_heads"] = sizes["key_heads"] or sizes["heads"]
    is_quantised = files[0].suffix.lower() == GGUF
    return ModelShape(parameters, **sizes, is_masked=is_masked, is_quantised=is_quantised)


def _read_files(files: Sequence[Path]) -> tuple[Mapping[str, Any], int]:
    """Return the settings of a model and the number of its weights.

    Raises:
        ValueError: A file is missing or damaged.
        OSError: A file cannot be read.
    """
    if len(files) == 1 and files[0].suffix.lower() == GGUF:
        return read_header(files[0])
    config = next((path for path in files if path.name == CONFIG), None)
    weights = [path for path in files if path.suffix == ".safetensors"]
    weights = [path for path in weights if path.name == WEIGHTS] or weights
    if config is None or not weights:
        raise ValueError("there is no configuration, or there are no weights")
    return json.loads(config.read_text(encoding="utf-8")), sum(map(_count_weights, weights))


def _find_size(config: Mapping[str, Any], names: Sequence[str]) -> int:
    """Return the first size of these names, also in the configuration of the text; else 0."""
    parts = (config, *(part for part in config.values() if isinstance(part, dict)))
    sizes = (part.get(name) for part in parts for name in names)
    return int(next((size for size in sizes if isinstance(size, int) and size > 0), 0))


def _refuse_absurd(parameters: int, sizes: Iterable[int]) -> None:
    """Raise ValueError for a number of weights, or a size, that no model has."""
    if not 0 < parameters <= LARGEST or max(sizes) > LARGEST:
        raise ValueError("a size of the model is absurd")


def _is_masked(config: Mapping[str, Any]) -> bool:
    """Return whether the weights were saved with a head for other tokens than the next one."""
    names = config.get("architectures") or ()
    follows = any(str(name).endswith(("ForCausalLM", "LMHeadModel")) for name in names)
    return bool(names) and not follows and not config.get("is_encoder_decoder")


def _count_weights(path: Path) -> int:
    """Return the number of weights by the header of a file.

    Raises:
        ValueError: It is no such file, or it is cut or damaged.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > path.stat().st_size:  # a page of a web site, or a pointer of Git LFS
            raise ValueError(f"{path} has no header")
        header = json.loads(file.read(length))
    shapes = [entry["shape"] for key, entry in header.items() if key != "__metadata__"]
    return sum(math.prod(map(index, shape)) for shape in shapes)
