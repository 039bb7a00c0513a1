"""LensKit's baselines, which give all users the same scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.models.libraries.lenskit_adapter import (
    LensKitModel,
    warn_about_equal_ratings,
)
from recbias.models.ranking.score_blocks import rank_rows


class ItemScoreModel(LensKitModel):
    """Base class of the models that give all users the same scores."""

    def restore(self, state: State) -> FittedItemScores:
        """Return the fitted recommender of a stored state."""
        return FittedItemScores(state["item_scores"])


@dataclass(frozen=True, kw_only=True)
class LensKitPopular(ItemScoreModel):
    """Rank items by their number of training interactions (LensKit's popularity).

        score(u, i) = n_i,   its rank,   or   Σ_{j : n_j ≤ n_i} n_j / Σ_j n_j

    ``n_i`` is the number of training interactions of i. The three ``score`` forms differ in the
    order of items with equal counts only.

    Args:
        score: ``quantile`` (LensKit's default), ``rank`` or ``count``.

    Source:
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    score: Literal["quantile", "rank", "count"] = "quantile"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemScores:
        """Count the interactions of each item."""
        from lenskit.basic import PopScorer

        return FittedItemScores(self.train(PopScorer, data, rng).item_scores_)


@dataclass(frozen=True, kw_only=True)
class LensKitBias(ItemScoreModel):
    """Rank items by their damped mean rating (LensKit's bias model).

        score(u, i) = b + b_i,   b_i = Σ_{u in U_i} (r_ui - b) / (|U_i| + damping)

    ``b`` is the mean rating and ``U_i`` are the users who rated i. The user bias does not change
    the order of a list and is excluded.

    Args:
        damping: Number of additional average ratings assumed for each item.

    Source:
        Ekstrand, "LensKit for Python", CIKM 2020; Funk, "Netflix Update: Try This at Home", 2006.
    """

    damping: Annotated[float, Ge(0)] = 0.0

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemScores:
        """Average the ratings of each item."""
        from lenskit.basic import BiasScorer

        warn_about_equal_ratings(data, "lenskit/Bias")
        model = self.train(BiasScorer, data, rng).model_
        return FittedItemScores((model.global_bias + model.item_biases).astype(np.float32))


@dataclass(frozen=True, eq=False)
class FittedItemScores:
    """One score per item, the same for all users, ``float32[n_items]``."""

    item_scores: npt.NDArray[np.float32]

    def state(self) -> State:
        """Return the scores as a named array."""
        return {"item_scores": self.item_scores}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        scores = self.item_scores
        return rank_rows(lambda rows: np.tile(scores, (rows.size, 1)), queries.users, k, data)
