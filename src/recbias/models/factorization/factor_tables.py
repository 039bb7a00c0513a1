"""Embedding tables in training, of the models whose scores are dot products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import State
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.ranking.tensors import (
    Tensor,
    copy_to_array,
    create_parameter,
    initialize_normal,
)
from recbias.models.training.loop import TrainedModel
from recbias.models.training.row_adam import look_up
from recbias.models.training.samplers import EpochSampler
from recbias.numerics.compiled.loops import compile_loop
from recbias.numerics.devices import resolve_device


class TripleRows(NamedTuple):
    """The rows of the tables for a batch of triples."""

    users: Tensor
    positives: Tensor
    negatives: Tensor
    positive_bias: Tensor
    negative_bias: Tensor


@dataclass(frozen=True, eq=False)
class FactorTables:
    """The vectors and biases of ``score(u, i) = b + b_u + b_i + p_u · q_i``.

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
    def initialize(
        cls,
        train: Interactions,
        embedding_size: int,
        *,
        device: Any,
        rng: np.random.Generator,
        std: float = 0.1,
    ) -> FactorTables:
        """Return vectors sampled from Normal(0, std²) for all users and items, without biases."""
        users, items = (
            initialize_normal((n_rows, embedding_size), std, device, rng)
            for n_rows in (train.n_users, train.n_items)
        )
        return cls(users, items)

    def add_biases(self, *, offset: bool = False, users: bool = True) -> FactorTables:
        """Return the same vectors with zero item biases, and optionally user biases and offset."""
        device = self.items.device
        return replace(
            self,
            user_bias=create_parameter(np.zeros((len(self.users), 1)), device) if users else None,
            item_bias=create_parameter(np.zeros((len(self.items), 1)), device),
            offset=create_parameter(np.zeros(1), device) if offset else None,
        )

    def parameters(self) -> Sequence[Tensor]:
        """Return the tables that are not None."""
        return [table for table in self._tables() if table is not None]

    def arrays(self) -> tuple[AnyArray, ...]:
        """Return the five tables as arrays that share the memory; empty for None. CPU only."""
        shapes: tuple[Any, ...] = ((0, 1), (0, 1), (0, 1), (0, 1), 0)
        return tuple(
            np.empty(shape, dtype=np.float32) if table is None else table.detach().numpy()
            for table, shape in zip(self._tables(), shapes, strict=True)
        )

    def score_pairs(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of pairs, ``(b,)``, and the sum of their squared parameters."""
        p, q = look_up(self.users, users), look_up(self.items, items)
        scores, squares = (p * q).sum(1), sum_squares(p) + sum_squares(q)
        for codes, bias in ((users, self.user_bias), (items, self.item_bias)):
            if bias is not None:
                values = look_up(bias, codes).squeeze(1)
                scores, squares = scores + values, squares + sum_squares(values)
        if self.offset is not None:
            scores = scores + self.offset
            squares = squares + len(users) * self.offset.square().sum()
        return scores, squares

    def look_up_triples(self, users: Tensor, positives: Tensor, negatives: Tensor) -> TripleRows:
        """Return the rows for a batch of triples (user, positive item, negative item)."""
        return TripleRows(
            look_up(self.users, users),
            look_up(self.items, positives),
            look_up(self.items, negatives),
            look_up(self.item_bias, positives),
            look_up(self.item_bias, negatives),
        )

    def export(self) -> FittedFactors:
        """Return the vectors and item biases; the other biases do not affect the ranking."""
        bias = None if self.item_bias is None else copy_to_array(self.item_bias).ravel()
        users, items = copy_to_array(self.users), copy_to_array(self.items)
        return FittedFactors(users, items, bias, self.users.device.type)

    def _tables(self) -> tuple[Tensor, ...]:
        return self.users, self.items, self.user_bias, self.item_bias, self.offset


class TrainedFactorModel(TrainedModel):
    """Base class of the matrix factorizations."""

    embedding_size: int

    def create_tables(
        self, data: TrainingData, rng: np.random.Generator, std: float = 0.1
    ) -> FactorTables:
        """Return tables on the model's device, without biases."""
        device, size = resolve_device(self.device), self.embedding_size
        return FactorTables.initialize(data.train, size, device=device, rng=rng, std=std)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state, self.device)


class RatingModel(TrainedFactorModel):
    """Base class of the models of ratings."""


def sum_squares(x: Tensor) -> Tensor:
    """Return the sum of the squares of all entries, in one pass."""
    flat = x.flatten()
    return flat.dot(flat)


@dataclass(frozen=True, eq=False)
class FactorLearner:
    """Embedding tables in training: a ``training.loop.Learner``."""

    tables: FactorTables  # The parameters
    sampler: EpochSampler  # Samples an epoch
    # Takes a batch of samples as tensors; returns the sum of its losses
    batch_loss: Callable[..., Tensor]

    def parameters(self) -> Sequence[Tensor]:
        """Return the tables."""
        return self.tables.parameters()

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch."""
        return self.sampler(rng)

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of a batch."""
        return self.batch_loss(*batch)

    def export(self) -> FittedFactors:
        """Return the fitted vectors."""
        return self.tables.export()


@dataclass(frozen=True, eq=False)
class RowLearner(FactorLearner):
    """Embedding tables whose losses depend on the rows of the batch only."""

    def row_tables(self) -> Sequence[Tensor]:
        """Return the tables, which are read by ``FactorTables.score_pairs`` only."""
        return self.tables.parameters()


@dataclass(frozen=True, eq=False)
class SGDLearner(FactorLearner):
    """Embedding tables with closed-form SGD steps: on single samples on a CPU, else on batches.

    A step changes only the rows of the batch.

    Args:
        tables: The parameters.
        sampler: Samples an epoch.
        batch_loss: As for ``FactorLearner``; the steps follow its gradient.
        batch_step: Takes the learning rate and a batch; updates the tables, returns the loss.
        kernel: One of ``sgd_kernels``.
        settings: The settings of the kernel after the learning rate.
    """

    batch_step: Callable[..., Tensor]
    kernel: Callable[..., float]
    settings: tuple[float, ...]

    def step(self, learning_rate: float, *batch: Tensor) -> Tensor:
        """Update the tables by a batch; return the sum of its losses."""
        return self.batch_step(learning_rate, *batch)

    def step_by_samples(self, learning_rate: float, *samples: AnyArray) -> float:
        """Update the tables by each sample in turn; return the sum of the losses."""
        with np.errstate(over="ignore"):
            settings = tuple(np.array([learning_rate, *self.settings], dtype=np.float32))
        total: float = compile_loop(self.kernel)(samples, self.tables.arrays(), settings)
        return total
