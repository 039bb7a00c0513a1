from __future__ import annotations

from typing import Any

import numpy as np
import torch

from recbias.core.dataset import AnyArray
from recbias.models.factorization import FactorLearner, FactorTables, SGDLearner, sum_squares
from recbias.models.gpu import create_parameter

CPU = torch.device("cpu")


def create_tables(**biases: AnyArray) -> FactorTables:
    users, items = np.array([[1, 2], [0, 1]]), np.array([[1, 0], [0, 1], [1, 1]])
    parameters = {name: create_parameter(values, CPU) for name, values in biases.items()}
    return FactorTables(create_parameter(users, CPU), create_parameter(items, CPU), **parameters)


def test_parameters_exclude_missing_biases() -> None:
    assert [tuple(table.shape) for table in create_tables().parameters()] == [(2, 2), (3, 2)]
    biased = create_tables(item_bias=np.zeros((3, 1)), offset=np.zeros(1))
    assert [tuple(table.shape) for table in biased.parameters()] == [(2, 2), (3, 2), (3, 1), (1,)]


def test_exported_scores_exclude_user_bias_and_offset() -> None:
    fitted = create_tables(
        user_bias=np.array([[10], [20]]), item_bias=np.array([[0], [0.5], [0]]), offset=np.ones(1)
    ).export()
    # user 0: 1, 2 + 0.5, 3; user 1: 0, 1 + 0.5, 1
    expected = [[1, 2.5, 3], [0, 1.5, 1]]
    np.testing.assert_allclose(fitted.scores(np.array([0, 1], dtype=np.int32)), expected)


def test_export_copies_the_tables() -> None:
    tables = create_tables()
    fitted = tables.export()
    tables.users.data += 1
    assert fitted.user_factors[0, 0] == 1
    assert fitted.item_bias is None
    assert fitted.device == "cpu"


def test_learner_calls_its_sampler_and_loss(rng: np.random.Generator) -> None:
    learner = FactorLearner(
        create_tables(), lambda rng: (rng.integers(9, size=3),), lambda batch: batch.sum()
    )
    (samples,) = learner.sample_epoch(np.random.default_rng(1))
    np.testing.assert_array_equal(samples, np.random.default_rng(1).integers(9, size=3))
    assert learner.loss(torch.ones(4)) == 4
    assert len(learner.parameters()) == 2
    np.testing.assert_array_equal(learner.export().user_factors, [[1, 2], [0, 1]])


def move_users(samples: Any, tables: Any, settings: Any) -> Any:
    """Subtract the learning rate from the user vectors; return a sum over all arguments."""
    p, _, user_bias, item_bias, offset = tables
    p -= settings[0]
    return samples[0].sum() * settings[1] + user_bias.size + item_bias.size + offset.size


def test_sgd_learner_calls_its_step_and_kernel() -> None:
    learner = SGDLearner(
        create_tables(offset=np.zeros(1)),
        lambda _: (),
        lambda batch: batch.sum(),
        lambda rate, batch: rate * batch.sum(),
        move_users,
        (0.5,),
    )
    assert learner.step(0.5, torch.ones(4)) == 2
    assert learner.loss(torch.ones(4)) == 4
    # 4 samples at 0.5, no biases, one offset; the tensors are moved, not copies of them
    assert learner.step_by_samples(1.0, np.ones(4, dtype=np.float32)) == 3
    assert learner.tables.users.tolist() == [[0, 1], [-1, 0]]


def test_arrays_share_memory_and_are_empty_for_missing_biases() -> None:
    tables = create_tables(item_bias=np.zeros((3, 1)))
    arrays = tables.arrays()
    assert [array.shape for array in arrays] == [(2, 2), (3, 2), (0, 1), (3, 1), (0,)]
    arrays[0][0, 0] = 7
    assert tables.users[0, 0] == 7


def test_sum_of_squares_matches_a_hand_computation() -> None:
    # 1 + 4 + 9 + 16
    assert sum_squares(torch.tensor([[1.0, 2.0], [3.0, 4.0]])) == 30
    assert sum_squares(torch.zeros(0, 3)) == 0
