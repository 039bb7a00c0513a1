"""The fitted form of MultiVAE.

MultiVAE: the variational autoencoder of Liang et al. (2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.dataset import AnyArray, Codes, Interactions, Matrix, Queries, TrainingData
from recbias.core.evidence import Embeddings, RankedLists
from recbias.core.plugins import Device, State
from recbias.kernels.devices import resolve_device
from recbias.kernels.sparse import block_size, map_blocks
from recbias.models.gpu import (
    DeviceRows,
    Ranking,
    Tensor,
    copy_to_array,
    create_torch_generator,
    gather_rows,
)
from recbias.models.training import (
    Dense,
    Learner,
    Patience,
    TrainedModel,
    apply_dropout,
    collect_parameters,
    initialize_layers,
    restore_layers,
    store_layers,
)


@dataclass(frozen=True, eq=False)
class FittedMultiVAE:
    """A trained encoder and decoder.

    Args:
        arrays: Their layers, ``encoder.0.weight`` and so on; ``latent``, the latent vectors of the
            training users, ``float32 (n_users, embedding_size)``, NaN for a user without history;
            and ``seed``, if latent vectors are sampled.
        device: Where lists are ranked.
    """

    arrays: State
    device: Device = "auto"

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def embeddings(self) -> Embeddings:
        """Return the vectors whose product is the score without the item bias."""
        items = restore_layers("decoder", self.arrays)[1].weight.T
        return Embeddings(
            _compute_hidden(self.arrays, self.arrays["latent"]), np.ascontiguousarray(items)
        )

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, from the user's history in ``data``."""
        users = np.unique(queries.users[queries.users >= 0])
        state = {name: array for name, array in self.arrays.items() if name.startswith("decoder.")}
        state["latent"] = self._encode(users, data)
        return Ranking(score_block, state, self.device).lists(queries, k, data)

    def encode_users(self, data: TrainingData) -> FittedMultiVAE:
        """Return a copy with the latent vectors of the users of these data."""
        latent = self._encode(np.arange(data.train.n_users, dtype=np.int32), data)
        return replace(self, arrays={**self.arrays, "latent": latent})

    def _encode(self, users: Codes, data: TrainingData) -> AnyArray:
        """Return latent vectors, ``(n_users, d)``, of ``users`` with items; all others are NaN."""
        encoder = restore_layers("encoder", self.arrays)
        width, hidden = (layer.weight.shape[1] for layer in encoder[::-1])
        active = users[data.train.user_counts()[users] > 0]

        def encode_rows(start: int, stop: int) -> AnyArray:
            rows = unit_rows(data.train, active[start:stop])
            return encoder[1](np.tanh(encoder[0](rows)))  # type: ignore[no-any-return]

        size = block_size(4 * (hidden + width))
        blocks = [np.empty((0, width), np.float32), *map_blocks(encode_rows, active.size, size)]
        mean, log_variance = np.split(np.concatenate(blocks), 2, axis=1)
        latent = np.full((data.train.n_users, mean.shape[1]), np.nan, dtype=np.float32)
        latent[active] = mean
        if "seed" in self.arrays:
            noise = np.random.default_rng(self.arrays["seed"]).standard_normal(latent.shape, "f4")
            latent[active] += noise[active] * np.exp(log_variance / 2)
        return latent


def unit_rows(train: Interactions, users: Codes) -> Matrix:
    """Return the histories of these users as rows of unit length: 1 / sqrt(number of items).

    The rows are CSR ``float32 (b, n_items)``; a user without items has a zero row.
    """
    matrix = train.binary[users]
    counts = np.diff(matrix.indptr)
    matrix.data /= np.sqrt(np.repeat(counts, counts), dtype=np.float32)
    return matrix


def _compute_hidden(state: Mapping[str, Any], latent: Any) -> Any:
    """Return the hidden layer of the decoder for latent vectors, as arrays or tensors."""
    hidden = restore_layers("decoder", state)[0](latent)
    return np.tanh(hidden) if isinstance(hidden, np.ndarray) else hidden.tanh()


def score_block(state: Mapping[str, Any], users: Any) -> Any:
    """Return the scores of all items for these users, ``(b, n_items)``."""
    return restore_layers("decoder", state)[1](_compute_hidden(state, state["latent"][users]))


