"""The vectors, weights and layers of a DeepFM under training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.protocols import State
from recbias.models.neural.feature_fields import Fields
from recbias.models.neural.pair_network import onward
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

ROWS_AT_ONCE = 65536
"""Users or items whose vectors are worked out together for a fitted model."""


@dataclass(frozen=True, eq=False)
class Half:
    """What users, or items, bring into the scores of their pairs.

    Args:
        vectors: Sum of the vectors of the fields, ``(b, d)``.
        bias: Sum of the weights, and of the products of all two of these fields, ``(b,)``.
        hidden: Their part of the first deep layer's output, ``(b, h)``.
        squares: Sum of the squares of the vectors, ``(b,)``.
    """

    vectors: Tensor
    bias: Tensor
    hidden: Tensor
    squares: Tensor

    def at(self, places: Tensor) -> Half:
        """Return the rows at some places."""
        every = (self.vectors, self.bias, self.hidden, self.squares)
        return Half(*(each.index_select(0, places) for each in every))


@dataclass(frozen=True, eq=False)
class Side:
    """What is learned of users, or of items, with their fields.

    Args:
        vectors: ``v``, ``(n_values, d)``.
        weights: ``w``, ``(n_values, 1)``.
        values: Place of the value of each row's slots, ``(n, n_slots)``.
        shares: What the value of a slot counts, ``(n, n_slots, 1)``.
        widths: How many slots each field has.
    """

    vectors: Tensor
    weights: Tensor
    values: Tensor
    shares: Tensor
    widths: tuple[int, ...]

    @classmethod
    def drawn(cls, fields: Fields, embedding_size: int, device: Any, rng: Any) -> Side:
        """Return first values: vectors of Glorot's, weights of 0."""
        import torch

        return cls(
            initialize_glorot((fields.n_values, embedding_size), device, rng),
            create_parameter(np.zeros((fields.n_values, 1)), device),
            torch.from_numpy(fields.values).to(device),
            torch.from_numpy(fields.shares[..., None]).to(device),
            fields.widths,
        )

    def half(self, rows: Tensor, weight: Tensor) -> Half:
        """Return what some rows bring, each worked out once however often it is there.

        Args:
            rows: User or item codes, ``(b,)``.
            weight: The rows of the first deep layer's matrix that take these fields,
                ``(n_fields d, h)``.
        """
        import torch

        distinct, places = torch.unique(rows, return_inverse=True)
        return self.worked_out(distinct, weight).at(places)

    def worked_out(self, rows: Tensor, weight: Tensor) -> Half:
        """Return the same of rows that are there once."""
        from torch.nn.functional import embedding

        values, shares = self.values[rows], self.shares[rows]
        weights = (embedding(values, self.weights) * shares).sum((1, 2))
        vectors = self._pooled(embedding(values, self.vectors) * shares)
        total, squares = vectors.sum(1), vectors.square().sum((1, 2))
        among = (total.square().sum(1) - squares) / 2
        return Half(total, weights + among, vectors.flatten(1) @ weight, squares)

    def _pooled(self, slots: Tensor) -> Tensor:
        """Return the sum over the slots of each field, ``(b, n_fields, d)``."""
        import torch

        if max(self.widths) == 1:
            return slots
        return torch.stack([each.sum(1) for each in slots.split(self.widths, 1)], 1)


@dataclass(frozen=True, eq=False)
class Parts:
    """What the score of a pair is the sum of.

    Args:
        linear: Offset, weights, and the products of fields of one side, ``(b,)``.
        products: The products of a field of the user and one of the item, ``(b,)``.
        deep: The deep output, ``(b,)``.
        squares: Sum of the squares of the vectors of the pair, ``(b,)``.
    """

    linear: Tensor
    products: Tensor
    deep: Tensor
    squares: Tensor

    @property
    def logits(self) -> Tensor:
        """The scores."""
        return self.linear + self.products + self.deep


@dataclass(frozen=True, eq=False)
class DeepFMTensors:
    """What DeepFM learns.

    Args:
        users: The users' side.
        items: The items' side.
        offset: ``b``, ``(1,)``.
        layers: The deep ones; the last has one output.
    """

    users: Side
    items: Side
    offset: Tensor
    layers: Sequence[Dense]

    @classmethod
    def drawn(
        cls,
        fields: tuple[Fields, Fields],
        sizes: tuple[int, ...],
        *,
        device: Any,
        rng: np.random.Generator,
    ) -> DeepFMTensors:
        """Return first values.

        Args:
            fields: Of the users and of the items.
            sizes: Length of the vectors, then sizes of the hidden layers.
            device: Where they live.
            rng: The generator.
        """
        d, *hidden = sizes
        users, items = [Side.drawn(each, d, device, rng) for each in fields]
        n_fields = sum(len(each.widths) for each in fields)
        layers = initialize_layers([n_fields * d, *hidden, 1], device, rng)
        return cls(users, items, create_parameter(np.zeros(1), device), layers)

    def parameters(self) -> Sequence[Tensor]:
        """Return all tensors that are learned."""
        sides = [
            table for each in (self.users, self.items) for table in (each.vectors, each.weights)
        ]
        return [*sides, self.offset, *collect_parameters(self.layers)]

    def parts(
        self, users: Tensor, items: Tensor, dropout: float = 0.0, noise: Any = None
    ) -> Parts:
        """Return what the scores of pairs are made of."""
        of_users, of_items = self._first_weights()
        user, item = self.users.half(users, of_users), self.items.half(items, of_items)
        hidden = user.hidden + item.hidden + self.layers[0].bias
        return Parts(
            self.offset + user.bias + item.bias,
            (user.vectors * item.vectors).sum(1),
            onward(self.layers[1:], hidden, dropout, noise)[:, 0],
            user.squares + item.squares,
        )

    def state(self) -> State:
        """Return the arrays of a ``FittedPairNetwork``: scores but for a sum of the user's own."""
        of_users, of_items = self._first_weights()
        users, items = _everybody(self.users, of_users), _everybody(self.items, of_items)
        return {
            "user_factors": copy_to_array(users.vectors),
            "item_factors": copy_to_array(items.vectors),
            "item_bias": copy_to_array(items.bias),
            "user_hidden": copy_to_array(users.hidden),
            "item_hidden": copy_to_array(items.hidden + self.layers[0].bias),
            **store_layers("deep", self.layers[1:]),
        }

    def _first_weights(self) -> tuple[Tensor, Tensor]:
        """Return the rows of the first layer's matrix that take the users' and items' fields."""
        n_inputs = len(self.users.widths) * self.users.vectors.shape[1]
        weight = self.layers[0].weight
        return weight[:n_inputs], weight[n_inputs:]


def _everybody(side: Side, weight: Tensor) -> Half:
    import torch

    with torch.no_grad():
        rows = torch.arange(len(side.values), device=side.values.device)
        halves = [side.worked_out(each, weight) for each in torch.split(rows, ROWS_AT_ONCE)]
        tables = [(each.vectors, each.bias, each.hidden, each.squares) for each in halves]
        return Half(*(torch.cat(each) for each in zip(*tables, strict=True)))
