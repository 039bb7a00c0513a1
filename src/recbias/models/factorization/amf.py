"""Adversarial matrix factorisation: BPR that also holds when its vectors are shaken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import Device, OnDevice, Tensor, device_of, drawn_glorot
from recbias.models.training.loop import train
from recbias.models.training.samplers import Sampler
from recbias.models.training.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class AMF(OnDevice):
    """Factorise by BPR so that the order of items withstands the worst small change of vectors.

        minimise  L(p, q) + adversarial_weight L(p + Δp, q + Δq)
                  + reg (|p_u|² + |q_i|² + |q_j|²) / 2 + reg_bias (b_i² + b_j²) / 2
        L = Σ_(u,i,j) -ln σ(s_ui - s_uj);  s_ui = p_u · q_i + b_i
        Δp_u = eps ∂L/∂p_u / |∂L/∂p_u|, and Δq_i likewise

    The last ``adversarial_epochs`` have the second term, those before are plain BPR. The gradient
    is that of the triples of a step, so that only their vectors change. An epoch draws as many
    triples as there are training pairs: a pair (u, i), all alike, and an item j that u does not
    have, all alike. Steps are Adam's. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: As many triples as training pairs, this many times at most.
        adversarial_epochs: How many of them, the last, have the second term.
        batch_size: Triples in a step.
        learning_rate: Length of a step.
        eps: Length of the change of a vector.
        adversarial_weight: Weight of the second term.
        reg: Weight of the squared vectors of a triple.
        reg_bias: Weight of the squared item biases of a triple.
        variant: ``elliot`` trains each dimension as a BPR of its own and shakes the vectors by
            what the step before left while its second term is of the vectors as they are; it
            draws users alike, starts uniform, by Glorot's limits, and has ``b_j²`` / 10.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        He, He, Du and Chua, "Adversarial Personalized Ranking for Recommendation", SIGIR 2018,
        section 3.2, which has no item biases.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch",)

    embedding_size: Annotated[int, Gt(0)] = 64
    epochs: Annotated[int, Gt(0)] = 40
    adversarial_epochs: Annotated[int, Ge(0)] = 30
    batch_size: Annotated[int, Gt(0)] = 2048
    learning_rate: Annotated[float, Gt(0)] = 0.002
    eps: Annotated[float, Ge(0)] = 0.25
    adversarial_weight: Annotated[float, Ge(0)] = 1.0
    reg: Annotated[float, Ge(0)] = 0.01
    reg_bias: Annotated[float, Ge(0)] = 0.0
    variant: Literal["paper", "elliot"] = "paper"
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Learn from the training pairs."""
        schedule = Schedule.of(self, "AMF")
        learner = AdversarialLearner.drawn(self, data, rng)
        return train(learner, schedule, data, rng)

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.restored(state, self.device)


Change = tuple[Tensor, Tensor]
"""What is added to user vectors and to item vectors."""


@dataclass(frozen=True, eq=False)
class AdversarialLearner:
    """Vectors under training: a ``torch_fit.Learner``.

    Args:
        model: The hyperparameters.
        tables: What is learned.
        sampler: Draws the triples.
        epochs: How many epochs were begun, ``float32 (1,)``.
        left: The change of the step before, which only ``elliot`` looks at.
    """

    model: AMF
    tables: FactorTables
    sampler: Sampler
    epochs: Tensor
    left: Change

    @classmethod
    def drawn(cls, model: AMF, data: TrainingData, rng: np.random.Generator) -> AdversarialLearner:
        """Return first vectors, and biases of 0."""
        import torch

        device = device_of(model.device)
        tables = _first_tables(model, data.train, device, rng)
        left = (torch.zeros_like(tables.users.data), torch.zeros_like(tables.items.data))
        epochs = torch.zeros(1, device=device)
        return cls(model, tables, Sampler.of(data.train), epochs, left)

    def parameters(self) -> Sequence[Tensor]:
        """Return the tables."""
        return self.tables.parameters()

    def memory(self) -> Sequence[Tensor]:
        """Return the count of epochs and the change of the step before."""
        return [self.epochs, *self.left]

    def epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the triples of an epoch."""
        self.epochs.add_(1)
        by_user = self.model.variant == "elliot"
        return self.sampler.triples(self.sampler.users.size, rng, by_user=by_user)

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of some triples."""
        missed = self._missed(self.tables, batch)
        penalty = self._penalty(*batch)
        if self.epochs <= self.model.epochs - self.model.adversarial_epochs:
            return missed + penalty
        worst = worst_change(missed, self.tables, self.model.eps)
        weight = self.model.adversarial_weight
        if self.model.variant == "paper":
            return missed + weight * self._missed(changed(self.tables, worst), batch) + penalty
        shaken = self._missed(changed(self.tables, self.left), batch)
        for kept, new in zip(self.left, worst, strict=True):
            kept.copy_(new)
        return shaken + weight * missed + penalty

    def fitted(self) -> FittedFactors:
        """Return the vectors."""
        return self.tables.fitted()

    def _missed(self, tables: FactorTables, triples: Sequence[Tensor]) -> Tensor:
        """Return L, by the product of vectors or, as ``elliot`` does, dimension by dimension."""
        from torch.nn.functional import softplus

        users, better, worse = triples
        gaps = tables.items.index_select(0, better) - tables.items.index_select(0, worse)
        margins = tables.users.index_select(0, users) * gaps
        if self.model.variant == "paper":
            margins = margins.sum(1, keepdim=True)
        up, down = (tables.item_bias.index_select(0, each) for each in (better, worse))
        return softplus(down - up - margins).sum()

    def _penalty(self, users: Tensor, better: Tensor, worse: Tensor) -> Tensor:
        tables, model = self.tables, self.model
        vectors = (
            tables.users.index_select(0, users),
            *(tables.items.index_select(0, each) for each in (better, worse)),
        )
        squares = sum(each.square().sum() for each in vectors)
        up, down = (
            tables.item_bias.index_select(0, each).square().sum() for each in (better, worse)
        )
        share = 0.1 if model.variant == "elliot" else 1.0
        return (model.reg * squares + model.reg_bias * (up + share * down)) / 2


def _first_tables(
    model: AMF, train: Interactions, device: Any, rng: np.random.Generator
) -> FactorTables:
    size = model.embedding_size
    if model.variant == "paper":
        tables = FactorTables.drawn(train, size, device=device, rng=rng)
    else:
        sides = (train.n_users, train.n_items)
        tables = FactorTables(*(drawn_glorot((rows, size), device, rng) for rows in sides))
    return tables.with_biases(users=False)


def worst_change(missed: Tensor, tables: FactorTables, eps: float) -> Change:
    """Return the change of vectors, each of length ``eps``, that raises a loss most at first.

    A vector that the loss does not hang on stays as it is.
    """
    import torch
    from torch.nn.functional import normalize

    both = torch.autograd.grad(missed, [tables.users, tables.items], retain_graph=True)
    users, items = (eps * normalize(each, dim=1) for each in both)
    return users, items


def changed(tables: FactorTables, change: Change) -> FactorTables:
    """Return tables whose vectors are changed; gradients go to the vectors as they were."""
    return replace(tables, users=tables.users + change[0], items=tables.items + change[1])
