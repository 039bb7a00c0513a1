"""The losses that a training recorded."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pandas as pd


@runtime_checkable
class HasLearningCurve(Protocol):
    """A fitted model that recorded the losses of its training."""

    def learning_curve(self) -> pd.DataFrame | None:
        """Return the columns of ``LEARNING_CURVE``; None if nothing was trained."""
