"""Matrix factorizations of ratings: MF and FunkSVD."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.models.factorization.factor_tables import (
    FactorTables,
    RatingModel,
    RowLearner,
    SGDLearner,
)
from recbias.models.factorization.sgd_kernels import step_squared
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.ranking.tensors import Tensor, initialize_glorot
from recbias.models.training.samplers import (
    EpochSampler,
    compute_mean_target,
    create_coin_sampler,
    create_rating_sampler,
)
from recbias.numerics.devices import resolve_device


@dataclass(frozen=True, kw_only=True)
class MF(RatingModel):
    """Factorize ratings by regularized squared error, without biases.

        minimise  Σ_(u,i) ((r_ui - p_u · q_i)² + reg (|p_u|² + |q_i|²)) / 2

    ``r_ui`` is the rating. If all ratings are equal, r_ui is 1 for a training pair and 0 for each
    of its ``negatives`` unseen items, which are sampled anew each epoch. On a CPU, compiled loops
    make one SGD step per pair, as in the paper; on a GPU a step is the sum over a batch. A user
    without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step on a GPU, including the negatives.
        learning_rate: Learning rate.
        reg: Weight of the squared vectors of a pair.
        negatives: Unseen items per training pair if all ratings are equal.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        Koren, Bell and Volinsky, "Matrix Factorization Techniques for Recommender Systems",
        Computer 42(8), 2009, equation 2.
    """

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
        """Train on the ratings, or on the training pairs and their negatives."""
        sampler = create_rating_sampler(data.train, self.negatives)
        learner = _create_learner(self.create_tables(data, rng), sampler, self.reg)
        return self.train("MF", learner, data, rng, "sgd")


@dataclass(frozen=True, kw_only=True)
class FunkSVD(RatingModel):
    """Factorize ratings by regularized squared error, with biases.

        minimise  Σ_(u,i) ((r_ui - s_ui)² + reg (|p_u|² + |q_i|² + b_u² + b_i²)) / 2
        s_ui = mean + b_u + b_i + p_u · q_i

    ``r_ui`` is the rating and ``mean`` the mean of all ratings. If all ratings are equal, r_ui is
    1 for a training pair and 0 for each of its ``negatives`` unseen items, which are sampled anew
    each epoch. All factors are trained jointly; ``lenskit/FunkSVD`` trains one after another. On a
    CPU, compiled loops make one SGD step per pair, as in the paper; on a GPU a step is the sum
    over a batch. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step on a GPU, including the negatives.
        learning_rate: Learning rate.
        reg: Weight of the squared vectors and biases of a pair.
        negatives: Unseen items per training pair if all ratings are equal.
        variant: ``elliot`` ignores the ratings and has no mean and no ``reg``: it samples users
            uniformly, tosses a coin between a seen and an unseen item, initializes vectors and
            biases by Glorot's uniform distribution, and trains by Adam on batches.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        Funk, "Netflix Update: Try This at Home", 2006; Paterek, "Improving Regularized Singular
        Value Decomposition for Collaborative Filtering", KDD Cup 2007, section 3.3.
    """

    libraries: ClassVar[tuple[str, ...]] = ("torch", "numba")

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 80
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.015
    reg: Annotated[float, Ge(0)] = 0.015
    negatives: Annotated[int, Gt(0)] = 4
    variant: Literal["paper", "elliot"] = "paper"
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the ratings, or on the training pairs and their negatives."""
        if self.variant == "elliot":
            device, sides = resolve_device(self.device), (data.train.n_users, data.train.n_items)
            shapes = [(n_rows, width) for width in (self.embedding_size, 1) for n_rows in sides]
            tables = FactorTables(*(initialize_glorot(shape, device, rng) for shape in shapes))
            loss = partial(_sum_squared_errors, tables, 0.0)
            learner = RowLearner(tables, create_coin_sampler(data.train), loss)
            return self.train("FunkSVD", learner, data, rng)
        tables = self.create_tables(data, rng).add_biases()
        sampler = create_rating_sampler(data.train, self.negatives)
        mean = compute_mean_target(data.train, self.negatives)
        sgd_learner = _create_learner(tables, sampler, self.reg, mean)
        return self.train("FunkSVD", sgd_learner, data, rng, "sgd")


def _create_learner(
    tables: FactorTables, sampler: EpochSampler, reg: float, mean: float = 0.0
) -> SGDLearner:
    return SGDLearner(
        tables,
        sampler,
        lambda *pairs: _sum_squared_errors(tables, reg, *pairs, mean=mean) / 2,
        partial(_step, tables, reg, mean),
        step_squared,
        (reg, mean),
    )


def _step(tables: FactorTables, reg: float, mean: float, rate: float, *pairs: Tensor) -> Tensor:
    """Make an SGD step; half the squared error has the gradient ``s + mean - r`` by the score."""
    import torch

    users, items, values = pairs
    with torch.no_grad():
        scores, squares = tables.score_pairs(users, items)
        errors = (values - mean - scores)[:, None]
        lookups: list[tuple[Tensor, Tensor, Tensor]] = [
            (tables.users, users, tables.items.index_select(0, items)),
            (tables.items, items, tables.users.index_select(0, users)),
        ]
        if tables.user_bias is not None:
            ones = torch.ones_like(errors)
            lookups += [(tables.user_bias, users, ones), (tables.item_bias, items, ones)]
        for table, codes, derivative in lookups:
            move = rate * (errors * derivative - reg * table.index_select(0, codes))
            table.index_add_(0, codes, move)
    return (errors.square().sum() + reg * squares) / 2


def _sum_squared_errors(
    tables: FactorTables, reg: float, *pairs: Tensor, mean: float = 0.0
) -> Tensor:
    users, items, values = pairs
    scores, squares = tables.score_pairs(users, items)
    return (values - mean - scores).square().sum() + reg * squares
