"""Lists of models that learn by gradient: ranked where the model was trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from recbias.core.arrays import AnyArray
from recbias.core.queries import Queries
from recbias.core.ranked_lists import RankedLists
from recbias.core.split import TrainingData
from recbias.models.ranking import BYTES_A_SCORE, rank_by_scores
from recbias.models.tensors import Device

ScoreBlock: TypeAlias = Callable[[Mapping[str, Any], Any], Any]
"""Takes a state and user codes; returns their scores of all items, ``(b, n_items)``.

The state's entries are all arrays, or all tensors of one device, and so are the codes; what is
returned is fresh and is overwritten. A pure function; several threads call it at once.
"""


@dataclass(frozen=True, eq=False)
class Ranking:
    """How lists are made of what a model learned.

    Args:
        score_block: Scores a block of users.
        state: What the model learned.
        device: Where scores are worked out: on a CPU with arrays, elsewhere with tensors.
        bytes_a_score: Memory that a score takes while its block is worked out and ranked.
    """

    score_block: ScoreBlock
    state: Mapping[str, AnyArray]
    device: Device
    bytes_a_score: int = BYTES_A_SCORE

    def lists(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the ``k`` best-scored candidates of each user who has a training history."""
        return rank_by_scores(lambda users: self.score_block(self.state, users), queries, k, data)
