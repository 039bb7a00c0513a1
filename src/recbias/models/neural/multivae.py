"""The variational autoencoder of Liang et al.: a user's whole history in, all items out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.models.neural.histories import Histories, unit_rows
from recbias.models.ranking.device_ranking import Ranking
from recbias.models.ranking.tensors import (
    Device,
    OnDevice,
    Tensor,
    copy_to_array,
    create_torch_generator,
    resolve_device,
)
from recbias.models.training.layers import (
    Dense,
    apply_dropout,
    collect_parameters,
    initialize_layers,
    restore_layers,
    store_layers,
)
from recbias.models.training.loop import train
from recbias.models.training.schedule import Schedule
from recbias.numerics.sparse.blocks import block_size, map_blocks


@dataclass(frozen=True, kw_only=True)
class MultiVAE(OnDevice):
    """Encode what a user has as a cloud of latent vectors, and decode it to chances of all items.

        minimise  Σ_u -Σ_(i in I_u) ln softmax(f(z_u))_i + β KL(N(μ_u, σ_u²) | N(0, 1)) + reg |W|²
        z_u ~ N(μ_u, σ_u²);  μ_u, ln σ_u² = g(x_u);  x_u = 1 / sqrt(|I_u|) at I_u, 0 elsewhere

    ``f`` and ``g`` have one hidden layer each, of tanh; part of ``x_u`` is dropped while training.
    KL is the sum over latent dimensions; ``β`` rises in a line. Steps are Adam's. Lists are of
    ``f(μ_u)``, encoded of the history that is given with the queries. A user without training
    items has an empty list. The vector of a user is the hidden layer of ``f``, that of an item the
    weights that lead to it: their product and the item's bias are the score.

    Args:
        embedding_size: Length of the latent vectors.
        hidden_size: Length of the hidden layers.
        epochs: Passes over the users, at most.
        batch_size: Users in a step.
        learning_rate: Length of a step.
        dropout: Share of a user's items that the encoder does not see while training.
        beta: Weight of KL at its end.
        anneal_steps: Steps until the weight of KL is ``beta``.
        reg: Weight of the squared weights, for each user.
        variant: ``elliot`` divides KL by the latent dimensions, raises its weight by 1/200,000 a
            step up to 0.2, has no ``reg``, and draws ``z_u`` for lists too, once for each user.
            What it names the share kept is 1 - ``dropout``, and 1 unless it is set.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        OutOfRange: It diverges.

    Source:
        Liang, Krishnan, Hoffman and Jebara, "Variational Autoencoders for Collaborative
        Filtering", WWW 2018, sections 2 and 2.2.1.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("torch",)

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
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedMultiVAE:
        """Learn from the users' training items."""
        schedule = Schedule.from_model(self, "MultiVAE")
        learner = VAELearner.drawn(self, data, rng)
        return train(learner, schedule, data, rng).with_users(data)

    def restore(self, state: State) -> FittedMultiVAE:
        """Return the fitted recommender of a stored state."""
        return FittedMultiVAE(state, self.device)

    def kl_weight(self, step: Tensor) -> Tensor:
        """Return what KL counts in a step, the first of which is 1."""
        if self.variant == "elliot":
            return (step / 200_000).clip(max=0.2) / self.embedding_size
        return self.beta * (step / self.anneal_steps).clip(max=1.0)


