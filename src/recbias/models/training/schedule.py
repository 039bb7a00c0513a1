"""How long and by what steps a model is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

LARGE = ("negatives", "embedding_size")
"""Settings beside the batch that memory grows with."""


class Trained(Protocol):
    """The settings that all models have that are trained here."""

    @property
    def epochs(self) -> int:
        """How often an epoch is gone through, at most."""
        ...

    @property
    def batch_size(self) -> int:
        """Samples in a step, where a step is not one sample."""
        ...

    @property
    def learning_rate(self) -> float:
        """Length of a step."""
        ...

    @property
    def patience(self) -> int:
        """Epochs without a better one before the best is taken; 0 does not look."""
        ...


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How a learner is trained.

    Args:
        name: The model, in progress and messages.
        epochs: How often an epoch is drawn and gone through, at most.
        batch_size: Samples in a step; of a learner of ``SingleSteps`` only on a GPU.
        learning_rate: Length of a step.
        optimizer: ``adam`` with its usual moments, or plain ``sgd``. A loss is a sum, so that a
            step of ``sgd`` is about as many steps of one sample.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        threads: Cores that a CPU may use. One is fastest for look-ups of vectors, and sums come
            out the same on every machine; large matrix products gain by more.
        mixed: Do matrix products in bfloat16 on CUDA.
        others: Further settings of the model by name, for messages that say which to lower.
    """

    name: str
    epochs: int
    batch_size: int
    learning_rate: float
    optimizer: Literal["adam", "sgd"] = "adam"
    patience: int = 0
    threads: int = 1
    mixed: bool = False
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Trained, name: str, optimizer: Literal["adam", "sgd"] = "adam") -> Schedule:
        """Return the schedule that a model's own settings say."""
        return cls(
            name=name,
            epochs=model.epochs,
            batch_size=model.batch_size,
            learning_rate=model.learning_rate,
            optimizer=optimizer,
            patience=model.patience,
            others={name: each for name, each in vars(model).items() if _is_to_lower(name)},
        )


def _is_to_lower(name: str) -> bool:
    return name in LARGE or name.startswith("reg")
