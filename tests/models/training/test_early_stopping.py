from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from recbias.core.context import stage_context
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


def test_ndcg_is_cut_at_k() -> None:
    assert validation_ndcg(create_recommender(0, 5, 4, 3), DATA, 1) == pytest.approx(0.5)


def test_ideal_list_has_at_most_k_items() -> None:
    data = TrainingData(
        make_interactions([(0, 0), (1, 1), (1, 2), (1, 3)]),
        make_interactions([(0, 1), (0, 2)], n_users=2, n_items=4),
    )
    assert validation_ndcg(create_recommender(0, 5, 4, 3), data, 1) == pytest.approx(1)


@pytest.mark.parametrize(
    "validation",
    [
        None,
        make_interactions([], n_users=3, n_items=4),
        make_interactions([(2, 1)], n_users=3, n_items=4),
    ],
)
def test_ndcg_is_undefined_without_validation_users(validation: object) -> None:
    data = TrainingData(TRAIN, validation)  # type: ignore[arg-type]  # parametrised
    assert math.isnan(validation_ndcg(create_recommender(0, 5, 4, 3), data))
    assert not has_validation_users(data)
    assert not EarlyStopping(has_validation_users(data), patience=3).is_active


def test_zero_patience_disables_early_stopping() -> None:
    assert not EarlyStopping(has_validation_users(DATA), patience=0).is_active
    assert EarlyStopping(has_validation_users(DATA), patience=1).is_active


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


def test_scores_are_reported_and_no_parameters_copied_without_patience() -> None:
    stopping, value, reports = (
        EarlyStopping(has_validation_users(DATA), patience=0),
        torch.zeros(1),
        [],
    )
    with stage_context(on_validation=lambda *report: reports.append(report)):
        assert stopping.is_active
        stopping.record(0.25, [value])
    assert reports == [(1, 0.25)]
    assert not stopping.should_stop
    assert not stopping.best


def test_resumed_scores_are_reported_and_count() -> None:
    stopping, reports = EarlyStopping(has_validation_users(DATA), patience=2), []
    with stage_context(on_validation=lambda *report: reports.append(report)):
        stopping.resume([0.3, 0.1, 0.2], [torch.full((1,), 7.0)])
    assert reports == [(1, 0.3), (2, 0.1), (3, 0.2)]
    assert stopping.should_stop
    value = torch.zeros(1)
    stopping.restore([value])
    assert value.item() == 7


def test_restore_without_validation_changes_nothing() -> None:
    value = torch.ones(1)
    EarlyStopping(has_validation_users(DATA), patience=2).restore([value])
    assert value.item() == 1
