"""The settings of a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MEMORY_SETTINGS = ("negatives", "embedding_size")
"""Settings besides the batch size that increase the memory use."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The settings of a training.

    Args:
        name: The model, in progress and error messages.
        epochs: Maximum number of epochs.
        batch_size: Samples per step; for a learner with ``SampleSteps`` only on a GPU.
        learning_rate: The learning rate.
        optimizer: ``adam`` with default moments, or plain ``sgd``. A loss is a sum, so that a step
            of ``sgd`` on a batch approximates as many steps on single samples.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        threads: Number of CPU threads. One is fastest for embedding look-ups and makes sums
            reproducible across machines; large matrix products profit from more.
        mixed: Compute matrix products in bfloat16 on CUDA.
        settings: Further settings of the model by name, for error messages.
    """

    name: str
    epochs: int
    batch_size: int
    learning_rate: float
    optimizer: Literal["adam", "sgd"] = "adam"
    patience: int = 0
    threads: int = 1
    mixed: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_model(
        cls, model: Any, name: str, optimizer: Literal["adam", "sgd"] = "adam"
    ) -> Schedule:
        """Return the schedule that the settings of a model define."""
        return cls(
            name=name,
            epochs=model.epochs,
            batch_size=model.batch_size,
            learning_rate=model.learning_rate,
            optimizer=optimizer,
            patience=model.patience,
            settings={
                name: value
                for name, value in vars(model).items()
                if name in MEMORY_SETTINGS or name.startswith("reg")
            },
        )
