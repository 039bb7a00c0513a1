"""PMF: the factorization of ratings by a sigmoid with Gaussian priors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.models.factorization.factor_tables import FactorTables, RatingModel, RowLearner
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.ranking.tensors import Tensor, place_like
from recbias.models.training.row_adam import look_up
from recbias.models.training.samplers import (
    create_coin_sampler,
    create_rating_sampler,
    is_implicit,
)


@dataclass(frozen=True, kw_only=True)
class PMF(RatingModel):
    """Factorize ratings as a sigmoid with Gaussian noise and Gaussian priors on the vectors.

        minimise  Σ_(u,i) (r_ui - σ(p_u · q_i))² + reg (Σ_u |p_u|² + Σ_i |q_i|²)

    ``r_ui`` is the rating, rescaled to 0 to 1. If all ratings are equal, r_ui is 1 for a training
    pair and 0 for each of its ``negatives`` unseen items, which are sampled anew each epoch.
    ``reg`` is the variance of the noise divided by that of the prior. The optimizer is Adam. A
    batch has the penalty of a vector times the share of the vector's pairs that are in the batch,
    so that its gradient is that of the objective on average. A vector without pairs is 0, which
    minimises its penalty. A user without training items has an empty list.

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

    libraries: ClassVar[tuple[str, ...]] = ("torch", "numba")

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
        if self.variant == "elliot":
            tables = self.create_tables(data, rng, std=0.01)
            loss = partial(_sum_unpenalized_errors, tables)
            learner = RowLearner(tables, create_coin_sampler(data.train), loss)
            return self.train("PMF", learner, data, rng)
        tables, counts = self.create_tables(data, rng), count_pairs(data.train, self.negatives)
        loss = partial(_sum_penalized_errors, tables, weigh_penalties(tables, counts, self.reg))
        sampler = create_rating_sampler(data.train, self.negatives, unit=True)
        return self.train("PMF", RowLearner(tables, sampler, loss), data, rng)


def count_pairs(train: Interactions, negatives: int) -> tuple[AnyArray, AnyArray]:
    """Return how many pairs of an epoch each user and item has, on average if they are sampled.

    They are those of ``create_rating_sampler``: the rows or, if all ratings are equal, the
    distinct pairs and their ``negatives`` unseen items, without users who have every item.
    """
    if not is_implicit(train):
        return (
            np.bincount(train.users, minlength=train.n_users),
            np.bincount(train.items, minlength=train.n_items),
        )
    matrix = train.binary
    n_seen = np.diff(matrix.indptr)
    n_unseen = train.n_items - n_seen
    n_seen = np.where(n_unseen > 0, n_seen, 0)
    per_item = negatives * n_seen / np.maximum(n_unseen, 1)  # of each unseen item of a user
    positives, missing = matrix.T @ (n_unseen > 0).astype(np.float64), matrix.T @ per_item
    # the difference of an item that every user has is 0, up to rounding
    sampled = np.where(positives < (n_unseen > 0).sum(), per_item.sum() - missing, 0.0)
    return (1 + negatives) * n_seen, positives + sampled


def weigh_penalties(
    tables: FactorTables, counts: tuple[AnyArray, AnyArray], reg: float
) -> tuple[Tensor, Tensor]:
    """Return the weights of the squared vector of each user and item in one of its pairs.

    Those of the pairs of an epoch, whose numbers are the ``counts``, add up to ``reg`` for each
    vector. Vectors without pairs are set to 0.
    """
    import torch

    weights = []
    for table, n_pairs in zip((tables.users, tables.items), counts, strict=True):
        has_pairs = n_pairs > 0
        with torch.no_grad():
            table[place_like(~has_pairs, table)] = 0
        shares = np.divide(reg, n_pairs, out=np.zeros(n_pairs.size), where=has_pairs)
        weights.append(place_like(shares.astype(np.float32), table))
    return weights[0], weights[1]


def _sum_unpenalized_errors(tables: FactorTables, *pairs: Tensor) -> Tensor:
    users, items, values = pairs
    scores, _ = tables.score_pairs(users, items)
    return (values - scores.sigmoid()).square().sum()


def _sum_penalized_errors(
    tables: FactorTables, penalties: tuple[Tensor, Tensor], *pairs: Tensor
) -> Tensor:
    users, items, values = pairs
    p, q = look_up(tables.users, users), look_up(tables.items, items)
    of_users, of_items = (
        weights.index_select(0, codes)
        for weights, codes in zip(penalties, (users, items), strict=True)
    )
    penalty = p.square().sum(1) @ of_users + q.square().sum(1) @ of_items
    return (values - (p * q).sum(1).sigmoid()).square().sum() + penalty
