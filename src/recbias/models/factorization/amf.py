"""Adversarial matrix factorization: BPR that is robust to perturbations of its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.models.factorization.factor_tables import (
    FactorTables,
    TrainedFactorModel,
    TripleRows,
)
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.ranking.tensors import Tensor, initialize_glorot
from recbias.models.training.samplers import Sampler
from recbias.numerics.devices import resolve_device


@dataclass(frozen=True, kw_only=True)
class AMF(TrainedFactorModel):
    """Factorize by BPR so that the ranking is robust to the worst small change of the vectors.

        minimise  L(p, q) + adversarial_weight L(p + Δp, q + Δq)
                  + reg (|p_u|² + |q_i|² + |q_j|²) / 2 + reg_bias (b_i² + b_j²) / 2
        L = Σ_(u,i,j) -ln σ(s_ui - s_uj);  s_ui = p_u · q_i + b_i
        Δp_u = eps ∂L/∂p_u / |∂L/∂p_u|, and Δq_i likewise

    The second term is used in the last ``adversarial_epochs``; the epochs before them are plain
    BPR. The gradient is that of a batch, so that only the vectors of its triples are perturbed. An
    epoch samples as many triples as there are training pairs: a training pair (u, i) uniformly and
    an item j that u does not have, uniformly. The optimizer is Adam. A user without training items
    has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of epochs, each with as many triples as training pairs.
        adversarial_epochs: How many of the last epochs use the second term.
        batch_size: Triples per step.
        learning_rate: Learning rate.
        eps: Length of the perturbation of a vector.
        adversarial_weight: Weight of the second term.
        reg: Weight of the squared vectors of a triple.
        reg_bias: Weight of the squared item biases of a triple.
        variant: ``elliot`` trains each dimension as a separate BPR, perturbs the vectors by the
            gradient of the previous step, weighs the term of the unperturbed vectors instead of
            the perturbed ones, samples users uniformly, initializes by Glorot's uniform
            distribution, and has ``b_j²`` / 10.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        He, He, Du and Chua, "Adversarial Personalized Ranking for Recommendation", SIGIR 2018,
        section 3.2, which has no item biases.
    """

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
        """Train on triples of a user, a positive and a negative item."""
        learner = _AdversarialLearner.initialize(self, data, rng)
        return self.train("AMF", learner, data, rng)


Perturbation = tuple[Tensor, Tensor]  # The change of the user vectors and of the item vectors


@dataclass(frozen=True, eq=False)
class _AdversarialLearner:
    """Embedding tables in adversarial training: a ``training.loop.Learner``."""

    model: AMF  # The settings
    tables: FactorTables  # The parameters
    sampler: Sampler  # Samples the triples
    epochs: Tensor  # Number of started epochs, ``float32 (1,)``
    previous: Perturbation  # The perturbation of the previous step, used by ``elliot`` only

    @classmethod
    def initialize(
        cls, model: AMF, data: TrainingData, rng: np.random.Generator
    ) -> _AdversarialLearner:
        import torch

        device, sides = resolve_device(model.device), (data.train.n_users, data.train.n_items)
        if model.variant == "paper":
            tables = model.create_tables(data, rng)
        else:
            shapes = [(n_rows, model.embedding_size) for n_rows in sides]
            tables = FactorTables(*(initialize_glorot(shape, device, rng) for shape in shapes))
        tables = tables.add_biases(users=False)
        previous = (torch.zeros_like(tables.users.data), torch.zeros_like(tables.items.data))
        epochs = torch.zeros(1, device=device)
        return cls(model, tables, Sampler.from_interactions(data.train), epochs, previous)

    def parameters(self) -> Sequence[Tensor]:
        return self.tables.parameters()

    def row_tables(self) -> Sequence[Tensor]:
        """Return the tables of ``paper``; ``elliot`` also reads all rows, to perturb them."""
        return self.tables.parameters() if self.model.variant == "paper" else []

    def buffers(self) -> Sequence[Tensor]:
        return [self.epochs, *self.previous]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        self.epochs.add_(1)
        by_user = self.model.variant == "elliot"
        return self.sampler.sample_triples(self.sampler.users.size, rng, by_user=by_user)

    def loss(self, *batch: Tensor) -> Tensor:
        rows = self.tables.look_up_triples(*batch)
        loss, penalty = self._sum_bpr_losses(rows), self._compute_penalty(rows)
        if self.epochs <= self.model.epochs - self.model.adversarial_epochs:
            return loss + penalty
        weight = self.model.adversarial_weight
        if self.model.variant == "paper":
            perturbed = perturb_rows(loss, rows, batch, self.model.eps)
            return loss + weight * self._sum_bpr_losses(perturbed) + penalty
        worst = compute_worst_perturbation(loss, self.tables, self.model.eps)
        tables = perturb(self.tables, self.previous)
        perturbed_loss = self._sum_bpr_losses(tables.look_up_triples(*batch))
        for previous, change in zip(self.previous, worst, strict=True):
            previous.copy_(change)
        return perturbed_loss + weight * loss + penalty

    def export(self) -> FittedFactors:
        return self.tables.export()

    def _sum_bpr_losses(self, rows: TripleRows) -> Tensor:
        """Return L of the dot products or, for ``elliot``, of each dimension."""
        from torch.nn.functional import softplus

        margins = rows.users * (rows.positives - rows.negatives)
        if self.model.variant == "paper":
            margins = margins.sum(1, keepdim=True)
        return softplus(rows.negative_bias - rows.positive_bias - margins).sum()

    def _compute_penalty(self, rows: TripleRows) -> Tensor:
        model = self.model
        squares = sum(vectors.square().sum() for vectors in rows[:3])
        positive_bias, negative_bias = (bias.square().sum() for bias in rows[3:])
        share = 0.1 if model.variant == "elliot" else 1.0
        return (model.reg * squares + model.reg_bias * (positive_bias + share * negative_bias)) / 2


def perturb_rows(
    loss: Tensor, rows: TripleRows, triples: Sequence[Tensor], eps: float
) -> TripleRows:
    """Return the rows of a batch, changed as by ``perturb`` with the worst change of their tables.

    A vector that several triples of the batch have is changed by the sum of its gradients, scaled
    to the length ``eps``. Gradients flow to the original rows.
    """
    import torch

    users, positives, negatives = triples
    of_users, *of_items = torch.autograd.grad(loss, rows[:3], retain_graph=True)
    changed = rows.users + _scale_sums(of_users, users, eps)
    change = _scale_sums(torch.cat(of_items), torch.cat([positives, negatives]), eps)
    of_positives, of_negatives = change.split(len(positives))
    return rows._replace(
        users=changed,
        positives=rows.positives + of_positives,
        negatives=rows.negatives + of_negatives,
    )


def _scale_sums(gradients: Tensor, codes: Tensor, eps: float) -> Tensor:
    """Return, for each row, the sum of the gradients of its code, scaled to a length."""
    import torch
    from torch.nn.functional import normalize

    unique, places = torch.unique(codes, return_inverse=True)
    sums = gradients.new_zeros((len(unique), gradients.shape[1]))
    sums.index_add_(0, places, gradients)
    return (eps * normalize(sums, dim=1)).index_select(0, places)


def compute_worst_perturbation(loss: Tensor, tables: FactorTables, eps: float) -> Perturbation:
    """Return the change of vectors by length ``eps`` that increases a loss most, to first order.

    Vectors that the loss does not depend on are not changed.
    """
    import torch
    from torch.nn.functional import normalize

    gradients = torch.autograd.grad(loss, [tables.users, tables.items], retain_graph=True)
    users, items = (eps * normalize(gradient, dim=1) for gradient in gradients)
    return users, items


def perturb(tables: FactorTables, change: Perturbation) -> FactorTables:
    """Return tables with changed vectors; gradients flow to the original vectors."""
    return replace(tables, users=tables.users + change[0], items=tables.items + change[1])
