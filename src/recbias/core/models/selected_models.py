"""Models as settings of other models: an entry inside another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import FittedRecommender


@dataclass(frozen=True)
class SelectedModel:
    """A model as the setting of another: its name and its settings, as in ``models:``.

    Args:
        name: Its registered name; of ``./file.py:Name`` with the absolute path.
        model: The recommender.
    """

    name: str
    model: Any

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> dict[str, object]:
        """Let pydantic find the model that a text stands for among those of its context."""
        find = {"type": "with-info", "function": lambda text, info: info.context[text]}
        return {"type": "function-plain", "function": find}


@runtime_checkable
class ReordersCandidates(Protocol):
    """A recommender that reorders the candidates of another.

    The other model is fitted, or restored, as if it stood in the spec by itself, so that its
    stored training is shared with it.
    """

    @property
    def candidates(self) -> SelectedModel:
        """The other model."""

    def wrap(
        self, fitted: FittedRecommender, data: TrainingData, rng: np.random.Generator
    ) -> FittedRecommender:
        """Return the recommender that reorders the lists of the fitted other model."""
