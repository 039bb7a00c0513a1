"""Matrix factorizations that rank positive above sampled items: BPR-MF and MF2020."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.models.factorization.factor_tables import (
    FactorTables,
    SGDLearner,
    TrainedFactorModel,
    TripleRows,
    sum_squares,
)
from recbias.models.factorization.sgd_kernels import step_bpr, step_logistic
from recbias.models.factorization.user_blocks import create_triple_sampler
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.ranking.tensors import Tensor
from recbias.models.training.samplers import Sampler


@dataclass(frozen=True, kw_only=True)
class BPRMF(TrainedFactorModel):
    """Factorize so that each user's items score higher than items that the user does not have.

        minimise  Σ_(u,i,j) -ln σ(s_ui - s_uj) + (reg_user |p_u|² + reg_positive |q_i|²
                  + reg_negative |q_j|² + reg_bias (b_i² + b_j²)) / 2
        s_ui = p_u · q_i + b_i

    An epoch samples as many triples as there are training pairs: a training pair (u, i) uniformly
    and an item j that u does not have, uniformly or by ``popularity``. On a CPU, compiled loops
    make one SGD step per triple, as in the paper; on a GPU a step is the sum over a batch, which
    is about the same if batches are much smaller than the catalogue. On a CPU, from 16,384 users
    on and with ``popularity`` 0, the triples of an epoch are in an order in which vectors stay in
    the cache: in blocks of about 2,048 random users, new ones in each epoch, and in random order
    within a block. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of epochs, each with as many triples as training pairs.
        batch_size: Triples per step on a GPU.
        learning_rate: Learning rate.
        reg_user: Weight of the squared user vectors.
        reg_positive: Weight of the squared vectors of positive items.
        reg_negative: Weight of the squared vectors of negative items.
        reg_bias: Weight of the squared item biases.
        popularity: The probability of an item as a negative is proportional to its number of
            training rows to this power; 0 for a uniform distribution.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        Rendle, Freudenthaler, Gantner and Schmidt-Thieme, "BPR: Bayesian Personalized Ranking from
        Implicit Feedback", UAI 2009, sections 4.2 and 4.3.1.
    """

    libraries: ClassVar[tuple[str, ...]] = ("torch", "numba")

    embedding_size: Annotated[int, Gt(0)] = 64
    epochs: Annotated[int, Gt(0)] = 100
    batch_size: Annotated[int, Gt(0)] = 1024
    learning_rate: Annotated[float, Gt(0)] = 0.05
    reg_user: Annotated[float, Ge(0)] = 0.01
    reg_positive: Annotated[float, Ge(0)] = 0.01
    reg_negative: Annotated[float, Ge(0)] = 0.01
    reg_bias: Annotated[float, Ge(0)] = 0.0
    popularity: Annotated[float, Ge(0)] = 0.0
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on triples of a user, a positive and a negative item."""
        sampler = Sampler.from_interactions(data.train, popularity=self.popularity)
        tables = self.create_tables(data, rng).add_biases(users=False)
        learner = SGDLearner(
            tables,
            create_triple_sampler(sampler, in_blocks=tables.users.device.type == "cpu"),
            partial(self._sum_losses, tables),
            partial(self._step, tables),
            step_bpr,
            (self.reg_user, self.reg_positive, self.reg_negative, self.reg_bias),
        )
        return self.train("BPR-MF", learner, data, rng, "sgd")

    def _sum_losses(self, tables: FactorTables, *triples: Tensor) -> Tensor:
        return self._compute_margins(tables.look_up_triples(*triples))[1]

    def _compute_margins(self, rows: TripleRows) -> tuple[Tensor, Tensor]:
        """Return ``s_ui - s_uj``, ``(b, 1)``, and the sum of the losses."""
        from torch.nn.functional import logsigmoid

        margins = (rows.users * (rows.positives - rows.negatives)).sum(1, keepdim=True)
        margins = margins + rows.positive_bias - rows.negative_bias
        penalty = (
            self.reg_user * sum_squares(rows.users)
            + self.reg_positive * sum_squares(rows.positives)
            + self.reg_negative * sum_squares(rows.negatives)
            + self.reg_bias * (sum_squares(rows.positive_bias) + sum_squares(rows.negative_bias))
        )
        return margins, penalty / 2 - logsigmoid(margins).sum()

    def _step(self, tables: FactorTables, rate: float, *triples: Tensor) -> Tensor:
        """Make an SGD step; the gradient of ``-ln σ(x)`` is ``-σ(-x)``."""
        import torch

        users, positives, negatives = triples
        with torch.no_grad():
            rows = tables.look_up_triples(*triples)
            margins, loss = self._compute_margins(rows)
            pull = rate * torch.sigmoid(-margins)
            user_pull, item_pull = pull * (rows.positives - rows.negatives), pull * rows.users
            for table, codes, move, row, reg in (
                (tables.users, users, user_pull, rows.users, self.reg_user),
                (tables.items, positives, item_pull, rows.positives, self.reg_positive),
                (tables.items, negatives, -item_pull, rows.negatives, self.reg_negative),
                (tables.item_bias, positives, pull, rows.positive_bias, self.reg_bias),
                (tables.item_bias, negatives, -pull, rows.negative_bias, self.reg_bias),
            ):
                table.index_add_(0, codes, torch.add(move, row, alpha=-rate * reg))
        return loss


