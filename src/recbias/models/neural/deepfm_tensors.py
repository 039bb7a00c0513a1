"""The vectors, weights and layers of DeepFM in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recbias.core.protocols import State
from recbias.models.neural.inputs import Fields
from recbias.models.neural.pair_network import apply_layers
from recbias.models.ranking.tensors import (
    Tensor,
    copy_to_array,
    create_parameter,
    initialize_glorot,
)
from recbias.models.training.layers import (
    Dense,
    collect_parameters,
    initialize_layers,
    store_layers,
)

ROW_BLOCK = 65536  # Number of users or items that are exported together


class _SideTerms(NamedTuple):
    """The terms of users, or of items, in the scores of their pairs."""

    vectors: Tensor  # Sum of the vectors of the fields, ``(b, d)``
    bias: Tensor  # Sum of the weights and of the products of all pairs of these fields, ``(b,)``
    hidden: Tensor  # Their share of the first deep layer's output, ``(b, h)``
    squares: Tensor  # Sum of the squares of the vectors, ``(b,)``

    def take(self, rows: Tensor) -> _SideTerms:
        return _SideTerms(*(tensor.index_select(0, rows) for tensor in self))


@dataclass(frozen=True, eq=False)
class _Side:
    """The parameters of users, or of items, with their fields."""

    vectors: Tensor  # ``v``, ``(n_values, d)``
    weights: Tensor  # ``w``, ``(n_values, 1)``
    values: Tensor  # Index of the value of each slot, ``(n, n_slots)``
    shares: Tensor  # Weight of the value of each slot, ``(n, n_slots, 1)``
    widths: tuple[int, ...]  # Number of slots of each field

    @classmethod
    def initialize(cls, fields: Fields, embedding_size: int, device: Any, rng: Any) -> _Side:
        import torch

        return cls(
            initialize_glorot((fields.n_values, embedding_size), device, rng),
            create_parameter(np.zeros((fields.n_values, 1)), device),
            torch.from_numpy(fields.values).to(device),
            torch.from_numpy(fields.shares[..., None]).to(device),
            fields.widths,
        )

    def compute_terms(self, rows: Tensor, weight: Tensor) -> _SideTerms:
        """Return the terms of rows; on a CPU repeated rows are computed once.

        ``weight`` has the first deep layer's rows for these fields, ``(n_fields d, h)``.
        """
        import torch

        if rows.device.type == "cuda":  # which would wait for the number of distinct rows
            return self._compute_distinct(rows, weight)
        distinct, inverse = torch.unique(rows, return_inverse=True)
        return self._compute_distinct(distinct, weight).take(inverse)

    def compute_all_terms(self, weight: Tensor) -> _SideTerms:
        """Return the terms of all rows, without gradients."""
        import torch

        with torch.no_grad():
            rows = torch.arange(len(self.values), device=self.values.device)
            blocks = [
                self._compute_distinct(block, weight) for block in torch.split(rows, ROW_BLOCK)
            ]
            return _SideTerms(*(torch.cat(tensors) for tensors in zip(*blocks, strict=True)))

    def _compute_distinct(self, rows: Tensor, weight: Tensor) -> _SideTerms:
        from torch.nn.functional import embedding

        values, shares = self.values[rows], self.shares[rows]
        weights = (embedding(values, self.weights) * shares).sum((1, 2))
        vectors = self._pool(embedding(values, self.vectors) * shares)
        total, squares = vectors.sum(1), vectors.square().sum((1, 2))
        interactions = (total.square().sum(1) - squares) / 2
        return _SideTerms(total, weights + interactions, vectors.flatten(1) @ weight, squares)

    def _pool(self, slots: Tensor) -> Tensor:
        """Return the sum over the slots of each field, ``(b, n_fields, d)``."""
        import torch

        if max(self.widths) == 1:
            return slots
        return torch.stack([field.sum(1) for field in slots.split(self.widths, 1)], 1)


@dataclass(frozen=True, eq=False)
class _ScoreTerms:
    """The terms of the scores of pairs."""

    linear: Tensor  # Offset, weights, and products of two fields of the same side, ``(b,)``
    products: Tensor  # Products of a field of the user and a field of the item, ``(b,)``
    deep: Tensor  # The deep output, ``(b,)``
    squares: Tensor  # Sum of the squares of the vectors of the pair, ``(b,)``

    @property
    def logits(self) -> Tensor:
        """The scores."""
        return self.linear + self.products + self.deep


@dataclass(frozen=True, eq=False)
class DeepFMTensors:
    """The parameters of DeepFM.

    Args:
        users: The parameters of the users.
        items: The parameters of the items.
        offset: ``b``, ``(1,)``.
        layers: The deep layers; the last has one output.
    """

    users: _Side
    items: _Side
    offset: Tensor
    layers: Sequence[Dense]

    @classmethod
    def initialize(
        cls,
        fields: tuple[Fields, Fields],
        sizes: tuple[int, ...],
        *,
        device: Any,
        rng: np.random.Generator,
    ) -> DeepFMTensors:
        """Return initial parameters for the fields of the users and of the items.

        ``sizes`` are the size of the vectors, then the sizes of the hidden layers.
        """
        d, *hidden = sizes
        users, items = [_Side.initialize(side, d, device, rng) for side in fields]
        n_fields = sum(len(side.widths) for side in fields)
        layers = initialize_layers([n_fields * d, *hidden, 1], device, rng)
        return cls(users, items, create_parameter(np.zeros(1), device), layers)

    def parameters(self) -> Sequence[Tensor]:
        """Return all trainable tensors."""
        tables = [
            table for side in (self.users, self.items) for table in (side.vectors, side.weights)
        ]
        return [*tables, self.offset, *collect_parameters(self.layers)]

    def compute_terms(
        self, users: Tensor, items: Tensor, dropout: float = 0.0, noise: Any = None
    ) -> _ScoreTerms:
        """Return the terms of the scores of pairs."""
        user_weight, item_weight = self._split_first_layer()
        user = self.users.compute_terms(users, user_weight)
        item = self.items.compute_terms(items, item_weight)
        hidden = user.hidden + item.hidden + self.layers[0].bias
        return _ScoreTerms(
            self.offset + user.bias + item.bias,
            (user.vectors * item.vectors).sum(1),
            apply_layers(self.layers[1:], hidden, dropout, noise)[:, 0],
            user.squares + item.squares,
        )

    def state(self) -> State:
        """Return the state of a ``FittedPairNetwork``, without the terms of the user alone."""
        user_weight, item_weight = self._split_first_layer()
        users = self.users.compute_all_terms(user_weight)
        items = self.items.compute_all_terms(item_weight)
        return {
            "user_factors": copy_to_array(users.vectors),
            "item_factors": copy_to_array(items.vectors),
            "item_bias": copy_to_array(items.bias),
            "user_hidden": copy_to_array(users.hidden),
            "item_hidden": copy_to_array(items.hidden + self.layers[0].bias),
            **store_layers("deep", self.layers[1:]),
        }

    def _split_first_layer(self) -> tuple[Tensor, Tensor]:
        """Return the rows of the first layer's matrix for the users' and the items' fields."""
        n_inputs = len(self.users.widths) * self.users.vectors.shape[1]
        weight = self.layers[0].weight
        return weight[:n_inputs], weight[n_inputs:]
