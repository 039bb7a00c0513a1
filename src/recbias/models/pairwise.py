"""Matrix factorisation that learns from pairs of items: one the user has, one it has not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.protocols import Output, State
from recbias.core.split import TrainingData
from recbias.models.factor_tables import FactorLearner, FactorTables
from recbias.models.factors import FittedFactors
from recbias.models.samplers import Sampler
from recbias.models.tensors import Device, Tensor, device_of
from recbias.models.torch_fit import Schedule, train


@dataclass(frozen=True, kw_only=True)
class BPRMF:
    """Factorise so that each user's items score above items that the user does not have.

        minimise  Σ_(u,i,j) -ln σ(s_ui - s_uj) + (reg_user |p_u|² + reg_positive |q_i|²
                  + reg_negative |q_j|² + reg_bias (b_i² + b_j²)) / 2
        s_ui = p_u · q_i + b_i

    An epoch draws as many triples as there are training pairs: a pair (u, i), all alike, and an
    item j that u does not have, all alike. Steps are sums over a batch, which for batches much
    smaller than the catalogue are the single steps of the paper. A user without training items has
    an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: As many triples as training pairs, this many times at most.
        batch_size: Triples in a step.
        learning_rate: Length of a step.
        reg_user: Weight of the squared user vectors.
        reg_positive: Weight of the squared vectors of items that the user has.
        reg_negative: Weight of the squared vectors of drawn items.
        reg_bias: Weight of the squared item biases.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Rendle, Freudenthaler, Gantner and Schmidt-Thieme, "BPR: Bayesian Personalized Ranking from
        Implicit Feedback", UAI 2009, sections 4.2 and 4.3.1.
    """

    version: ClassVar[int] = 1
    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch",)

    embedding_size: Annotated[int, Gt(0)] = 64
    epochs: Annotated[int, Gt(0)] = 50
    batch_size: Annotated[int, Gt(0)] = 1024
    learning_rate: Annotated[float, Gt(0)] = 0.05
    reg_user: Annotated[float, Ge(0)] = 0.01
    reg_positive: Annotated[float, Ge(0)] = 0.01
    reg_negative: Annotated[float, Ge(0)] = 0.01
    reg_bias: Annotated[float, Ge(0)] = 0.0
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the training pairs."""
        schedule = Schedule(
            name="BPR-MF",
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            optimizer="sgd",
            patience=self.patience,
        )
        sampler, device = Sampler.of(data.train), device_of(self.device)
        tables = FactorTables.drawn(data.train, self.embedding_size, device=device, rng=rng)
        tables = tables.with_biases(users=False)
        learner = FactorLearner(
            tables,
            lambda draws: sampler.triples(sampler.users.size, draws),
            lambda *triples: self._loss(tables, *triples),
        )
        return train(learner, schedule, data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)

    def _loss(
        self, tables: FactorTables, users: Tensor, positives: Tensor, negatives: Tensor
    ) -> Tensor:
        from torch.nn.functional import embedding, logsigmoid

        p = embedding(users, tables.users)
        better, worse = embedding(positives, tables.items), embedding(negatives, tables.items)
        up, down = (embedding(each, tables.item_bias) for each in (positives, negatives))
        margins = (p * (better - worse)).sum(1, keepdim=True) + up - down
        penalty = (
            self.reg_user * p.square().sum()
            + self.reg_positive * better.square().sum()
            + self.reg_negative * worse.square().sum()
            + self.reg_bias * (up.square() + down.square()).sum()
        )
        return penalty / 2 - logsigmoid(margins).sum()
