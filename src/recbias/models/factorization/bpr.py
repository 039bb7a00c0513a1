"""Matrix factorisation that learns from pairs of items: one the user has, one it has not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.models.factorization.factor_tables import FactorTables, SteppingLearner, square_sum
from recbias.models.factorization.sgd_kernels import pairwise
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import Device, OnDevice, Tensor, device_of
from recbias.models.training.loop import train
from recbias.models.training.samplers import Sampler
from recbias.models.training.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class BPRMF(OnDevice):
    """Factorise so that each user's items score above items that the user does not have.

        minimise  Σ_(u,i,j) -ln σ(s_ui - s_uj) + (reg_user |p_u|² + reg_positive |q_i|²
                  + reg_negative |q_j|² + reg_bias (b_i² + b_j²)) / 2
        s_ui = p_u · q_i + b_i

    An epoch draws as many triples as there are training pairs: a pair (u, i), all alike, and an
    item j that u does not have, all alike unless ``popularity`` is set. On a CPU a step is one
    triple, as in the paper, in compiled loops; on a GPU it is the sum over a batch, which for
    batches much smaller than the catalogue comes to about the same. A user without training items
    has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: As many triples as training pairs, this many times at most.
        batch_size: Triples in a step on a GPU.
        learning_rate: Length of a step.
        reg_user: Weight of the squared user vectors.
        reg_positive: Weight of the squared vectors of items that the user has.
        reg_negative: Weight of the squared vectors of drawn items.
        reg_bias: Weight of the squared item biases.
        popularity: Power of an item's number of training rows that its chance to be drawn is in
            proportion to; 0 draws all alike.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Rendle, Freudenthaler, Gantner and Schmidt-Thieme, "BPR: Bayesian Personalized Ranking from
        Implicit Feedback", UAI 2009, sections 4.2 and 4.3.1.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
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
        """Learn from the training pairs."""
        schedule = Schedule.of(self, "BPR-MF", "sgd")
        sampler = Sampler.of(data.train, popularity=self.popularity)
        device = device_of(self.device)
        tables = FactorTables.drawn(data.train, self.embedding_size, device=device, rng=rng)
        tables = tables.with_biases(users=False)
        learner = SteppingLearner(
            tables,
            lambda draws: sampler.triples(sampler.users.size, draws),
            partial(self._loss, tables),
            partial(self._step, tables),
            pairwise,
            (self.reg_user, self.reg_positive, self.reg_negative, self.reg_bias),
        )
        return train(learner, schedule, data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)

    def _loss(self, tables: FactorTables, *triples: Tensor) -> Tensor:
        return self._margins(_Rows.of(tables, *triples))[1]

    def _margins(self, rows: _Rows) -> tuple[Tensor, Tensor]:
        """Return ``s_ui - s_uj``, ``(b, 1)``, and the sum of the losses."""
        from torch.nn.functional import logsigmoid

        margins = (rows.p * (rows.better - rows.worse)).sum(1, keepdim=True) + rows.up - rows.down
        penalty = (
            self.reg_user * square_sum(rows.p)
            + self.reg_positive * square_sum(rows.better)
            + self.reg_negative * square_sum(rows.worse)
            + self.reg_bias * (square_sum(rows.up) + square_sum(rows.down))
        )
        return margins, penalty / 2 - logsigmoid(margins).sum()

    def _step(self, tables: FactorTables, rate: float, *triples: Tensor) -> Tensor:
        """Step down the gradient: that of ``-ln σ(x)`` is ``-σ(-x)``."""
        import torch

        users, positives, negatives = triples
        with torch.no_grad():
            rows = _Rows.of(tables, *triples)
            margins, loss = self._margins(rows)
            pull = rate * torch.sigmoid(-margins)
            toward = pull * rows.p
            for table, codes, move, row, reg in (
                (tables.users, users, pull * (rows.better - rows.worse), rows.p, self.reg_user),
                (tables.items, positives, toward, rows.better, self.reg_positive),
                (tables.items, negatives, -toward, rows.worse, self.reg_negative),
                (tables.item_bias, positives, pull, rows.up, self.reg_bias),
                (tables.item_bias, negatives, -pull, rows.down, self.reg_bias),
            ):
                table.index_add_(0, codes, torch.add(move, row, alpha=-rate * reg))
        return loss


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of the tables that triples look up."""

    p: Tensor
    better: Tensor
    worse: Tensor
    up: Tensor
    down: Tensor

    @classmethod
    def of(
        cls, tables: FactorTables, users: Tensor, positives: Tensor, negatives: Tensor
    ) -> _Rows:
        return cls(
            tables.users.index_select(0, users),
            tables.items.index_select(0, positives),
            tables.items.index_select(0, negatives),
            tables.item_bias.index_select(0, positives),
            tables.item_bias.index_select(0, negatives),
        )
