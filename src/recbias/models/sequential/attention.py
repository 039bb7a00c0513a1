"""Self-attention and its layers on named tensors, for SASRec and BERT4Rec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import Contradiction
from recbias.models.ranking.tensors import Tensor
from recbias.models.training.layers import apply_dropout

Parameters: TypeAlias = Mapping[str, Any]
"""The tensors of a network by name."""

Dropout: TypeAlias = Callable[[Tensor], Tensor]
"""Sets random entries to 0 and scales the others."""

HIDDEN_SCORE = -1e9  # The attention score of a position that is not read
TABLES = frozenset({"items.weight", "positions", "special"})
"""The parameters that hold a vector for each item or position."""

INITIAL_STD = 0.02  # Standard deviation of their initial values


def sample_weights(shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator) -> Parameters:
    """Return initial arrays by name.

    A ``.scale`` is 1 and a ``.bias`` is 0. The weights of dense layers are Glorot-uniform, and
    vectors (``TABLES``) are sampled from Normal(0, 0.02²).
    """
    arrays: dict[str, AnyArray] = {}
    for name, shape in shapes.items():
        if name.endswith((".scale", ".bias")):
            arrays[name] = np.full(shape, float(name.endswith(".scale")), dtype=np.float32)
        elif name in TABLES:
            noise = rng.standard_normal(shape, dtype=np.float32)
            arrays[name] = noise * np.float32(INITIAL_STD)
        else:
            limit = np.float32(np.sqrt(6 / sum(shape)))
            arrays[name] = (2 * rng.random(shape, dtype=np.float32) - 1) * limit
    return arrays


def list_dense(name: str, n_in: int, n_out: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a dense layer by name."""
    return {f"{name}.weight": (n_in, n_out), f"{name}.bias": (n_out,)}


def list_norm(name: str, size: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer normalization by name."""
    return {f"{name}.scale": (size,), f"{name}.bias": (size,)}


def apply_dense(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    """Return ``x W + b``."""
    return x @ parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def apply_norm(parameters: Parameters, name: str, x: Tensor) -> Tensor:
    """Return ``x``, normalized over its last axis, times a scale plus a bias."""
    from torch.nn.functional import layer_norm

    scale, bias = parameters[f"{name}.scale"], parameters[f"{name}.bias"]
    return layer_norm(x, scale.shape, scale, bias, 1e-8)


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor, heads: int, drop: Dropout
) -> Tensor:
    """Return scaled dot-product attention, ``(b, n, d)``.

    Args:
        queries: ``(b, n, d)``; ``heads`` heads share d equally. ``keys`` and ``values`` likewise.
        keys: The keys.
        values: The values.
        visible: Whether position i (row) reads position j (column), ``bool (b, n, n)``. A position
            that reads nothing has the value 0.
        heads: Number of heads.
        drop: Applies dropout to the attention weights.
    """
    b, n, d = queries.shape
    q, k, v = (x.view(b, n, heads, d // heads).transpose(1, 2) for x in (queries, keys, values))
    scores = q @ k.transpose(2, 3) / (d // heads) ** 0.5
    weights = scores.masked_fill(~visible[:, None], HIDDEN_SCORE).softmax(-1)
    weights = drop(weights * visible.any(2)[:, None, :, None])
    return (weights @ v).transpose(1, 2).reshape(b, n, d)


def create_dropout(rate: float, generator: Any) -> Dropout:
    """Return dropout whose masks a ``torch.Generator`` samples; none if that is None."""
    return partial(apply_dropout, rate=0.0 if generator is None else rate, generator=generator)


def see_items(is_item: Tensor, *, causal: bool) -> Tensor:
    """Return which positions each position reads, ``bool (b, n, n)``: items, not padding.

    Args:
        is_item: Whether each position holds an item, ``bool (b, n)``.
        causal: Whether a position reads only itself and those before it.
    """
    n = is_item.shape[1]
    visible = is_item[:, None].expand(-1, n, n)
    return visible.tril() if causal else visible


def refuse_uneven_heads(embedding_size: int, heads: int) -> None:
    """Raise Contradiction if attention heads cannot share the vectors equally."""
    if embedding_size % heads:
        message = f"{heads} heads cannot share vectors of {embedding_size} numbers equally"
        remedy = f"set embedding_size to a multiple of {heads}"
        raise Contradiction(message, where="heads", remedy=remedy)