@dataclass(eq=False)
class VAELearner:
    """Encoder and decoder under training: a ``torch_fit.Learner``.

    Args:
        model: The hyperparameters.
        encoder: From items to the hidden layer, and on to means and logarithms of variances.
        decoder: From latent vectors to the hidden layer, and on to items.
        histories: What each user has.
        steps: How many steps were done, ``float32 (1,)``.
        seed: Of what is drawn for lists, ``int64 (1,)``.
        noise: Draws what is dropped, and the latent vectors.
    """

    model: MultiVAE
    encoder: Sequence[Dense]
    decoder: Sequence[Dense]
    histories: Histories
    steps: Tensor
    seed: Tensor
    noise: Any = None

    @classmethod
    def drawn(cls, model: MultiVAE, data: TrainingData, rng: np.random.Generator) -> VAELearner:
        """Return layers of Glorot's uniform weights and biases of 0."""
        import torch

        device, n_items = resolve_device(model.device), data.train.n_items
        hidden, latent = model.hidden_size, model.embedding_size
        return cls(
            model,
            initialize_layers([n_items, hidden, 2 * latent], device, rng),
            initialize_layers([latent, hidden, n_items], device, rng),
            Histories.of(data.train, device),
            torch.zeros(1, device=device),
            torch.tensor([int(rng.integers(2**63 - 1))], device=device),
        )

    def parameters(self) -> Sequence[Tensor]:
        """Return weights and biases of all layers."""
        return collect_parameters([*self.encoder, *self.decoder])

    def buffers(self) -> Sequence[Tensor]:
        """Return the count of steps and the seed."""
        return [self.steps, self.seed]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the users who have an item, in random order."""
        self.noise = create_torch_generator(rng, self.steps.device)
        return [rng.permutation(self.histories.active)]

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of some users."""
        self.steps += 1
        rows, items, counts = self.histories.of_users(batch[0])
        mean, log_variance = self._encoded(rows, items, counts)
        latent = self._drawn_latent(mean, log_variance)
        scores = self.decoder[1](self.decoder[0](latent).tanh())
        likelihood = scores.log_softmax(1)[rows, items].sum()
        loss = self.model.kl_weight(self.steps).squeeze() * kl(mean, log_variance) - likelihood
        if self.model.reg == 0 or self.model.variant == "elliot":
            return loss
        squares = sum(each.weight.square().sum() for each in [*self.encoder, *self.decoder])
        return loss + self.model.reg * len(counts) * squares

    def export(self) -> FittedMultiVAE:
        """Return the layers; the users' latent vectors are not among it."""
        arrays = {**store_layers("encoder", self.encoder), **store_layers("decoder", self.decoder)}
        if self.model.variant == "elliot":
            arrays["seed"] = copy_to_array(self.seed)
        return FittedMultiVAE(arrays, self.model.device)

    def _encoded(self, rows: Tensor, items: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and logarithms of variances, each ``(b, embedding_size)``."""
        from torch.nn.functional import embedding_bag

        first, second = self.encoder
        values = counts.to(first.weight.dtype).rsqrt()[rows]
        values = apply_dropout(values, self.model.dropout, self.noise)
        starts = counts.cumsum(0) - counts
        summed = embedding_bag(
            items, first.weight, starts, mode="sum", per_sample_weights=values
        )  # x W, of the entries of x that are not 0
        mean, log_variance = second((summed + first.bias).tanh()).chunk(2, dim=1)
        return mean, log_variance

    def _drawn_latent(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        import torch

        kind = {"dtype": mean.dtype, "device": mean.device}
        noise = torch.randn(mean.shape, generator=self.noise, **kind)
        return mean + noise * (log_variance / 2).exp()


def kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return the sum of the Kullback-Leibler divergences of N(mean, variance) from N(0, 1)."""
    return (log_variance.exp() + mean.square() - 1 - log_variance).sum() / 2


@dataclass(frozen=True, eq=False)
class FittedMultiVAE:
    """An encoder and a decoder.

    Args:
        arrays: Their layers, ``encoder.0.weight`` and so on; ``latent``, the latent vector of each
            user of the training data, ``float32 (n_users, embedding_size)``, NaN without history;
            ``seed`` where latent vectors are drawn.
        device: Where lists are made.
    """

    arrays: State
    device: Device = "auto"

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def embeddings(self) -> Embeddings:
        """Return the vectors whose product is the score, but for the item's bias."""
        items = restore_layers("decoder", self.arrays)[1].weight.T
        return Embeddings(_hidden(self.arrays, self.arrays["latent"]), np.ascontiguousarray(items))

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, of the history that ``data`` has of it."""
        asked = np.unique(queries.users[queries.users >= 0])
        decoder = {name: each for name, each in self.arrays.items() if name.startswith("decoder.")}
        state = {**decoder, "latent": self._latent(asked, data)}
        return Ranking(_scores, state, self.device).lists(queries, k, data)

    def with_users(self, data: TrainingData) -> FittedMultiVAE:
        """Return the same with the latent vectors of the users of some data."""
        latent = self._latent(np.arange(data.train.n_users, dtype=np.int32), data)
        return replace(self, arrays={**self.arrays, "latent": latent})

    def _latent(self, users: Codes, data: TrainingData) -> AnyArray:
        """Return latent vectors, ``(n_users, d)``; NaN but for ``users`` who have items."""
        encoder = restore_layers("encoder", self.arrays)
        width, hidden = (layer.weight.shape[1] for layer in encoder[::-1])
        known = users[data.train.user_counts()[users] > 0]

        def encoded(start: int, stop: int) -> AnyArray:
            rows = unit_rows(data.train, known[start:stop])
            return encoder[1](np.tanh(encoder[0](rows)))  # type: ignore[no-any-return]

        size = block_size(4 * (hidden + width))
        blocks = [np.empty((0, width), np.float32), *map_blocks(encoded, known.size, size)]
        mean, log_variance = np.split(np.concatenate(blocks), 2, axis=1)
        latent = np.full((data.train.n_users, mean.shape[1]), np.nan, dtype=np.float32)
        latent[known] = mean
        if "seed" in self.arrays:
            noise = np.random.default_rng(self.arrays["seed"]).standard_normal(latent.shape, "f4")
            latent[known] += noise[known] * np.exp(log_variance / 2)
        return latent


def _hidden(state: Mapping[str, Any], latent: Any) -> Any:
    """Return the hidden layer of the decoder for latent vectors, arrays or tensors alike."""
    hidden = restore_layers("decoder", state)[0](latent)
    return np.tanh(hidden) if isinstance(hidden, np.ndarray) else hidden.tanh()


def _scores(state: Mapping[str, Any], users: Any) -> Any:
    """Return the scores of all items for some users, ``(b, n_items)``."""
    return restore_layers("decoder", state)[1](_hidden(state, state["latent"][users]))
