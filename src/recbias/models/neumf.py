"""The fitted form of NeuMF and DeepFM: a product of vectors plus a network on the pair.

Neural matrix factorization.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.dataset import TrainingData
from recbias.core.evidence import Embeddings, RankedLists
from recbias.core.plugins import Device, State
from recbias.core.queries import Queries
from recbias.kernels.devices import resolve_device
from recbias.models.gpu import Ranking, Tensor, copy_to_array, initialize_glorot
from recbias.models.ranking import BYTES_PER_SCORE
from recbias.models.sgd import EpochSampler, Sampler
from recbias.models.training import (
    Dense,
    NetworkLearner,
    Patience,
    TrainedModel,
    apply_dropout,
    collect_parameters,
    initialize_layers,
    restore_layers,
    store_layers,
)

_BYTES_PER_ENTRY = 8  # Memory per entry of a layer's output for a pair: the output and its ReLU
_MAX_LOGIT = 60.0  # The sigmoid is 1 in float32 at this logit


def apply_layers(
    layers: Sequence[Dense], x: Tensor, dropout: float = 0.0, noise: Any = None
) -> Tensor:
    """Apply ReLU, dropout and a dense layer for each of the layers to ``x``, ``(b, h)``.

    ``noise`` is the ``torch.Generator`` of the dropout masks.
    """
    for layer in layers:
        x = layer(apply_dropout(x.relu(), dropout, noise))
    return x


def sum_pair_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of the binary cross-entropies of pairs."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    return binary_cross_entropy_with_logits(logits, labels, reduction="sum")


class PairModel(TrainedModel):
    """Base class of the networks on pairs."""

    has_sigmoid: bool = False

    def train_pairs(
        self,
        tensors: Any,
        sampler: EpochSampler,
        batch_loss: Callable[..., Tensor],
        data: TrainingData,
        rng: np.random.Generator,
    ) -> FittedPairNetwork:
        """Train tensors (``parameters``, ``state``); the loss takes them, a batch, and noise."""
        learner = NetworkLearner(
            tensors.parameters(),
            sampler,
            partial(batch_loss, tensors),
            lambda: self.restore(tensors.state()),
            has_noise=True,
            is_uniform=True,
        )
        return self.train(type(self).__name__, learner, data, rng)

    def restore(self, state: State) -> FittedPairNetwork:
        """Return the fitted recommender of a stored state."""
        return FittedPairNetwork(state, self.device, sigmoid=self.has_sigmoid)


@dataclass(frozen=True, eq=False)
class FittedPairNetwork:
    """Scores: a product of vectors plus the output of a network on the pair.

        score(u, i) = p_u · q_i + b_i + f(z_ui)
        z_ui = W_n relu(... W_2 relu(a_u + c_i) + b_2 ...) + b_n

    ``f`` is the identity or a sigmoid. The first layer is linear in the user's and the item's part
    of its input, so each part is computed once: ``a_u`` and ``c_i``.

    Args:
        arrays: ``user_factors`` ``p`` ``(n_users, d)``, ``item_factors`` ``q`` ``(n_items, d)``,
            ``item_bias`` ``b`` ``(n_items,)``, ``user_hidden`` ``a`` ``(n_users, h)``,
            ``item_hidden`` ``c`` ``(n_items, h)``, and the layers from ``W_2``: ``deep.0.weight``
            ``(h, h_2)``, ``deep.0.bias`` and so on; the last has one output. All ``float32``.
        device: Where pairs are scored and ranked.
        sigmoid: Whether ``f`` is a sigmoid.
    """

    arrays: State
    device: Device = "cpu"
    sigmoid: bool = False

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def embeddings(self) -> Embeddings:
        """Return the vectors ``p`` and ``q``."""
        return Embeddings(self.arrays["user_factors"], self.arrays["item_factors"])

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        layers = restore_layers("deep", self.arrays)
        entries = self.arrays["item_hidden"].shape[1] + sum(layer.bias.size for layer in layers)
        size = BYTES_PER_SCORE + _BYTES_PER_ENTRY * int(entries)
        score = partial(score_block, sigmoid=self.sigmoid)
        return Ranking(score, self.arrays, self.device, size).lists(queries, k, data)


def score_block(state: Mapping[str, Any], users: Any, *, sigmoid: bool = False) -> Any:
    """Return the scores of all items for these users, ``(b, n_items)``.

    State and user codes are all arrays or all tensors; ``sigmoid`` is whether ``f`` is a sigmoid.

    >>> import numpy as np
    >>> ones = {name: np.ones((1, 1), np.float32) for name in ("user_factors", "item_factors")}
    >>> hidden = {"user_hidden": np.full((1, 1), 2.0), "item_hidden": np.full((1, 1), 3.0)}
    >>> score_block(ones | hidden | {"item_bias": np.full(1, 10.0)}, np.array([0])).tolist()
    [[16.0]]
    """
    x = state["user_hidden"][users][:, None] + state["item_hidden"]
    for layer in restore_layers("deep", state):
        x = layer(x.clip(0))
    x = x[..., 0]
    if sigmoid:
        x = 1 / (1 + math.e ** -x.clip(-_MAX_LOGIT, _MAX_LOGIT))
    return state["user_factors"][users] @ state["item_factors"].T + state["item_bias"] + x


_WIDTHS = (2, 4, 2, 1)
"""Sizes of the network's input and layers, in multiples of the embedding size."""


