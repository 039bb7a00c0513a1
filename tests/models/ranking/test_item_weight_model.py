from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from recbias.core.dataset import TrainingData
from recbias.models.fitted import FittedItemWeights, ItemWeightModel
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

# W_ji: item 0 has the weight 2 for item 1 and 1 for item 2; item 1 has the weight 5 for item 2
WEIGHTS = np.array([[0, 2, 1, 0], [0, 0, 5, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=np.float64)


def create_data() -> TrainingData:
    pairs = [(0, 0), (1, 0), (1, 1), (2, 2), (2, 3)]
    return TrainingData(make_interactions(pairs, n_users=4, n_items=4))


@pytest.mark.parametrize("make", [np.asarray, csr_array, coo_array])
def test_scores_are_sums_of_weights_over_the_history(make: type) -> None:
    lists = FittedItemWeights.from_matrix(make(WEIGHTS)).recommend(
        make_queries(["a", "b"]), 3, create_data()
    )
    # u0 has 0: 1 -> 2, 2 -> 1, 3 -> 0;   u1 has 0 and 1: 2 -> 1 + 5, 3 -> 0
    assert lists.items.tolist() == [[1, 2, 3], [2, 3, -1]]
    np.testing.assert_array_equal(
        lists.scores, np.array([[2, 1, 0], [6, 0, np.nan]], dtype=np.float32)
    )


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_a_stored_state_gives_the_same_lists(make: type) -> None:
    fitted = FittedItemWeights.from_matrix(make(WEIGHTS))
    restored = ItemWeightModel().restore(dict(fitted.state()))
    queries = make_queries(["a", "b", "c"])
    first, second = (model.recommend(queries, 4, create_data()) for model in (fitted, restored))
    assert first.items.tolist() == second.items.tolist()
    np.testing.assert_array_equal(first.scores, second.scores)
