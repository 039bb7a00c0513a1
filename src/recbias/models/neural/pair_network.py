"""What models learn that score a user and an item by a network on both: NeuMF and DeepFM."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.device_ranking import Ranking
from recbias.models.ranking.score_blocks import BYTES_PER_SCORE
from recbias.models.ranking.tensors import Device, Tensor
from recbias.models.training.layers import Dense, apply_dropout, restore_layers

BYTES_AN_ENTRY = 8
"""Memory of an entry of a layer's output for a pair: itself, and once more without negatives."""

LARGEST = 60.0
"""Where a sigmoid has reached its end."""


def onward(layers: Sequence[Dense], x: Tensor, dropout: float = 0.0, noise: Any = None) -> Tensor:
    """Return the output of layers, each of which takes what is positive of the one before.

    Args:
        layers: Any number.
        x: The output of a first layer, ``(b, h)``.
        dropout: Share of the entries of each layer's input that is left out by chance.
        noise: The ``torch.Generator`` that says which.
    """
    for layer in layers:
        x = layer(apply_dropout(x.relu(), dropout, noise))
    return x


@dataclass(frozen=True, eq=False)
class FittedPairNetwork:
    """Scores that are a product of vectors plus the output of a network on the pair.

        score(u, i) = p_u · q_i + b_i + f(z_ui)
        z_ui = W_n relu(... W_2 relu(a_u + c_i) + b_2 ...) + b_n

    ``f`` is nothing or a sigmoid. The network's first layer takes the user's part and the item's
    part of its input, so that each part is worked out once: ``a_u`` and ``c_i``.

    Args:
        arrays: ``user_factors`` ``p`` ``(n_users, d)``, ``item_factors`` ``q`` ``(n_items, d)``,
            ``item_bias`` ``b`` ``(n_items,)``, ``user_hidden`` ``a`` ``(n_users, h)``,
            ``item_hidden`` ``c`` ``(n_items, h)`` and, from ``W_2`` on, ``deep.0.weight`` ``(h,
            h_2)``, ``deep.0.bias`` and so on; the last has one column. All ``float32``.
        device: Where pairs are scored.
        squashed: Whether ``f`` is a sigmoid.
    """

    arrays: State
    device: Device = "cpu"
    squashed: bool = False

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def embeddings(self) -> Embeddings:
        """Return the vectors ``p`` and ``q``."""
        return Embeddings(self.arrays["user_factors"], self.arrays["item_factors"])

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first."""
        score_block = partial(pair_scores, squashed=self.squashed)
        ranking = Ranking(score_block, self.arrays, self.device, self._bytes_a_score)
        return ranking.lists(queries, k, data)

    @property
    def _bytes_a_score(self) -> int:
        layers = restore_layers("deep", self.arrays)
        entries = self.arrays["item_hidden"].shape[1] + sum(each.bias.size for each in layers)
        return BYTES_PER_SCORE + BYTES_AN_ENTRY * int(entries)


def pair_scores(state: Mapping[str, Any], users: Any, *, squashed: bool = False) -> Any:
    """Return the scores of all items for some users, ``(b, n_items)``.

    Args:
        state: The arrays of a ``FittedPairNetwork``, or tensors of one device.
        users: User codes, ``(b,)``, of the same kind.
        squashed: Whether the network's output goes through a sigmoid.

    >>> import numpy as np
    >>> ones = {name: np.ones((1, 1), np.float32) for name in ("user_factors", "item_factors")}
    >>> hidden = {"user_hidden": np.full((1, 1), 2.0), "item_hidden": np.full((1, 1), 3.0)}
    >>> pair_scores(ones | hidden | {"item_bias": np.full(1, 10.0)}, np.array([0])).tolist()
    [[16.0]]
    """
    x = state["user_hidden"][users][:, None] + state["item_hidden"]
    for layer in restore_layers("deep", state):
        x = layer(x.clip(0))
    x = x[..., 0]
    if squashed:
        x = 1 / (1 + math.e ** -x.clip(-LARGEST, LARGEST))
    return state["user_factors"][users] @ state["item_factors"].T + state["item_bias"] + x