@dataclass(frozen=True, kw_only=True)
class MultiVAE(TrainedModel):
    """Encode a history as a distribution of latent vectors; decode it to item probabilities.

        minimise  Σ_u -Σ_(i in I_u) ln softmax(f(z_u))_i + β KL(N(μ_u, σ_u²) | N(0, 1)) + reg |W|²
        z_u ~ N(μ_u, σ_u²);  μ_u, ln σ_u² = g(x_u);  x_u = 1 / sqrt(|I_u|) at I_u, 0 elsewhere

    ``I_u`` is the history of u. ``f`` and ``g`` have one tanh hidden layer each; dropout applies
    to ``x_u`` in training. KL is the sum over latent dimensions; ``β`` increases linearly. Adam
    trains the network. Lists rank ``f(μ_u)``, encoded from the history at recommendation time. A
    user without training items has an empty list. The embeddings are the hidden layer of ``f`` for
    users and its output weights for items: their product plus the item bias is the score.

    Args:
        embedding_size: Size of the latent vectors.
        hidden_size: Size of the hidden layers.
        epochs: Maximum number of passes over the users.
        batch_size: Users per step.
        learning_rate: Learning rate of Adam.
        dropout: Dropout rate of a user's items in training.
        beta: Final weight of KL.
        anneal_steps: Number of steps until the weight of KL is ``beta``.
        reg: Weight of the squared weights, per user.
        variant: ``elliot`` follows that framework. It divides KL by the number of latent
            dimensions, increases its weight by 1/200,000 per step up to 0.2, has no ``reg``, and
            also samples ``z_u`` for recommendation, once per user. Its ``dropout_pkeep``, by
            default 1, is 1 - ``dropout``.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        Liang, Krishnan, Hoffman and Jebara, "Variational Autoencoders for Collaborative
        Filtering", WWW 2018, sections 2 and 2.2.1.
    """

    embedding_size: Annotated[int, Gt(0)] = 200
    hidden_size: Annotated[int, Gt(0)] = 600
    epochs: Annotated[int, Gt(0)] = 20
    batch_size: Annotated[int, Gt(0)] = 256
    learning_rate: Annotated[float, Gt(0)] = 0.001
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.5
    beta: Annotated[float, Ge(0)] = 0.2
    anneal_steps: Annotated[int, Gt(0)] = 500
    reg: Annotated[float, Ge(0)] = 0.0
    variant: Literal["paper", "elliot"] = "paper"
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedMultiVAE:
        """Train on the histories of the users."""
        learner = _VAELearner.initialize(self, data, rng)
        return self.train("MultiVAE", learner, data, rng).encode_users(data)

    def restore(self, state: State) -> FittedMultiVAE:
        """Return the fitted recommender of a stored state."""
        return FittedMultiVAE(state, self.device)

    def kl_weight(self, step: Tensor) -> Tensor:
        """Return the weight of KL in a step, counted from 1."""
        if self.variant == "elliot":
            return (step / 200_000).clip(max=0.2) / self.embedding_size
        return self.beta * (step / self.anneal_steps).clip(max=1.0)


@dataclass(eq=False)
class _VAELearner(Learner["FittedMultiVAE"]):
    """Encoder and decoder in training."""

    model: MultiVAE  # The settings
    encoder: Sequence[Dense]  # The layers from items to means and logarithms of variances
    decoder: Sequence[Dense]  # The layers from latent vectors to items
    histories: DeviceRows  # The training items of the users
    steps: Tensor  # Number of completed steps, ``float32 (1,)``
    seed: Tensor  # Seed of the latent vectors for recommendation, ``int64 (1,)``
    noise: Any = None  # Samples the dropout masks and the latent vectors in training

    @classmethod
    def initialize(
        cls, model: MultiVAE, data: TrainingData, rng: np.random.Generator
    ) -> _VAELearner:
        import torch

        device, n_items = resolve_device(model.device), data.train.n_items
        hidden, latent = model.hidden_size, model.embedding_size
        return cls(
            model,
            initialize_layers([n_items, hidden, 2 * latent], device, rng),
            initialize_layers([latent, hidden, n_items], device, rng),
            DeviceRows.copy(data.train.binary, device),
            torch.zeros(1, device=device),
            torch.tensor([int(rng.integers(2**63 - 1))], device=device),
        )

    def parameters(self) -> Sequence[Tensor]:
        return collect_parameters([*self.encoder, *self.decoder])

    def buffers(self) -> Sequence[Tensor]:
        return [self.steps, self.seed]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        self.noise = create_torch_generator(rng, self.steps.device)
        n_items = copy_to_array(self.histories.starts.diff())
        return [rng.permutation(np.flatnonzero(n_items).astype(np.int32))]

    def loss(self, *batch: Tensor) -> Tensor:
        import torch

        self.steps += 1
        rows, items, counts = self.look_up(batch[0].long())
        mean, log_variance = self._encode(rows, items, counts)
        noise = torch.randn(mean.shape, generator=self.noise, dtype=mean.dtype, device=mean.device)
        latent = mean + noise * (log_variance / 2).exp()
        scores = self.decoder[1](self.decoder[0](latent).tanh())
        likelihood = scores.log_softmax(1)[rows, items].sum()
        loss = self.model.kl_weight(self.steps).squeeze() * sum_kl(mean, log_variance) - likelihood
        if self.model.reg == 0 or self.model.variant == "elliot":
            return loss
        squares = sum(layer.weight.square().sum() for layer in [*self.encoder, *self.decoder])
        return loss + self.model.reg * len(counts) * squares

    def look_up(self, users: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the row and the item of each entry of histories, and the number of each user."""
        starts = self.histories.starts
        rows, positions = gather_rows(starts, users)
        return rows, self.histories.columns[positions], starts[users + 1] - starts[users]

    def export(self) -> FittedMultiVAE:
        arrays = {**store_layers("encoder", self.encoder), **store_layers("decoder", self.decoder)}
        if self.model.variant == "elliot":
            arrays["seed"] = copy_to_array(self.seed)
        return FittedMultiVAE(arrays, self.model.device)

    def _encode(self, rows: Tensor, items: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and logarithms of variances, each ``(b, embedding_size)``."""
        from torch.nn.functional import embedding_bag

        first, last = self.encoder
        values = counts.to(first.weight.dtype).rsqrt()[rows]
        values = apply_dropout(values, self.model.dropout, self.noise)
        starts = counts.cumsum(0) - counts
        # x W, from the non-zero entries of x
        summed = embedding_bag(items, first.weight, starts, mode="sum", per_sample_weights=values)
        mean, log_variance = last((summed + first.bias).tanh()).chunk(2, dim=1)
        return mean, log_variance


def sum_kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return the sum of the Kullback-Leibler divergences KL(N(mean, variance) | N(0, 1))."""
    return (log_variance.exp() + mean.square() - 1 - log_variance).sum() / 2