MAX_OFFSET_RATE = 4.0
"""The curvature of the cross-entropy of n pairs is at most n / 4, so that a learning rate of the
offset above 4 / n overshoots."""


@dataclass(frozen=True, kw_only=True)
class MF2020(TrainedFactorModel):
    """Factorize by logistic loss on training pairs and sampled negatives (Rendle et al. 2020).

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y)
                  + reg (b² + b_u² + b_i² + |p_u|² + |q_i|²) / 2
        s_ui = b + b_u + b_i + p_u · q_i

    An epoch has every training pair with y = 1 in random order, each followed by ``negatives``
    pairs with y = 0, whose items are sampled uniformly from all items, including the user's own.
    On a CPU, compiled loops make one SGD step per pair, as in the paper. On a GPU a step is the
    sum over a batch, which is about the same if batches are much smaller than the numbers of users
    and items; the step of b, which is in every pair of a batch, is limited by the curvature. A
    user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step on a GPU, including the negatives.
        learning_rate: Learning rate.
        reg: Weight of the squared vectors and biases of a pair.
        negatives: Negatives per training pair.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        Rendle, Krichene, Zhang and Anderson, "Neural Collaborative Filtering vs. Matrix
        Factorization Revisited", RecSys 2020, section 3.
    """

    libraries: ClassVar[tuple[str, ...]] = ("torch", "numba")

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 80
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.01
    negatives: Annotated[int, Gt(0)] = 8
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the training pairs and their negatives."""
        sampler = Sampler.from_interactions(data.train)
        tables = self.create_tables(data, rng).add_biases(offset=True)
        learner = SGDLearner(
            tables,
            lambda rng: sampler.sample_with_negatives(self.negatives, rng),
            partial(self._sum_losses, tables),
            partial(self._step, tables),
            step_logistic,
            (self.reg,),
        )
        return self.train("MF2020", learner, data, rng, "sgd")

    def _sum_losses(
        self, tables: FactorTables, users: Tensor, items: Tensor, labels: Tensor
    ) -> Tensor:
        from torch.nn.functional import binary_cross_entropy_with_logits

        scores, squares = tables.score_pairs(users, items)
        entropy = binary_cross_entropy_with_logits(scores, labels, reduction="sum")
        return entropy + self.reg / 2 * squares

    def _step(
        self, tables: FactorTables, rate: float, users: Tensor, items: Tensor, labels: Tensor
    ) -> Tensor:
        """Make an SGD step; the gradient of the cross-entropy by the score is ``σ(s) - y``."""
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits

        lookups = (
            (tables.users, users),
            (tables.items, items),
            (tables.user_bias, users),
            (tables.item_bias, items),
        )
        with torch.no_grad():
            rows = p, q, user_bias, item_bias = [
                table.index_select(0, codes) for table, codes in lookups
            ]
            scores = (p * q).sum(1, keepdim=True) + user_bias + item_bias + tables.offset
            squares = sum(map(sum_squares, rows)) + len(users) * sum_squares(tables.offset)
            entropy = binary_cross_entropy_with_logits(scores[:, 0], labels, reduction="sum")
            pull = rate * (labels[:, None] - scores.sigmoid())
            shrinkage = -rate * self.reg
            moves = (pull * q, pull * p, pull, pull)
            for (table, codes), row, move in zip(lookups, rows, moves, strict=True):
                table.index_add_(0, codes, torch.add(move, row, alpha=shrinkage))
            damping = min(1.0, MAX_OFFSET_RATE / (rate * len(users)))
            tables.offset.add_(damping * (pull.sum() + shrinkage * len(users) * tables.offset))
        return entropy + self.reg / 2 * squares
