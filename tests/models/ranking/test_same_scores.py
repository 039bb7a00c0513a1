"""Lists of scores that all users share are those of ranking the scores of each user."""

from __future__ import annotations

import numpy as np
import pytest

from recbias.models import ranking
from recbias.models.ranking import rank_by_same_scores, rank_rows
from support.models.recommending import make_random_data


@pytest.mark.parametrize("k", [1, 5, 60])
@pytest.mark.parametrize("max_cells", [1, 40, 2**23])
def test_lists_are_those_of_rows_of_scores(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, k: int, max_cells: int
) -> None:
    monkeypatch.setattr(ranking, "MAX_CELLS", max_cells)
    data = make_random_data(rng)
    scores = rng.integers(0, 4, 45).astype(np.float32)  # many ties
    users = np.append(rng.permutation(60), [-1, 3, 3]).astype(np.int32)
    expected = rank_rows(lambda rows: np.tile(scores, (rows.size, 1)), users, k, data)
    lists = rank_by_same_scores(scores, users, k, data)
    assert np.array_equal(lists.items, expected.items)
    assert np.array_equal(lists.scores, expected.scores, equal_nan=True)
