"""The outputs of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Predictions, Responses, SentenceScores
from recbias.core.protocols import OUTPUTS


@dataclass(frozen=True, eq=False)
class ModelOutputs:
    """The outputs of a model; None for those that it does not provide."""

    lists: RankedLists | None
    embeddings: Embeddings | None
    sentence_scores: SentenceScores | None = None
    responses: Responses | None = None
    predictions: Predictions | None = None
    learning_curve: pd.DataFrame | None = None

    @property
    def evidence(self) -> Mapping[str, Any]:
        """The outputs that metrics measure, by name."""
        return {name: getattr(self, name) for name in OUTPUTS}
