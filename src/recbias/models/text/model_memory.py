"""The memory of language models, by their configuration and the headers of their weight files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recbias.core.errors import UserError
from recbias.language.model_folders import CONFIG, list_model_files

FLOAT = 4
"""Bytes of a number in single precision."""

CHARACTERS_PER_TOKEN = 4.0
"""The number of characters of a token of text, about."""

NAMES: Mapping[str, Sequence[str]] = {
    "width": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "inner": ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim"),
    "vocabulary": ("vocab_size",),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx"),
}
"""The names that configurations have for a size."""


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a transformer.

    Args:
        parameters: The number of its weights.
        width: The size of the state of a token.
        layers: The number of layers.
        heads: The number of heads of each attention.
        inner: The size of the inner layer of the feed-forward networks.
        vocabulary: The number of tokens that it knows.
        positions: The number of tokens that it reads at most; 0 if it does not say.
    """

    parameters: int
    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int

    @property
    def bytes(self) -> float:
        """The bytes of the weights in single precision."""
        return float(FLOAT * self.parameters)

    def limit_length(self, length: float) -> float:
        """Return the number of tokens of a text that are read."""
        return min(length, self.positions or length)

    def count_reading(self, tokens: float) -> float:
        """Return the bytes of a batch while a layer reads it, without gradients.

        These are the inner states before and after their activation and in the layout of the
        library of the products, and the states that they are computed from and added to.
        """
        return FLOAT * tokens * (3 * self.inner + 5 * self.width)

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
        name: A folder or an installed package.
    """
    try:
        files = list_model_files(name)
        config = next((path for path in files if path.name == CONFIG), None)
        weights = [path for path in files if path.suffix == ".safetensors"]
        if config is None or not weights:
            return None
        read = json.loads(config.read_text(encoding="utf-8"))
        sizes = {key: _find_size(read, names) for key, names in NAMES.items()}
        parameters = sum(map(_count_weights, weights))
    except (UserError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    sizes["inner"] = sizes["inner"] or 4 * sizes["width"]
    return ModelShape(parameters, **sizes)


def _find_size(config: Mapping[str, Any], names: Sequence[str]) -> int:
    """Return the first size of these names, also in the configuration of the text; else 0."""
    parts = (config, *(part for part in config.values() if isinstance(part, dict)))
    found = (part[name] for part in parts for name in names if isinstance(part.get(name), int))
    return int(next(found, 0))


def _count_weights(path: Path) -> int:
    """Return the number of weights by the header of a file."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(entry["shape"]) for key, entry in header.items() if key != "__metadata__")
