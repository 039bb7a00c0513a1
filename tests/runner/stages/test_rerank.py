from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import Codes
from recbias.core.errors import BrokenContract
from recbias.core.plugins import Candidates
from recbias.runner.stages import RerankLists
from support.worlds.candidate_worlds import make_candidates
from support.worlds.query_sets import make_queries

CANDIDATES = make_candidates([[0, 1, 2], [3, 1, -1]], [[4], [5]])
QUERIES = make_queries(["u0", "u1"], [0, 1])


@dataclass(frozen=True)
class Returns:
    """Returns the same positions for any candidates."""

    positions: Any

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        assert len(candidates.lists) == 2
        assert candidates.histories.indices.tolist() == [4, 5]
        return np.array(self.positions)


def rerank(positions: Any, k: int = 2) -> Any:
    return RerankLists(Returns(positions), k).rerank(CANDIDATES.lists, QUERIES, CANDIDATES.data)


def test_positions_become_items_with_reciprocal_ranks_as_scores() -> None:
    lists = rerank([[2, 0], [1, -1]])
    assert lists.items.tolist() == [[2, 0], [1, -1]]
    np.testing.assert_array_equal(lists.scores, np.array([[1, 0.5], [1, np.nan]], np.float32))
    assert lists.outside is CANDIDATES.lists.outside


@pytest.mark.parametrize(
    ("positions", "problem"),
    [
        ([[2, 0]], "positions int64"),
        ([[2.0, 0.0], [0.0, 1.0]], "positions float64"),
        ([[3, 0], [0, 1]], "outside -1 to 2"),
        ([[0, 1], [-1, 0]], "after an empty one"),
        ([[0, 0], [0, 1]], "twice"),
        ([[0, 1], [2, 0]], "empty position of the candidates"),
    ],
)
def test_positions_that_are_no_list_are_faults_of_the_re_ranker(
    positions: Any, problem: str
) -> None:
    with pytest.raises(BrokenContract, match=problem) as caught:
        rerank(positions)
    assert "Returns.rerank()" in str(caught.value)
    assert caught.value.remedy
