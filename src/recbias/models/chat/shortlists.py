"""The candidates of a query, and the random orders in which a chat model is shown them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.seeds import make_generator
from recbias.language.prompts.recommendation_prompts import (
    HistoryItem,
    RecommendationPrompt,
    RenderedPrompt,
)


@dataclass(frozen=True)
class Presentation:
    """How candidates are shown to a chat model.

    Args:
        prompt: The prompt.
        mitigation: A sentence that is added to it; None for the plain prompt.
        n_candidates: The largest number of candidates.
        n_orders: The number of orders in which they are shown.
        seed: The seed of the orders.
    """

    prompt: RecommendationPrompt
    mitigation: str | None
    n_candidates: int
    n_orders: int
    seed: int

    def sample_orders(self, query_id: str, n: int) -> AnyArray:
        """Return random orders of ``n`` candidates, which depend on the seed and the query."""
        rng = make_generator(self.seed, "order", query_id)
        return rng.permuted(np.tile(np.arange(n), (self.n_orders, 1)), axis=1)

    def render(
        self, history: Sequence[HistoryItem], candidates: Sequence[HistoryItem], orders: AnyArray
    ) -> list[RenderedPrompt]:
        """Return the prompt of each order."""
        return [
            self.prompt.render(
                history,
                n_items=len(candidates),
                candidates=[candidates[position] for position in order],
                mitigation=self.mitigation,
            )
            for order in orders.tolist()
        ]


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The candidates of one query.

    Args:
        row: The position of the query.
        columns: Their ranks in the list of the other model, from 0.
        titles: Their titles and years, in this order.
        orders: The orders in which they are shown, ``int64[orders, n]``.
        prompts: The prompt of each order.
    """

    row: int
    columns: AnyArray
    titles: Sequence[HistoryItem]
    orders: AnyArray
    prompts: Sequence[RenderedPrompt]
