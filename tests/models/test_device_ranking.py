from __future__ import annotations

import numpy as np

from asked import asked
from recbias.core.split import TrainingData
from recbias.models.device_ranking import Ranking
from worlds import rows


def test_the_state_is_what_scores_are_made_of() -> None:
    data = TrainingData(rows([(0, 0), (1, 1), (1, 2)], n_users=2, n_items=3))
    state = {"p": np.array([[1], [2]], dtype=np.float32), "q": np.array([[3, 4, 5]], "f4")}
    ranking = Ranking(lambda held, users: held["p"][users] @ held["q"], state, "cpu")
    lists = ranking.lists(asked(["a", "b"]), 2, data)
    assert lists.items.tolist() == [[2, 1], [0, -1]]
    np.testing.assert_array_equal(lists.scores, np.array([[5, 4], [6, np.nan]], "f4"))
