"""User and item vectors under training, of the models whose scores are products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import Tensor, array_of, drawn_normal, parameter
from recbias.models.training.compiled import compiled


@dataclass(frozen=True, eq=False)
class FactorTables:
    """The vectors and biases that ``score(u, i) = b + b_u + b_i + p_u · q_i`` is made of.

    Args:
        users: ``p``, ``float32 (n_users, d)``.
        items: ``q``, ``float32 (n_items, d)``.
        user_bias: ``b_u``, ``float32 (n_users, 1)``, or None for 0.
        item_bias: ``b_i``, ``float32 (n_items, 1)``, or None for 0.
        offset: ``b``, ``float32 (1,)``, or None for 0.
    """

    users: Tensor
    items: Tensor
    user_bias: Tensor = None
    item_bias: Tensor = None
    offset: Tensor = None

    @classmethod
    def drawn(
        cls,
        train: Interactions,
        embedding_size: int,
        *,
        device: Any,
        rng: np.random.Generator,
        spread: float = 0.1,
    ) -> FactorTables:
        """Return vectors of Normal(0, spread²) for all users and items, without biases."""
        users, items = (
            drawn_normal((rows, embedding_size), spread, device, rng)
            for rows in (train.n_users, train.n_items)
        )
        return cls(users, items)

    def with_biases(self, *, offset: bool = False, users: bool = True) -> FactorTables:
        """Return the same vectors and item biases of 0, the others where they are asked for."""
        device = self.items.device
        return replace(
            self,
            user_bias=parameter(np.zeros((len(self.users), 1)), device) if users else None,
            item_bias=parameter(np.zeros((len(self.items), 1)), device),
            offset=parameter(np.zeros(1), device) if offset else None,
        )

    def parameters(self) -> Sequence[Tensor]:
        """Return the tables that there are."""
        every = (self.users, self.items, self.user_bias, self.item_bias, self.offset)
        return [each for each in every if each is not None]

    def arrays(self) -> tuple[AnyArray, ...]:
        """Return all five as arrays of the same memory, on a CPU; empty where there is none."""
        every = (self.users, self.items, self.user_bias, self.item_bias, self.offset)
        none = [np.empty(shape, dtype=np.float32) for shape in ((0, 1), (0, 1), (0, 1), (0, 1), 0)]
        return tuple(
            absent if each is None else each.detach().numpy()
            for each, absent in zip(every, none, strict=True)
        )

    def scored(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of pairs, and the sum of all squares that they are made of.

        Args:
            users: User codes, ``(b,)``.
            items: Item codes, ``(b,)``.
        """
        p, q = self.users.index_select(0, users), self.items.index_select(0, items)
        scores, squares = (p * q).sum(1), square_sum(p) + square_sum(q)
        for codes, bias in ((users, self.user_bias), (items, self.item_bias)):
            if bias is not None:
                values = bias.index_select(0, codes).squeeze(1)
                scores, squares = scores + values, squares + square_sum(values)
        if self.offset is not None:
            scores, squares = (
                scores + self.offset,
                squares + len(users) * self.offset.square().sum(),
            )
        return scores, squares

    def fitted(self) -> FittedFactors:
        """Return the vectors; what is the same for all items of a user orders nothing."""
        bias = None if self.item_bias is None else array_of(self.item_bias).ravel()
        device = self.users.device.type
        return FittedFactors(array_of(self.users), array_of(self.items), bias, device)


def square_sum(x: Tensor) -> Tensor:
    """Return the sum of the squares of all entries, in one pass."""
    flat = x.flatten()
    return flat.dot(flat)


@dataclass(frozen=True, eq=False)
class FactorLearner:
    """Tables that learn from drawn samples: a ``torch_fit.Learner``.

    Args:
        tables: What is learned.
        draw: Draws an epoch.
        batch_loss: Takes a part of what was drawn, as tensors; returns the sum of its losses.
    """

    tables: FactorTables
    draw: Callable[[np.random.Generator], Sequence[AnyArray]]
    batch_loss: Callable[..., Tensor]

    def parameters(self) -> Sequence[Tensor]:
        """Return the tables."""
        return self.tables.parameters()

    def epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch."""
        return self.draw(rng)

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of some samples."""
        return self.batch_loss(*batch)

    def fitted(self) -> FittedFactors:
        """Return the vectors."""
        return self.tables.fitted()


@dataclass(frozen=True, eq=False)
class SteppingLearner(FactorLearner):
    """Tables whose steps of SGD are known in closed form: single samples on a CPU, else batches.

    Only the rows that are looked up are touched.

    Args:
        tables: What is learned.
        draw: Draws an epoch.
        batch_loss: As for ``FactorLearner``; what steps go down the gradient of.
        batch_step: Takes the learning rate and a batch; moves the tables, returns the loss.
        sample_steps: One of ``single_steps``.
        settings: What that takes after the learning rate.
    """

    batch_step: Callable[..., Tensor]
    sample_steps: Callable[..., float]
    settings: tuple[float, ...]

    def step(self, learning_rate: float, *batch: Tensor) -> Tensor:
        """Move the tables by a batch; return the sum of its losses."""
        return self.batch_step(learning_rate, *batch)

    def single_steps(self, learning_rate: float, *samples: AnyArray) -> float:
        """Move the tables by each sample in turn; return the sum of the losses."""
        with np.errstate(over="ignore"):
            settings = tuple(np.array([learning_rate, *self.settings], dtype=np.float32))
        total: float = compiled(self.sample_steps)(samples, self.tables.arrays(), settings)
        return total
