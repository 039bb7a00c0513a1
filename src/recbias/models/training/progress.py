"""The progress of a training: validation scores, early stopping and checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import FittedRecommender
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import has_validation_listener, report_validation
from recbias.models.ranking.tensors import Tensor, copy_to_array, place_like
from recbias.models.training.optimizer import Optimizer
from recbias.numerics.ranking_gain import normalize_gain, rank_discounts

LIST_LENGTH = 10  # The length of the lists that are validated


@dataclass
class EarlyStopping:
    """The validation scores of the epochs and the parameters of the best epoch."""

    is_possible: bool  # Whether there are validation data; without them no epoch is validated
    # Number of epochs without improvement before training stops; 0 never stops and uses the last
    # epoch
    patience: int
    scores: list[float] = field(default_factory=list)  # The validation score of each epoch
    # Copies of the parameters of the best epoch
    best: Sequence[Any] = field(default_factory=tuple)

    @property
    def is_active(self) -> bool:
        """Whether epochs are validated: it is possible and the scores are used."""
        return self.is_possible and (self.patience > 0 or has_validation_listener())

    @property
    def should_stop(self) -> bool:
        """Whether the patience is exhausted."""
        return 0 < self.patience <= len(self.scores) - 1 - self._best_epoch

    def record(self, score: float, parameters: Sequence[Any]) -> None:
        """Record an epoch's validation score; higher is better. Copy the tensors of the best."""
        self.scores.append(score)
        if self.patience > 0 and self._best_epoch == len(self.scores) - 1:
            self.best = [tensor.detach().clone() for tensor in parameters]
        report_validation(len(self.scores), score)

    def resume(self, scores: Sequence[float], best: Sequence[Any]) -> None:
        """Continue from the scores and the best parameters of a checkpoint; report the scores."""
        self.scores, self.best = list(scores), best
        for epoch, score in enumerate(scores, start=1):
            report_validation(epoch, score)

    def restore(self, parameters: Sequence[Any]) -> None:
        """Copy the values of the best epoch to the tensors, if epochs were validated."""
        for tensor, best in zip(parameters, self.best, strict=bool(self.best)):
            tensor.data.copy_(best)

    @property
    def _best_epoch(self) -> int:
        """The index of the first of the best epochs, -1 before the first epoch."""
        return max(range(len(self.scores)), key=self.scores.__getitem__, default=-1)


def has_validation_users(data: TrainingData) -> bool:
    """Return whether a user has rows in both the training and the validation part."""
    return bool(_select_validation_users(data).size)


def validation_ndcg(fitted: FittedRecommender, data: TrainingData, k: int = LIST_LENGTH) -> float:
    """Return the mean nDCG@k on the validation part over the users with rows in both parts.

    The relevant items of a user are the validation items. NaN if no user has rows in both parts.
    """
    users = _select_validation_users(data)
    if data.validation is None or not users.size:
        return float("nan")
    relevant = data.validation.binary
    n_relevant = np.diff(relevant.indptr)[users]
    ids = data.train.user_ids.take(users)
    labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "query")
    lists = fitted.recommend(Queries(ids, labels, users.astype(np.int32)), k, data)
    items = np.maximum(lists.items, 0)
    hits = np.asarray(relevant[users][np.arange(users.size)[:, None], items].todense())
    gains = (hits * lists.filled) @ rank_discounts(k)
    return float(np.mean(normalize_gain(gains, n_relevant, k)))


def _select_validation_users(data: TrainingData) -> AnyArray:
    if data.validation is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((data.validation.user_counts() > 0) & (data.train.user_counts() > 0))


@runtime_checkable
class HasBuffers(Protocol):
    """A learner whose losses depend on tensors without gradients, such as a step count."""

    def buffers(self) -> Sequence[Tensor]:
        """Return these tensors, always the same objects; the learner changes them in place."""


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Everything that the next epoch depends on."""

    parameters: Sequence[Tensor]  # The trainable tensors
    buffers: Sequence[Tensor]  # The other tensors of the learner
    optimizer: Optimizer  # The optimizer with its moments
    stopping: EarlyStopping  # The validation scores and the best epoch
    rng: np.random.Generator  # The generator that samples the epochs
    losses: list[float] = field(
        default_factory=list
    )  # The mean loss of each epoch, or the losses of each step

    def arrays(
        self, epoch: int, step: int = 0, rng_state: Mapping[str, Any] | None = None
    ) -> Mapping[str, AnyArray]:
        """Return the state after an epoch, or after ``step`` steps of the epoch that follows it.

        ``rng_state`` is the state of the generator before that epoch was sampled.
        """
        generator = self.rng.bit_generator.state if rng_state is None else rng_state
        return {
            "epoch": np.array(epoch),
            "step": np.array(step),
            "rng": np.array(json.dumps(generator)),
            "losses": np.array(self.losses, dtype=np.float64),
            "curve": np.array(self.stopping.scores, dtype=np.float64),
            **_name_arrays("parameter", self.parameters),
            **_name_arrays("memory", self.buffers),
            **_name_arrays("kept", self.stopping.best),
            **self.optimizer.state(),
        }

    def resume(self, arrays: Mapping[str, AnyArray] | None) -> tuple[int, int]:
        """Restore the state of a checkpoint, if there is one.

        Returns:
            The number of completed epochs, and of completed steps of the next epoch.
        """
        if arrays is None:
            return 0, 0
        for kind, tensors in (("parameter", self.parameters), ("memory", self.buffers)):
            for index, tensor in enumerate(tensors):
                tensor.data.copy_(place_like(arrays[f"{kind}.{index}"], tensor.data))
        self.optimizer.restore(arrays)
        self.losses[:] = arrays["losses"].tolist()
        self.rng.bit_generator.state = json.loads(str(arrays["rng"]))
        best = [
            place_like(arrays[f"kept.{index}"], tensor.data)
            for index, tensor in enumerate(self.parameters)
            if f"kept.{index}" in arrays
        ]
        self.stopping.resume(arrays["curve"].tolist(), best)
        return int(arrays["epoch"]), int(arrays["step"])


def _name_arrays(kind: str, tensors: Sequence[Tensor]) -> dict[str, AnyArray]:
    return {f"{kind}.{index}": copy_to_array(tensor) for index, tensor in enumerate(tensors)}
