"""What the sequential models share: their fitted form, and their learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.ranking.tensors import (
    Tensor,
    copy_to_array,
    create_parameter,
    create_torch_generator,
)
from recbias.models.sequential.attention import Parameters
from recbias.models.sequential.histories import Histories, pad_windows, require_times
from recbias.models.training.loop import TrainedModel
from recbias.numerics.devices import resolve_device

ENCODED_TOKENS = 2**15
"""The number of items, padding included, that are encoded together for recommendation."""


class Network(Protocol):
    """The settings of a sequential model, which turn histories to vectors."""

    device: Device

    @property
    def longest(self) -> int:
        """The number of last items that are encoded for recommendation."""

    def encode(self, parameters: Parameters, histories: Tensor) -> Tensor:
        """Return the vector that predicts the item after each history, ``(b, d)``.

        Histories are item codes, ``int64 (b, n)``, with the padding before them, whose code is the
        number of items.
        """


@dataclass(frozen=True, eq=False)
class FittedSequenceModel:
    """A trained network that reads a history and scores the next item.

        score(u, i) = h_u · q_i + b_i

    ``h_u`` is the vector of the history of user u.

    Args:
        network: The settings of the model.
        arrays: The weights by name, with ``items.weight`` ``q`` ``(n_items, d)`` and, unless
            it is 0, ``items.bias`` ``b`` ``(n_items,)``; and ``users``, the vectors of the
            training users, ``(n_users, d)``, NaN for a user without history.
    """

    network: Network
    arrays: State

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def embeddings(self) -> Embeddings:
        """Return the vectors whose product is the score without the item bias."""
        return Embeddings(self.arrays["users"], self.arrays["items.weight"])

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, from the user's history in ``data``."""
        users = np.unique(queries.users[queries.users >= 0])
        items, bias = self.arrays["items.weight"], self.arrays.get("items.bias")
        factors = FittedFactors(self._encode(users, data), items, bias, self.network.device)
        return factors.recommend(queries, k, data)

    def encode_users(self, data: TrainingData) -> FittedSequenceModel:
        """Return a copy with the vectors of the users of these data."""
        vectors = self._encode(np.arange(data.train.n_users), data)
        return replace(self, arrays={**self.arrays, "users": vectors})

    def _encode(self, users: AnyArray, data: TrainingData) -> AnyArray:
        """Return the vectors of ``users`` with a history, ``(n_users, d)``; others are NaN."""
        import torch

        device = resolve_device(self.network.device)
        histories = Histories.from_interactions(data.train)
        n_items, size = self.arrays["items.weight"].shape
        vectors = np.full((data.train.n_users, size), np.nan, dtype=np.float32)
        active = users[np.diff(histories.starts)[users] > 0]
        if not active.size:
            return vectors
        firsts, counts = histories.select_last(active, self.network.longest)
        order = np.argsort(counts, kind="stable")
        with torch.no_grad():
            parameters = {
                name: torch.tensor(array, device=device) for name, array in self.arrays.items()
            }
            items = _to_tensor(histories.items, device)
            for rows in _split_by_length(order, counts[order]):
                windows = [_to_tensor(array[rows], device) for array in (firsts, counts)]
                padded = pad_windows(items, windows[0], windows[1], n_items)
                vectors[active[rows]] = copy_to_array(self.network.encode(parameters, padded))
        return vectors


def _split_by_length(order: AnyArray, counts: AnyArray) -> list[AnyArray]:
    """Split rows of ascending lengths so that a part has about ``ENCODED_TOKENS`` items."""
    parts, start = [], 0
    longest = int(counts[-1])
    while start < order.size:
        stop = start + max(1, ENCODED_TOKENS // longest)
        parts.append(order[start:stop])
        start = stop
    return parts


class SequenceModel(TrainedModel):
    """Base class of the models that learn from the order of each user's interactions."""

    needs: ClassVar[frozenset[str]] = frozenset({"train", "times"})

    def check_data(self, data: TrainingData) -> None:
        """Raise UnknownColumn if the training interactions have no times."""
        require_times(data, type(self).__name__)

    def restore(self, state: State) -> FittedSequenceModel:
        """Return the fitted recommender of a stored state."""
        return FittedSequenceModel(self, state)  # type: ignore[arg-type]

    def train_windows(
        self,
        data: TrainingData,
        rng: np.random.Generator,
        arrays: State,
        cut_windows: Callable[[np.random.Generator], Sequence[AnyArray]],
        batch_loss: Callable[..., Tensor],
    ) -> FittedSequenceModel:
        """Train on windows of the histories.

        ``cut_windows`` returns the windows of an epoch as arrays of one length. ``batch_loss``
        takes the parameters by name, the generator of noise, and tensors: all histories, and the
        slices of these arrays of a batch.
        """
        name, device = type(self).__name__, resolve_device(self.device)
        require_times(data, name)
        histories = Histories.from_interactions(data.train)
        learner = _Learner(
            self,
            {key: create_parameter(array, device) for key, array in arrays.items()},
            _to_tensor(histories.items, device),
            cut_windows,
            batch_loss,
        )
        return self.train(name, learner, data, rng).encode_users(data)


@dataclass(eq=False)
class _Learner:
    """A network in training: a ``training.loop.Learner``."""

    model: Any
    tensors: Parameters
    items: Tensor  # All histories, concatenated
    cut_windows: Callable[[np.random.Generator], Sequence[AnyArray]]
    batch_loss: Callable[..., Tensor]
    noise: Any = field(default=None, init=False)

    def parameters(self) -> Sequence[Tensor]:
        return list(self.tensors.values())

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        self.noise = create_torch_generator(rng, self.items.device)
        windows = self.cut_windows(rng)
        order = rng.permutation(len(windows[0]))
        return [array[order] for array in windows]

    def loss(self, *batch: Tensor) -> Tensor:
        return self.batch_loss(self.tensors, self.noise, self.items, *batch)

    def export(self) -> FittedSequenceModel:
        arrays = {name: copy_to_array(tensor) for name, tensor in self.tensors.items()}
        return FittedSequenceModel(self.model, arrays)


def _to_tensor(array: AnyArray, device: Any) -> Tensor:
    import torch

    return torch.tensor(array, dtype=torch.int64, device=device)
