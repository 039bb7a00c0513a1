"""Models that plainly need more memory than this process may use are refused before training."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from recbias.config.plugin_spec import PluginSpec, Range
from recbias.config.settings import read_settings
from recbias.core.dataset.interactions import Interactions
from recbias.core.errors import TooLittleMemory
from recbias.core.machine.memory import require_memory
from recbias.core.protocols import get_least_memory

BYTES = 4
"""A weight in single precision."""

COPIES = 4
"""A weight that is trained by torch: itself, its gradient and the two moments of Adam."""


def check_memory(model: PluginSpec, interactions: Interactions) -> None:
    """Refuse a model, or a value of its search, that cannot fit into memory with some data.

    Raises:
        TooLittleMemory: The location is the setting that is large, if one is.
    """
    n_users, n_items, n_rows = interactions.n_users, interactions.n_items, len(interactions)
    require_memory(
        get_least_memory(model.plugin, n_users, n_items),
        f"the matrices of {model.name} for {n_items:,} items",
        where="",
        remedy="filter more (k_core, sample_users), or choose another model",
    )
    check_widths(model.plugin, n_items, n_rows)
    if model.tune:
        _check_searched_widths(model, n_items, n_rows)


def check_widths(plugin: Any, n_items: int, n_rows: int = 0) -> None:
    """Refuse a model whose weights, or the vectors of a batch, cannot fit into memory.

    The estimate is a lower bound: one table of the items, one matrix for each layer, and one
    vector for each of the ``n_rows`` interactions that are in a batch.

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
    width = max(_get_number(plugin, setting) for setting in ("embedding_size", "hidden_size"))
    batch = min(_get_number(plugin, "batch_size"), n_rows)
    require_memory(
        BYTES * width * batch,
        f"the {width:,} values of each of the {batch:,} interactions of a batch",
        where="batch_size",
        remedy="lower batch_size",
    )


def _check_searched_widths(model: PluginSpec, n_items: int, n_rows: int) -> None:
    """Refuse a search whose largest values, which a trial may combine, cannot fit into memory.

    The location is the setting in the search space.
    """
    cls: type = type(model.plugin)
    settings, largest = read_settings(cls), copy.copy(model.plugin)
    searched = {}
    for dimension in model.tune.space if model.tune else ():
        values = (dimension.high,) if isinstance(dimension, Range) else dimension.parsed_values
        if dimension.parameter in settings and all(isinstance(value, int) for value in values):
            searched[dimension.parameter] = max(values)
            name = settings[dimension.parameter].field.name
            object.__setattr__(largest, name, max(values))
    try:
        check_widths(largest, n_items, n_rows)
    except TooLittleMemory as error:
        names = [error.where] if error.where in searched else [*searched]
        message = ", ".join(f"{name} {searched[name]}" for name in searched)
        raise TooLittleMemory(
            f"the largest values ({message}): {error.message}",
            where=f"tune.space.{names[0]}",
            remedy=f"search lower values of {' or '.join(names)}",
        ) from error


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
