"""The memory that the widths of a model need, checked before the model is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from recbias.core.machine.memory import require_memory

BYTES = 4
"""A weight in single precision."""

COPIES = 4
"""A weight that is trained by torch: itself, its gradient and the two moments of Adam."""


def check_widths(plugin: Any, n_items: int) -> None:
    """Refuse a model whose weights cannot fit into memory.

    The estimate is a lower bound: one table of the items, and one matrix for each layer.

    Raises:
        TooLittleMemory: The location is the setting that is large.
    """
    copies = COPIES if "torch" in getattr(plugin, "libraries", ()) else 1
    for setting, n_weights in _count_weights(plugin, n_items):
        require_memory(
            BYTES * copies * n_weights,
            f"the {n_weights:,} weights of this size",
            where=setting,
            remedy=f"lower {setting}",
        )


def _count_weights(plugin: Any, n_items: int) -> Iterator[tuple[str, int]]:
    """Yield the settings of widths with the number of weights that they need at least."""
    width = _get_number(plugin, "embedding_size")
    for setting in ("embedding_size", "factors", "hidden_size"):
        yield setting, _get_number(plugin, setting) * n_items
    hidden = getattr(plugin, "hidden_sizes", None)
    if isinstance(hidden, tuple):
        yield "hidden_sizes", sum(math.prod(pair) for pair in pairwise((max(width, 1), *hidden)))
    words = _get_number(plugin, "word_size")
    yield "word_size", words
    yield "filters", words * _get_number(plugin, "filters")
    if hasattr(plugin, "max_length") and hasattr(plugin, "layers"):  # a model of sequences
        yield "max_length", width * _get_number(plugin, "max_length")
        yield "layers", width**2 * _get_number(plugin, "layers")


def _get_number(plugin: Any, setting: str) -> int:
    value = getattr(plugin, setting, None)
    return value if isinstance(value, int) else 0