@dataclass(frozen=True, kw_only=True)
class NeuMF(PairModel):
    """Add a matrix factorization and a neural network on separate vectors (He et al. 2017).

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y)
        s_ui = h · (p_u ⊙ q_i) + g · φ(m_u, n_i) + b

    ``p``, ``q`` are the vectors of the factorization (GMF) and ``m``, ``n`` those of the network
    (MLP), all of size ``embedding_size`` f. ``φ`` has ReLU layers of sizes 4f, 2f and f on the
    concatenation of ``m_u`` and ``n_i``. An epoch has every training pair with y = 1 and, per
    pair, ``negatives`` items with y = 0 that the user does not have. Both parts are trained
    together by Adam, without pre-training, from Glorot-uniform values. A user without training
    items has an empty list.

    The embeddings are ``h ⊙ p_u`` and ``q_i``; their product is the score of the factorization.

    Args:
        embedding_size: Size f of the vectors; the layer sizes are multiples of it.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step, including negatives.
        learning_rate: Learning rate of Adam.
        negatives: Negative items per training pair.
        dropout: Dropout rate of the inputs of the layers.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        He, Liao, Zhang, Nie, Hu and Chua, "Neural Collaborative Filtering", WWW 2017, equations 7
        and 12, section 3.4.
    """

    embedding_size: Annotated[int, Gt(0)] = 16
    epochs: Annotated[int, Gt(0)] = 7
    batch_size: Annotated[int, Gt(0)] = 2048
    learning_rate: Annotated[float, Gt(0)] = 0.001
    negatives: Annotated[int, Gt(0)] = 4
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.0
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedPairNetwork:
        """Train on the training pairs and sampled negatives."""
        n_rows, device = (data.train.n_users, data.train.n_items), resolve_device(self.device)
        tensors = _NeuMFTensors.initialize(n_rows, self.embedding_size, device, rng)
        sampler = Sampler.from_interactions(data.train)
        sample = partial(sampler.sample_with_negatives, self.negatives, unseen=True)
        return self.train_pairs(tensors, sample, self._sum_losses, data, rng)

    def _sum_losses(
        self, tensors: _NeuMFTensors, users: Tensor, items: Tensor, labels: Tensor, noise: Any
    ) -> Tensor:
        return sum_pair_losses(tensors.score(users, items, self.dropout, noise), labels)


@dataclass(frozen=True, eq=False)
class _NeuMFTensors:
    """The parameters of NeuMF."""

    gmf_users: Tensor  # ``p``, ``(n_users, f)``
    gmf_items: Tensor  # ``q``, ``(n_items, f)``
    mlp_users: Tensor  # ``m``, ``(n_users, f)``
    mlp_items: Tensor  # ``n``, ``(n_items, f)``
    layers: Sequence[Dense]  # The layers of ``φ``
    output: Dense  # The weights ``h`` and ``g``, stacked in one column, and the bias ``b``

    @classmethod
    def initialize(
        cls, n_rows: tuple[int, int], embedding_size: int, device: Any, rng: np.random.Generator
    ) -> _NeuMFTensors:
        p, q, m, n = (
            initialize_glorot((size, embedding_size), device, rng) for size in 2 * n_rows
        )
        layers = initialize_layers([embedding_size * width for width in _WIDTHS], device, rng)
        return cls(p, q, m, n, layers, Dense.initialize(2 * embedding_size, 1, device, rng))

    def parameters(self) -> Sequence[Tensor]:
        tables = [self.gmf_users, self.gmf_items, self.mlp_users, self.mlp_items]
        return [*tables, *collect_parameters([*self.layers, self.output])]

    def score(
        self, users: Tensor, items: Tensor, dropout: float = 0.0, noise: Any = None
    ) -> Tensor:
        """Return the scores of pairs, ``(b,)``."""
        import torch

        products = self.gmf_users.index_select(0, users) * self.gmf_items.index_select(0, items)
        vectors = [self.mlp_users.index_select(0, users), self.mlp_items.index_select(0, items)]
        first, *upper_layers = self.layers
        lowest = first(apply_dropout(torch.cat(vectors, 1), dropout, noise))
        hidden = apply_layers(upper_layers, lowest, dropout, noise)
        return self.output(torch.cat([products, hidden.relu()], 1))[:, 0]

    def state(self) -> State:
        first, *upper_layers = self.layers
        f = self.gmf_items.shape[1]
        last = Dense(self.output.weight[f:], self.output.bias)
        return {
            "user_factors": copy_to_array(self.gmf_users * self.output.weight[:f, 0]),
            "item_factors": copy_to_array(self.gmf_items),
            "item_bias": np.zeros(len(self.gmf_items), dtype=np.float32),
            "user_hidden": copy_to_array(self.mlp_users @ first.weight[:f]),
            "item_hidden": copy_to_array(self.mlp_items @ first.weight[f:] + first.bias),
            **store_layers("deep", [*upper_layers, last]),
        }
