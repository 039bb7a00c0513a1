"""LensKit's unpersonalised scorers, under their own names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.models.libraries.lenskit_adapter import LIBRARIES, note_equal_ratings, trained
from recbias.models.ranking.score_blocks import rank_rows


@dataclass(frozen=True, kw_only=True)
class LensKitPopular:
    """Rank items by their number of training interactions (LensKit's popularity).

        score(u, i) = n_i,   its rank,   or   Σ_{j : n_j ≤ n_i} n_j / Σ_j n_j

    ``n_i`` is the number of training interactions of i. The three ``score`` forms give items with
    equal counts other scores (``quantile``) or the same ones, and else the same order.

    Args:
        score: ``quantile`` (LensKit's default), ``rank`` or ``count``.

    Source:
        Ekstrand, "LensKit for Python", CIKM 2020.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    score: Literal["quantile", "rank", "count"] = "quantile"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemScores:
        """Count the interactions of each item."""
        from lenskit.basic import PopScorer

        return FittedItemScores(trained(PopScorer(score=self.score), data, rng).item_scores_)

    def restore(self, state: State) -> FittedItemScores:
        """Return the fitted recommender of a stored state."""
        return FittedItemScores(state["item_scores"])


@dataclass(frozen=True, kw_only=True)
class LensKitBias:
    """Rank items by how much better than average they are rated (LensKit's bias model).

        score(u, i) = b + b_i,   b_i = Σ_{u in U_i} (r_ui - b) / (|U_i| + damping)

    ``b`` is the mean rating. The user's own offset does not change the order of a list and is left
    out.

    Args:
        damping: How many average ratings each item is taken to have before its own.

    Source:
        Ekstrand, "LensKit for Python", CIKM 2020; Funk, "Netflix Update: Try This at Home", 2006.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = LIBRARIES

    damping: Annotated[float, Ge(0)] = 0.0

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemScores:
        """Average the ratings of each item."""
        from lenskit.basic import BiasScorer

        note_equal_ratings(data, "lenskit/Bias")
        model = trained(BiasScorer(damping=self.damping), data, rng).model_
        return FittedItemScores((model.global_bias + model.item_biases).astype(np.float32))

    def restore(self, state: State) -> FittedItemScores:
        """Return the fitted recommender of a stored state."""
        return FittedItemScores(state["item_scores"])


@dataclass(frozen=True, eq=False)
class FittedItemScores:
    """One score an item, the same for everybody, ``float32[n_items]``."""

    item_scores: npt.NDArray[np.float32]

    def state(self) -> State:
        """Return the arrays."""
        return {"item_scores": self.item_scores}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first."""
        scores = self.item_scores
        return rank_rows(lambda rows: np.tile(scores, (rows.size, 1)), queries.users, k, data)
