"""Matrix factorisation by logistic loss with drawn negatives, as Rendle et al. revisited it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.models.factorization.factor_tables import FactorTables, SteppingLearner, square_sum
from recbias.models.factorization.sgd_kernels import logistic
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import Device, OnDevice, Tensor, device_of
from recbias.models.training.loop import train
from recbias.models.training.samplers import Sampler
from recbias.models.training.schedule import Schedule

STEADY = 4.0
"""Of n pairs the cross-entropy curves by n / 4 at most: longer steps of b than 4 / n overshoot."""


@dataclass(frozen=True, kw_only=True)
class MF2020(OnDevice):
    """Factorise so that training pairs are told from drawn ones (Rendle et al. 2020).

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y)
                  + reg (b² + b_u² + b_i² + |p_u|² + |q_i|²) / 2
        s_ui = b + b_u + b_i + p_u · q_i

    An epoch is every training pair with y = 1 and, for each, ``negatives`` items with y = 0, drawn
    from all items alike, the user's own among them; pairs come in random order, each before its
    drawn ones. On a CPU a step is one pair, as in the paper, in compiled loops. On a GPU it is the
    sum over a batch, which for batches much smaller than users and items comes to about the same;
    b is in every pair of a batch and moves by at most what the curvature allows, so that it
    settles. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Passes over the training pairs, at most.
        batch_size: Pairs in a step on a GPU, drawn ones among them.
        learning_rate: Length of a step.
        reg: Weight of the squared vectors and biases of a pair.
        negatives: Items drawn for each training pair.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Rendle, Krichene, Zhang and Anderson, "Neural Collaborative Filtering vs. Matrix
        Factorization Revisited", RecSys 2020, section 3.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
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
        """Learn from the training pairs."""
        schedule = Schedule.of(self, "MF2020", "sgd")
        sampler, device = Sampler.of(data.train), device_of(self.device)
        tables = FactorTables.drawn(data.train, self.embedding_size, device=device, rng=rng)
        tables = tables.with_biases(offset=True)
        learner = SteppingLearner(
            tables,
            lambda draws: sampler.with_negatives(self.negatives, draws),
            partial(self._loss, tables),
            partial(self._step, tables),
            logistic,
            (self.reg,),
        )
        return train(learner, schedule, data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)

    def _loss(self, tables: FactorTables, users: Tensor, items: Tensor, labels: Tensor) -> Tensor:
        from torch.nn.functional import binary_cross_entropy_with_logits

        scores, squares = tables.scored(users, items)
        wrong = binary_cross_entropy_with_logits(scores, labels, reduction="sum")
        return wrong + self.reg / 2 * squares

    def _step(
        self, tables: FactorTables, rate: float, users: Tensor, items: Tensor, labels: Tensor
    ) -> Tensor:
        """Step down the gradient: that of the cross-entropy by the score is ``σ(s) - y``."""
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits

        looked_up = (
            (tables.users, users),
            (tables.items, items),
            (tables.user_bias, users),
            (tables.item_bias, items),
        )
        with torch.no_grad():
            rows = p, q, of_user, of_item = [
                table.index_select(0, codes) for table, codes in looked_up
            ]
            scores = (p * q).sum(1, keepdim=True) + of_user + of_item + tables.offset
            squares = sum(map(square_sum, rows)) + len(users) * square_sum(tables.offset)
            wrong = binary_cross_entropy_with_logits(scores[:, 0], labels, reduction="sum")
            pull = rate * (labels[:, None] - scores.sigmoid())
            shrink = -rate * self.reg
            moves = (pull * q, pull * p, pull, pull)
            for (table, codes), row, move in zip(looked_up, rows, moves, strict=True):
                table.index_add_(0, codes, torch.add(move, row, alpha=shrink))
            calm = min(1.0, STEADY / (rate * len(users)))
            tables.offset.add_(calm * (pull.sum() + shrink * len(users) * tables.offset))
        return wrong + self.reg / 2 * squares
