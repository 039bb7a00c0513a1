"""Matrix factorizations: of ratings (MF, FunkSVD, PMF), and of rankings (BPR-MF, MF2020, AMF)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.dataset import AnyArray, Interactions, TrainingData
from recbias.core.plugins import Device, OnlyWith
from recbias.kernels.devices import resolve_device
from recbias.kernels.sparse import compile_loop
from recbias.models.fitted import FactorModel, FittedFactors
from recbias.models.gpu import (
    Tensor,
    copy_to_array,
    create_parameter,
    initialize_glorot,
    initialize_normal,
    place_like,
)
from recbias.models.sgd import (
    EpochSampler,
    Sampler,
    compute_mean_target,
    create_coin_sampler,
    create_rating_sampler,
    create_triple_sampler,
    is_implicit,
    step_bpr,
    step_logistic,
    step_squared,
)
from recbias.models.training import Learner, NetworkLearner, Patience, TrainedModel, look_up


class _TripleRows(NamedTuple):
    """The rows of the tables for a batch of triples."""

    users: Tensor
    positives: Tensor
    negatives: Tensor
    positive_bias: Tensor
    negative_bias: Tensor


@dataclass(frozen=True, eq=False)
class FactorTables:
    """The vectors and biases of ``score(u, i) = b + b_u + b_i + p_u · q_i``.

    Args:
        users: ``p``, ``float32 (n_users, d)``.
        items: ``q``, ``float32 (n_items, d)``.
        user_bias: ``b_u``, ``float32 (n_users, 1)``, or None for 0.
        item_bias: ``b_i``, ``float32 (n_items, 1)``, or None for 0.
        offset: ``b``, ``float32 (1,)``, or None for 0.
    """

    users: Tensor
    items: Tensor
    user_bias: Tensor = None
    item_bias: Tensor = None
    offset: Tensor = None

    @classmethod
    def initialize(
        cls,
        train: Interactions,
        embedding_size: int,
        *,
        device: Any,
        rng: np.random.Generator,
        std: float = 0.1,
    ) -> FactorTables:
        """Return vectors sampled from Normal(0, std²) for all users and items, without biases."""
        users, items = (
            initialize_normal((n_rows, embedding_size), std, device, rng)
            for n_rows in (train.n_users, train.n_items)
        )
        return cls(users, items)

    def add_biases(self, *, offset: bool = False, users: bool = True) -> FactorTables:
        """Return the same vectors with zero item biases, and optionally user biases and offset."""
        device = self.items.device
        return replace(
            self,
            user_bias=create_parameter(np.zeros((len(self.users), 1)), device) if users else None,
            item_bias=create_parameter(np.zeros((len(self.items), 1)), device),
            offset=create_parameter(np.zeros(1), device) if offset else None,
        )

    def parameters(self) -> Sequence[Tensor]:
        """Return the tables that are not None."""
        return [table for table in self._tables() if table is not None]

    def arrays(self) -> tuple[AnyArray, ...]:
        """Return the five tables as arrays that share the memory; empty for None. CPU only."""
        shapes: tuple[Any, ...] = ((0, 1), (0, 1), (0, 1), (0, 1), 0)
        return tuple(
            np.empty(shape, dtype=np.float32) if table is None else table.detach().numpy()
            for table, shape in zip(self._tables(), shapes, strict=True)
        )

    def score_pairs(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the scores of pairs, ``(b,)``, without the offset."""
        scores = (look_up(self.users, users) * look_up(self.items, items)).sum(1)
        for codes, bias in ((users, self.user_bias), (items, self.item_bias)):
            if bias is not None:
                scores = scores + look_up(bias, codes).squeeze(1)
        return scores

    def look_up_triples(self, users: Tensor, positives: Tensor, negatives: Tensor) -> _TripleRows:
        """Return the rows for a batch of triples (user, positive item, negative item)."""
        return _TripleRows(
            look_up(self.users, users),
            look_up(self.items, positives),
            look_up(self.items, negatives),
            look_up(self.item_bias, positives),
            look_up(self.item_bias, negatives),
        )

    def export(self, device: Device | None = None) -> FittedFactors:
        """Return the vectors and item biases; the other biases do not affect the ranking.

        Lists are ranked on ``device``; by default where the tables are.
        """
        bias = None if self.item_bias is None else copy_to_array(self.item_bias).ravel()
        users, items = copy_to_array(self.users), copy_to_array(self.items)
        return FittedFactors(users, items, bias, device or self.users.device.type)

    def _tables(self) -> tuple[Tensor, ...]:
        return self.users, self.items, self.user_bias, self.item_bias, self.offset


