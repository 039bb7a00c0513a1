from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from recbias.core.dataset import TrainingData
from recbias.models.fitted import FittedFactors
from recbias.models.training import EarlyStopping, has_validation_users, validation_ndcg
from support.worlds.small_worlds import make_interactions

# user 0 lacks items 1, 2 and 3, user 1 lacks 0, 2 and 3; user 2 has no training row
TRAIN = make_interactions([(0, 0), (1, 1), (1, 2), (1, 3), (0, 3)], n_users=3, n_items=4)
VALIDATION = make_interactions([(0, 2), (1, 0), (2, 1)], n_users=3, n_items=4)
DATA = TrainingData(TRAIN, VALIDATION)


def create_recommender(*scores: float) -> FittedFactors:
    """Return a recommender with the same scores of the four items for all users."""
    vectors = np.array(scores, dtype=np.float32)[:, None]
    return FittedFactors(np.ones((3, 1), dtype=np.float32), vectors)


def test_ndcg_matches_a_hand_computation() -> None:
    # user 0 has the list 1, 2 with a hit at rank 2: 1 / log2(3); user 1 has the list 0: 1; user 2
    # has no training row
    expected = (1 / math.log2(3) + 1) / 2
    assert validation_ndcg(create_recommender(0, 5, 4, 3), DATA) == pytest.approx(expected)


def test_training_stops_after_patience_and_restores_the_best_epoch() -> None:
    stopping, value = EarlyStopping(has_validation_users(DATA), patience=2), torch.zeros(1)
    recommenders = [
        create_recommender(0, 5, 4, 3),
        create_recommender(0, 4, 5, 3),
        create_recommender(0, 5, 4, 3),
        create_recommender(0, 5, 4, 3),
    ]
    stops = []
    for epoch, fitted in enumerate(recommenders):
        value.fill_(epoch)
        stopping.record(validation_ndcg(fitted, DATA), [value])
        stops.append(stopping.should_stop)
    assert stops == [False, False, False, True]
    stopping.restore([value])
    assert value.item() == 1
