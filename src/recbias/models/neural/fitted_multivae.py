"""The fitted form of MultiVAE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Codes, Matrix
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.device_ranking import Ranking
from recbias.models.training.layers import restore_layers
from recbias.numerics.sparse.blocks import block_size, map_blocks


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