class _TrainedFactorModel(TrainedModel, FactorModel):
    """Base class of the matrix factorizations."""

    embedding_size: int

    def create_tables(
        self,
        data: TrainingData,
        rng: np.random.Generator,
        std: float = 0.1,
        device: Device | None = None,
    ) -> FactorTables:
        """Return tables without biases, by default on the model's device."""
        place, size = resolve_device(device or self.device), self.embedding_size
        return FactorTables.initialize(data.train, size, device=place, rng=rng, std=std)

    def create_glorot_tables(
        self, data: TrainingData, rng: np.random.Generator, *, biases: bool = False
    ) -> FactorTables:
        """Return tables sampled from Glorot's uniform distribution."""
        device, sides = resolve_device(self.device), (data.train.n_users, data.train.n_items)
        widths = (self.embedding_size, 1)[: 1 + biases]
        shapes = [(n_rows, width) for width in widths for n_rows in sides]
        return FactorTables(*(initialize_glorot(shape, device, rng) for shape in shapes))

    def train_rows(
        self,
        tables: FactorTables,
        sampler: EpochSampler,
        loss: Callable[..., Tensor],
        data: TrainingData,
        rng: np.random.Generator,
    ) -> FittedFactors:
        """Train tables of which the loss of a batch reads its rows only."""
        tensors = tables.parameters()
        learner = NetworkLearner(
            tensors, sampler, partial(loss, tables), tables.export, tables=tensors
        )
        return self.train(type(self).__name__, learner, data, rng)


def sum_squares(x: Tensor) -> Tensor:
    """Return the sum of the squares of all entries, in one pass."""
    flat = x.flatten()
    return flat.dot(flat)


@dataclass(frozen=True, eq=False)
class SGDLearner(Learner["FittedFactors"]):
    """Embedding tables on the CPU with an SGD step for each sample, in compiled loops.

    Args:
        tables: The parameters.
        sampler: Samples an epoch.
        kernel: One of the kernels of ``sgd``.
        settings: The settings of the kernel after the learning rate.
        device: Where lists are ranked.
    """

    has_steps: ClassVar[bool] = True

    tables: FactorTables
    sampler: EpochSampler
    kernel: Callable[..., float]
    settings: tuple[float, ...]
    device: Device

    def parameters(self) -> Sequence[Tensor]:
        """Return the tables."""
        return self.tables.parameters()

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch."""
        return self.sampler(rng)

    def make_steps(self, learning_rate: float, *samples: AnyArray) -> float:
        """Update the tables by each sample in turn; return the sum of the losses."""
        with np.errstate(over="ignore"):
            settings = tuple(np.array([learning_rate, *self.settings], dtype=np.float32))
        total: float = compile_loop(self.kernel)(samples, self.tables.arrays(), settings)
        return total

    def export(self) -> FittedFactors:
        """Return the fitted vectors."""
        return self.tables.export(self.device)


@dataclass(frozen=True, kw_only=True)
class AMF(_TrainedFactorModel):
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
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on triples of a user, a positive and a negative item."""
        learner = _AdversarialLearner.initialize(self, data, rng)
        return self.train("AMF", learner, data, rng)


_Perturbation = tuple[Tensor, Tensor]  # The change of the user vectors and of the item vectors


@dataclass(frozen=True, eq=False)
class _AdversarialLearner(Learner["FittedFactors"]):
    """Embedding tables in adversarial training."""

    model: AMF  # The settings
    tables: FactorTables  # The parameters
    sampler: Sampler  # Samples the triples
    epochs: Tensor  # Number of started epochs, ``float32 (1,)``
    previous: _Perturbation  # The perturbation of the previous step, used by ``elliot`` only

    @classmethod
    def initialize(
        cls, model: AMF, data: TrainingData, rng: np.random.Generator
    ) -> _AdversarialLearner:
        import torch

        is_paper = model.variant == "paper"
        create = model.create_tables if is_paper else model.create_glorot_tables
        tables = create(data, rng).add_biases(users=False)
        previous = (torch.zeros_like(tables.users.data), torch.zeros_like(tables.items.data))
        epochs = torch.zeros(1, device=tables.users.device)
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

    def _sum_bpr_losses(self, rows: _TripleRows) -> Tensor:
        """Return L of the dot products or, for ``elliot``, of each dimension."""
        from torch.nn.functional import softplus

        margins = rows.users * (rows.positives - rows.negatives)
        if self.model.variant == "paper":
            margins = margins.sum(1, keepdim=True)
        return softplus(rows.negative_bias - rows.positive_bias - margins).sum()

    def _compute_penalty(self, rows: _TripleRows) -> Tensor:
        model = self.model
        squares = sum(vectors.square().sum() for vectors in rows[:3])
        positive_bias, negative_bias = (bias.square().sum() for bias in rows[3:])
        share = 0.1 if model.variant == "elliot" else 1.0
        return (model.reg * squares + model.reg_bias * (positive_bias + share * negative_bias)) / 2


