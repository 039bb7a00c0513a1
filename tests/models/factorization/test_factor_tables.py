from __future__ import annotations

from typing import Any

import numpy as np
import torch

from recbias.core.arrays import AnyArray
from recbias.models.factorization.factor_tables import (
    FactorLearner,
    FactorTables,
    SteppingLearner,
    square_sum,
)
from recbias.models.ranking.tensors import parameter

CPU = torch.device("cpu")


def tables(**others: AnyArray) -> FactorTables:
    users, items = np.array([[1, 2], [0, 1]]), np.array([[1, 0], [0, 1], [1, 1]])
    more = {name: parameter(values, CPU) for name, values in others.items()}
    return FactorTables(parameter(users, CPU), parameter(items, CPU), **more)


def test_what_is_not_there_is_not_learned() -> None:
    assert [tuple(each.shape) for each in tables().parameters()] == [(2, 2), (3, 2)]
    more = tables(item_bias=np.zeros((3, 1)), offset=np.zeros(1))
    assert [tuple(each.shape) for each in more.parameters()] == [(2, 2), (3, 2), (3, 1), (1,)]


def test_fitted_scores_leave_out_what_orders_nothing() -> None:
    found = tables(
        user_bias=np.array([[10], [20]]), item_bias=np.array([[0], [0.5], [0]]), offset=np.ones(1)
    ).fitted()
    # user 0: 1, 2 + 0.5, 3; user 1: 0, 1 + 0.5, 1
    expected = [[1, 2.5, 3], [0, 1.5, 1]]
    np.testing.assert_allclose(found.scores(np.array([0, 1], dtype=np.int32)), expected)


def test_fitted_is_a_copy_that_later_steps_leave_alone() -> None:
    learned = tables()
    found = learned.fitted()
    learned.users.data += 1
    assert found.user_factors[0, 0] == 1
    assert found.item_bias is None
    assert found.device == "cpu"


def test_a_learner_draws_and_loses_as_it_is_told(rng: np.random.Generator) -> None:
    learner = FactorLearner(
        tables(), lambda draws: (draws.integers(9, size=3),), lambda drawn: drawn.sum()
    )
    (drawn,) = learner.epoch(np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, np.random.default_rng(1).integers(9, size=3))
    assert learner.loss(torch.ones(4)) == 4
    assert len(learner.parameters()) == 2
    np.testing.assert_array_equal(learner.fitted().user_factors, [[1, 2], [0, 1]])


def halved(samples: Any, tables: Any, settings: Any) -> Any:
    """Move all vectors of users by the learning rate; return a loss of all it was given."""
    p, _, of_user, of_item, offset = tables
    p -= settings[0]
    return samples[0].sum() * settings[1] + of_user.size + of_item.size + offset.size


def test_a_stepping_learner_steps_as_it_is_told() -> None:
    learner = SteppingLearner(
        tables(offset=np.zeros(1)),
        lambda _: (),
        lambda drawn: drawn.sum(),
        lambda rate, drawn: rate * drawn.sum(),
        halved,
        (0.5,),
    )
    assert learner.step(0.5, torch.ones(4)) == 2
    assert learner.loss(torch.ones(4)) == 4
    # 4 samples at 0.5, no biases, one offset; the tensors are moved, not copies of them
    assert learner.single_steps(1.0, np.ones(4, dtype=np.float32)) == 3
    assert learner.tables.users.tolist() == [[0, 1], [-1, 0]]


def test_arrays_share_the_memory_of_the_tables_and_are_empty_without() -> None:
    learned = tables(item_bias=np.zeros((3, 1)))
    arrays = learned.arrays()
    assert [each.shape for each in arrays] == [(2, 2), (3, 2), (0, 1), (3, 1), (0,)]
    arrays[0][0, 0] = 7
    assert learned.users[0, 0] == 7


def test_the_sum_of_squares_by_hand() -> None:
    # 1 + 4 + 9 + 16
    assert square_sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]])) == 30
    assert square_sum(torch.zeros(0, 3)) == 0
