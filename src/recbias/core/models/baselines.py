"""Models that change a pretrained model, which is the baseline of their quality."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class HasBaseline(Protocol):
    """A model that trains a pretrained language model further."""

    def without_training(self) -> Any:
        """Return the pretrained model, the same for all settings of the training."""
