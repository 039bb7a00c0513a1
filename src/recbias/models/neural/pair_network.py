"""The fitted form of NeuMF and DeepFM: a product of vectors plus a network on the pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.device_ranking import Ranking
from recbias.models.ranking.score_blocks import BYTES_PER_SCORE
from recbias.models.ranking.tensors import Tensor
from recbias.models.training.layers import Dense, apply_dropout, restore_layers
from recbias.models.training.samplers import EpochSampler

BYTES_PER_ENTRY = 8  # Memory per entry of a layer's output for a pair: the output and its ReLU
MAX_LOGIT = 60.0  # The sigmoid is 1 in float32 at this logit


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


@dataclass(eq=False)
class PairLearner:
    """A network on pairs in training: a ``training.loop.Learner``."""

    tensors: Any  # The parameters, with ``parameters`` and ``state``
    sampler: EpochSampler  # Samples users, items and labels
    # Takes a batch and the generator of its dropout masks; returns its loss
    batch_loss: Callable[..., Tensor]
    device: Device  # Where the fitted network ranks
    sigmoid: bool = False  # Whether the fitted network has a sigmoid
    crosses_batch: bool = False  # Whether the loss of a batch is not that of its parts
    noise: Any = field(init=False)

    def __post_init__(self) -> None:
        """Create the generator of dropout masks, which each epoch seeds."""
        import torch

        self.noise = torch.Generator(self.parameters()[0].device)

    @property
    def generators(self) -> Sequence[Any]:
        """The generator of dropout masks."""
        return (self.noise,)

    def parameters(self) -> Sequence[Tensor]:
        """Return the parameters of the network."""
        return list(self.tensors.parameters())

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return the samples of an epoch."""
        self.noise.manual_seed(int(rng.integers(2**63 - 1)))
        return self.sampler(rng)

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the sum of the losses of a batch."""
        return self.batch_loss(*batch, self.noise)

    def export(self) -> FittedPairNetwork:
        """Return the fitted network."""
        return FittedPairNetwork(self.tensors.state(), self.device, sigmoid=self.sigmoid)


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
        size = BYTES_PER_SCORE + BYTES_PER_ENTRY * int(entries)
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
        x = 1 / (1 + math.e ** -x.clip(-MAX_LOGIT, MAX_LOGIT))
    return state["user_factors"][users] @ state["item_factors"].T + state["item_bias"] + x
