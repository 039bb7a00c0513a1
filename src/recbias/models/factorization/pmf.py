"""Probabilistic matrix factorization."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.models.factorization.factor_tables import (
    FactorLearner,
    FactorTables,
    TrainedFactorModel,
)
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import Device, Tensor, resolve_device
from recbias.models.training.rating_targets import (
    count_samples,
    create_coin_sampler,
    create_rating_sampler,
)


@dataclass(frozen=True, kw_only=True)
class PMF(TrainedFactorModel):
    """Factorize ratings as a sigmoid with Gaussian noise and Gaussian priors on the vectors.

        minimise  Σ_(u,i) (r_ui - σ(p_u · q_i))² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``r_ui`` is the rating, rescaled to 0 to 1. If all ratings are equal, r_ui is 1 for a training
    pair and 0 for each of its ``negatives`` unseen items, which are sampled anew each epoch.
    ``reg`` is the variance of the noise divided by that of the prior. The optimizer is Adam. A
    user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step, including the negatives.
        learning_rate: Learning rate.
        reg: Weight of the squared vectors, each counted once.
        negatives: Unseen items per training pair if all ratings are equal.
        variant: ``elliot`` ignores the ratings and ``reg``: it samples users uniformly, tosses a
            coin between a seen and an unseen item, and initializes vectors with std 0.01.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        Salakhutdinov and Mnih, "Probabilistic Matrix Factorization", NIPS 2007, equations 4 and 5.
    """

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 30
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.002
    reg: Annotated[float, Ge(0)] = 1.0
    negatives: Annotated[int, Gt(0)] = 4
    variant: Literal["paper", "elliot"] = "paper"
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the ratings, or on the training pairs and their negatives."""
        is_paper = self.variant == "paper"
        tables = FactorTables.initialize(
            data.train,
            self.embedding_size,
            device=resolve_device(self.device),
            rng=rng,
            std=0.1 if is_paper else 0.01,
        )
        if is_paper:
            sampler = create_rating_sampler(data.train, self.negatives, unit=True)
        else:
            sampler = create_coin_sampler(data.train)
        # the objective counts each vector once, a batch counts its share of them
        reg = (self.reg if is_paper else 0.0) / count_samples(data.train, self.negatives)
        loss = partial(_sum_sigmoid_errors, tables, reg)
        return self.train("PMF", FactorLearner(tables, sampler, loss), data, rng)


def _sum_sigmoid_errors(tables: FactorTables, reg: float, *pairs: Tensor) -> Tensor:
    """Return the squared errors of the pairs plus, for each pair, ``reg`` times all squares."""
    users, items, values = pairs
    scores, _ = tables.score_pairs(users, items)
    squares = sum(table.square().sum() for table in tables.parameters())
    return (values - scores.sigmoid()).square().sum() + reg * len(users) * squares
