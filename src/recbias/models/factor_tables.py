"""User and item vectors under training, of the models whose scores are products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.factors import FittedFactors
from recbias.models.torch_fit import Tensor, array_of


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

    def parameters(self) -> Sequence[Tensor]:
        """Return the tables that there are."""
        every = (self.users, self.items, self.user_bias, self.item_bias, self.offset)
        return [each for each in every if each is not None]

    def fitted(self) -> FittedFactors:
        """Return the vectors; what is the same for all items of a user orders nothing."""
        bias = None if self.item_bias is None else array_of(self.item_bias).ravel()
        return FittedFactors(array_of(self.users), array_of(self.items), bias)


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
