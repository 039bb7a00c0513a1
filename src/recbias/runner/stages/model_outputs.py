"""The outputs of a model, and the identifiers of the reviews that it predicts items of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.interactions import Interactions
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


def make_review_ids(reviews: Reviews, rows: Interactions) -> Ids:
    """Return an identifier of each review: user, item, and its number among those of the pair."""
    pairs = pd.DataFrame({"user": reviews.users, "item": reviews.items})
    numbers = pairs.groupby(["user", "item"]).cumcount().to_numpy() + 1
    users, items = rows.user_ids.ids[reviews.users], rows.item_ids.ids[reviews.items]
    triples = zip(users, items, numbers, strict=True)
    return np.array([f"{user}:{item}:{number}" for user, item, number in triples], dtype=object)
