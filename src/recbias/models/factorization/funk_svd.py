"""Matrix factorisations made for ratings, by squared error: MF and FunkSVD."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.models.factorization.factor_tables import FactorLearner, FactorTables, SteppingLearner
from recbias.models.factorization.sgd_kernels import squared
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import Device, OnDevice, Tensor, device_of, drawn_glorot
from recbias.models.training.loop import train
from recbias.models.training.rating_targets import Draw, drawn_coins, drawn_pairs, mean_value
from recbias.models.training.schedule import Schedule

Variant: TypeAlias = Literal["paper", "elliot"]

FACTORS = frozenset[Output]({"lists", "embeddings"})


@dataclass(frozen=True, kw_only=True)
class MF(OnDevice):
    """Factorise ratings, or choices, by regularised squared error, without biases.

        minimise  Σ_(u,i) ((r_ui - p_u · q_i)² + reg (|p_u|² + |q_i|²)) / 2

    ``r_ui`` is the rating. Where all ratings are equal it is 1 for a training pair and 0 for each
    of ``negatives`` items a pair that the user does not have, drawn anew each epoch. On a CPU a
    step is one pair, as in the paper, in compiled loops; on a GPU it is the sum over a batch. A
    user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Passes over the training pairs, at most.
        batch_size: Pairs in a step on a GPU, drawn ones among them.
        learning_rate: Length of a step.
        reg: Weight of the squared vectors of a pair.
        negatives: Items drawn for each training pair where all ratings are equal.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Koren, Bell and Volinsky, "Matrix Factorization Techniques for Recommender Systems",
        Computer 42(8), 2009, equation 2.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "numba")

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 80
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.01
    negatives: Annotated[int, Gt(0)] = 4
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the ratings, or from the training pairs and drawn ones."""
        device = device_of(self.device)
        tables = FactorTables.drawn(data.train, self.embedding_size, device=device, rng=rng)
        learner = _learner(tables, drawn_pairs(data.train, self.negatives), self.reg)
        return train(learner, Schedule.of(self, "MF", "sgd"), data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)


@dataclass(frozen=True, kw_only=True)
class FunkSVD(OnDevice):
    """Factorise ratings, or choices, by regularised squared error, with biases.

        minimise  Σ_(u,i) ((r_ui - s_ui)² + reg (|p_u|² + |q_i|² + b_u² + b_i²)) / 2
        s_ui = mean + b_u + b_i + p_u · q_i

    ``r_ui`` is the rating, ``mean`` that of all of them. Where all ratings are equal r_ui is 1 for
    a training pair and 0 for each of ``negatives`` items a pair that the user does not have, drawn
    anew each epoch. All factors learn at once; ``lenskit/FunkSVD`` learns one after another. On a
    CPU a step is one pair, as in the paper, in compiled loops; on a GPU it is the sum over a
    batch. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Passes over the training pairs, at most.
        batch_size: Pairs in a step on a GPU, drawn ones among them.
        learning_rate: Length of a step.
        reg: Weight of the squared vectors and biases of a pair.
        negatives: Items drawn for each training pair where all ratings are equal.
        variant: ``elliot`` never looks at the ratings and has no mean and no ``reg``; it draws
            users alike and tosses a coin whether an item is the user's, its factors and biases
            start uniform, by Glorot's limits, and its steps are Adam's, by batches.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Funk, "Netflix Update: Try This at Home", 2006; Paterek, "Improving Regularized Singular
        Value Decomposition for Collaborative Filtering", KDD Cup 2007, section 3.3.
    """

    provides: ClassVar[frozenset[Output]] = FACTORS
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "numba")

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 80
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.015
    reg: Annotated[float, Ge(0)] = 0.015
    negatives: Annotated[int, Gt(0)] = 4
    variant: Variant = "paper"
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the ratings, or from the training pairs and drawn ones."""
        tables = self._tables(data, rng)
        if self.variant == "elliot":
            loss = partial(_squared_error, tables, 0.0)
            learner = FactorLearner(tables, drawn_coins(data.train), loss)
            return train(learner, Schedule.of(self, "FunkSVD"), data, rng)
        draw, mean = (
            drawn_pairs(data.train, self.negatives),
            mean_value(data.train, self.negatives),
        )
        own = _learner(tables, draw, self.reg, mean)
        return train(own, Schedule.of(self, "FunkSVD", "sgd"), data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)

    def _tables(self, data: TrainingData, rng: np.random.Generator) -> FactorTables:
        device, sides = device_of(self.device), (data.train.n_users, data.train.n_items)
        if self.variant == "elliot":
            widths = (self.embedding_size, 1)
            shapes = [(rows, width) for width in widths for rows in sides]
            return FactorTables(*(drawn_glorot(shape, device, rng) for shape in shapes))
        return FactorTables.drawn(
            data.train, self.embedding_size, device=device, rng=rng
        ).with_biases()


def _learner(tables: FactorTables, draw: Draw, reg: float, mean: float = 0.0) -> SteppingLearner:
    return SteppingLearner(
        tables,
        draw,
        lambda *pairs: _squared_error(tables, reg, *pairs, mean=mean) / 2,
        partial(_step, tables, reg, mean),
        squared,
        (reg, mean),
    )


def _step(tables: FactorTables, reg: float, mean: float, rate: float, *pairs: Tensor) -> Tensor:
    """Step down half the gradient of the squared error: that by the score is ``s + mean - r``."""
    import torch

    users, items, values = pairs
    with torch.no_grad():
        scores, squares = tables.scored(users, items)
        errors = (values - mean - scores)[:, None]
        looked_up: list[tuple[Tensor, Tensor, Tensor]] = [
            (tables.users, users, tables.items.index_select(0, items)),
            (tables.items, items, tables.users.index_select(0, users)),
        ]
        if tables.user_bias is not None:
            one = torch.ones_like(errors)
            looked_up += [(tables.user_bias, users, one), (tables.item_bias, items, one)]
        for table, codes, other in looked_up:
            move = rate * (errors * other - reg * table.index_select(0, codes))
            table.index_add_(0, codes, move)
    return (errors.square().sum() + reg * squares) / 2


def _squared_error(tables: FactorTables, reg: float, *pairs: Tensor, mean: float = 0.0) -> Tensor:
    """Return the sum over pairs of the squared error and ``reg`` times the pair's squares."""
    users, items, values = pairs
    scores, squares = tables.scored(users, items)
    return (values - mean - scores).square().sum() + reg * squares