def perturb_rows(
    loss: Tensor, rows: _TripleRows, triples: Sequence[Tensor], eps: float
) -> _TripleRows:
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


def compute_worst_perturbation(loss: Tensor, tables: FactorTables, eps: float) -> _Perturbation:
    """Return the change of vectors by length ``eps`` that increases a loss most, to first order.

    Vectors that the loss does not depend on are not changed.
    """
    import torch
    from torch.nn.functional import normalize

    gradients = torch.autograd.grad(loss, [tables.users, tables.items], retain_graph=True)
    users, items = (eps * normalize(gradient, dim=1) for gradient in gradients)
    return users, items


def perturb(tables: FactorTables, change: _Perturbation) -> FactorTables:
    """Return tables with changed vectors; gradients flow to the original vectors."""
    return replace(tables, users=tables.users + change[0], items=tables.items + change[1])


@dataclass(frozen=True, kw_only=True)
class PMF(_TrainedFactorModel):
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
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the ratings, or on the training pairs and their negatives."""
        if self.variant == "elliot":
            tables = self.create_tables(data, rng, std=0.01)
            return self.train_rows(
                tables, create_coin_sampler(data.train), _sum_unpenalized_errors, data, rng
            )
        tables, counts = self.create_tables(data, rng), count_pairs(data.train, self.negatives)
        loss = partial(_sum_penalized_errors, penalties=weigh_penalties(tables, counts, self.reg))
        sampler = create_rating_sampler(data.train, self, unit=True)
        return self.train_rows(tables, sampler, loss, data, rng)


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


def _sum_unpenalized_errors(
    tables: FactorTables, users: Tensor, items: Tensor, values: Tensor
) -> Tensor:
    return (values - tables.score_pairs(users, items).sigmoid()).square().sum()


def _sum_penalized_errors(
    tables: FactorTables,
    users: Tensor,
    items: Tensor,
    values: Tensor,
    *,
    penalties: tuple[Tensor, Tensor],
) -> Tensor:
    p, q = look_up(tables.users, users), look_up(tables.items, items)
    of_users, of_items = (
        weights.index_select(0, codes)
        for weights, codes in zip(penalties, (users, items), strict=True)
    )
    penalty = p.square().sum(1) @ of_users + q.square().sum(1) @ of_items
    return (values - (p * q).sum(1).sigmoid()).square().sum() + penalty


@dataclass(frozen=True, kw_only=True)
class BPRMF(_TrainedFactorModel):
    """Factorize so that each user's items score higher than items that the user does not have.

        minimise  Σ_(u,i,j) -ln σ(s_ui - s_uj) + (reg_user |p_u|² + reg_positive |q_i|²
                  + reg_negative |q_j|² + reg_bias (b_i² + b_j²)) / 2
        s_ui = p_u · q_i + b_i

    An epoch samples as many triples as there are training pairs: a training pair (u, i) uniformly
    and an item j that u does not have, uniformly. Compiled loops on the CPU make one SGD step per
    triple, as in the paper. From 16,384 users on, the triples of an epoch are in an order in which
    vectors stay in the cache: in blocks of about 2,048 random users, new ones in each epoch, and
    in random order within a block. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of epochs, each with as many triples as training pairs.
        learning_rate: Learning rate.
        reg_user: Weight of the squared user vectors.
        reg_positive: Weight of the squared vectors of positive items.
        reg_negative: Weight of the squared vectors of negative items.
        reg_bias: Weight of the squared item biases.
        variant: ``elliot`` samples a user uniformly and then one of the user's items.
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
    learning_rate: Annotated[float, Gt(0)] = 0.05
    reg_user: Annotated[float, Ge(0)] = 0.01
    reg_positive: Annotated[float, Ge(0)] = 0.01
    reg_negative: Annotated[float, Ge(0)] = 0.01
    reg_bias: Annotated[float, Ge(0)] = 0.0
    variant: Literal["paper", "elliot"] = "paper"
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on triples of a user, a positive and a negative item."""
        sampler = Sampler.from_interactions(data.train)
        tables = self.create_tables(data, rng, device="cpu").add_biases(users=False)
        sample = create_triple_sampler(sampler)
        if self.variant == "elliot":
            sample = partial(sampler.sample_triples, sampler.users.size, by_user=True)
        reg = (self.reg_user, self.reg_positive, self.reg_negative, self.reg_bias)
        learner = SGDLearner(tables, sample, step_bpr, reg, self.device)
        return self.train("BPR-MF", learner, data, rng)


@dataclass(frozen=True, kw_only=True)
class MF2020(_TrainedFactorModel):
    """Factorize by logistic loss on training pairs and sampled negatives (Rendle et al. 2020).

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y)
                  + reg (b² + b_u² + b_i² + |p_u|² + |q_i|²) / 2
        s_ui = b + b_u + b_i + p_u · q_i

    An epoch has every training pair with y = 1 in random order, each followed by ``negatives``
    pairs with y = 0, whose items are sampled uniformly from all items, including the user's own.
    Compiled loops on the CPU make one SGD step per pair, as in the paper. A user without training
    items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of passes over the training pairs.
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
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.01
    negatives: Annotated[int, Gt(0)] = 8
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the training pairs and their negatives."""
        sampler = Sampler.from_interactions(data.train)
        tables = self.create_tables(data, rng, device="cpu").add_biases(offset=True)
        learner = SGDLearner(
            tables,
            lambda rng: sampler.sample_with_negatives(self.negatives, rng),
            step_logistic,
            (self.reg,),
            self.device,
        )
        return self.train("MF2020", learner, data, rng)


@dataclass(frozen=True, kw_only=True)
class MF(_TrainedFactorModel):
    """Factorize ratings by regularized squared error, without biases.

        minimise  Σ_(u,i) ((r_ui - p_u · q_i)² + reg (|p_u|² + |q_i|²)) / 2

    ``r_ui`` is the rating. If all ratings are equal, r_ui is 1 for a training pair and 0 for each
    of its ``negatives`` unseen items, which are sampled anew each epoch. Compiled loops on
    the CPU make one SGD step per pair, as in the paper. A user without training items has an empty
    list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step of ``elliot``.
        learning_rate: Learning rate.
        reg: Weight of the squared vectors of a pair.
        negatives: Unseen items per training pair if all ratings are equal.
        variant: ``elliot`` ignores the ratings and ``reg``: it samples users uniformly, tosses a
            coin between a seen and an unseen item, initializes vectors by Glorot's uniform
            distribution, and trains by Adam on batches.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        Koren, Bell and Volinsky, "Matrix Factorization Techniques for Recommender Systems",
        Computer 42(8), 2009, equation 2.
    """

    has_biases: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = ("torch", "numba")

    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 80
    batch_size: Annotated[int, Gt(0), OnlyWith("variant", "elliot")] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.01
    reg: Annotated[float, Ge(0)] = 0.01
    negatives: Annotated[int, Gt(0)] = 4
    variant: Literal["paper", "elliot"] = "paper"
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on the ratings, or on the training pairs and their negatives."""
        has_biases = self.has_biases
        if self.variant == "elliot":
            tables = self.create_glorot_tables(data, rng, biases=has_biases)
            return self.train_rows(
                tables, create_coin_sampler(data.train), _sum_squared_errors, data, rng
            )
        tables, mean = self.create_tables(data, rng, device="cpu"), 0.0
        if has_biases:
            tables, mean = tables.add_biases(), compute_mean_target(data.train, self.negatives)
        sampler, settings = create_rating_sampler(data.train, self), (self.reg, mean)
        learner = SGDLearner(tables, sampler, step_squared, settings, self.device)
        return self.train(type(self).__name__, learner, data, rng)


@dataclass(frozen=True, kw_only=True)
class FunkSVD(MF):
    """Factorize ratings by regularized squared error, with biases.

        minimise  Σ_(u,i) ((r_ui - s_ui)² + reg (|p_u|² + |q_i|² + b_u² + b_i²)) / 2
        s_ui = mean + b_u + b_i + p_u · q_i

    ``r_ui`` is the rating and ``mean`` the mean of all ratings. If all ratings are equal, r_ui is
    1 for a training pair and 0 for each of its ``negatives`` unseen items, which are sampled anew
    each epoch. All factors are trained jointly. Compiled loops on the CPU make one SGD step per
    pair, as in the paper. A user without training items has an empty list.

    Args:
        embedding_size: Length of the vectors.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step of ``elliot``.
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

    has_biases: ClassVar[bool] = True

    learning_rate: Annotated[float, Gt(0)] = 0.015
    reg: Annotated[float, Ge(0)] = 0.015


def _sum_squared_errors(
    tables: FactorTables, users: Tensor, items: Tensor, values: Tensor
) -> Tensor:
    return (values - tables.score_pairs(users, items)).square().sum()
