from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.core.stage_context import collect_warnings
from recbias.models.ranking.tensors import parameter
from recbias.models.training.divergence import (
    check_finite,
    check_rate,
    enough_memory,
    warn_of_no_progress,
)
from recbias.models.training.schedule import Schedule

LARGE = {"negatives": 10**8, "embedding_size": 4, "reg": 0.1}


def schedule(**settings: Any) -> Schedule:
    given: dict[str, Any] = {"name": "M", "epochs": 9, "batch_size": 4096, "learning_rate": 0.1}
    return Schedule(**(given | settings))


@pytest.mark.parametrize(
    ("by_samples", "others", "where", "remedy"),
    [
        (False, {}, "batch_size", "lower batch_size, which is 4,096"),
        (
            True,
            LARGE,
            "negatives",
            "lower negatives, which is 100,000,000 or embedding_size, which is 4",
        ),
        (True, {}, "", "lower what makes it large"),
    ],
)
def test_too_little_memory_names_what_it_grows_with(
    by_samples: bool, others: dict[str, Any], where: str, remedy: str
) -> None:
    with (
        pytest.raises(TooLittleMemory) as caught,
        enough_memory(schedule(others=others), by_samples=by_samples),
    ):
        raise MemoryError
    assert (caught.value.where, caught.value.remedy) == (where, remedy)


def test_other_faults_pass() -> None:
    with pytest.raises(RuntimeError, match="shapes"), enough_memory(schedule(), by_samples=True):
        raise RuntimeError("shapes differ")


@pytest.mark.parametrize(
    ("regs", "remedy"),
    [
        ({}, "lower learning_rate, which is 0.1"),
        ({"reg_user": 1e30, "reg_item": 0.1}, "lower reg_user, which is 1e+30"),
        # a step takes a tenth of it: steps that shrink no further than to 0 do not diverge
        ({"reg": 2.0}, "lower learning_rate, which is 0.1"),
        ({"embedding_size": 10**6}, "lower learning_rate, which is 0.1"),
    ],
)
def test_divergence_names_what_takes_steps_too_far(regs: dict[str, Any], remedy: str) -> None:
    with pytest.raises(OutOfRange, match="M diverged in epoch 3 of 9: the loss is inf") as caught:
        check_finite(float("inf"), [], 3, schedule(others=regs))
    assert caught.value.remedy == remedy


def test_a_long_rate_is_to_blame_before_a_weight() -> None:
    with pytest.raises(OutOfRange) as caught:
        check_finite(np.nan, [], 2, schedule(learning_rate=1e30, others={"reg_user": 10.0}))
    assert caught.value.where == "learning_rate"


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_parameter_that_is_not_finite_is_divergence(value: float) -> None:
    fine, broken = (parameter(np.array([1.0, each]), torch.device("cpu")) for each in (2, value))
    check_finite(1.0, [fine], 1, schedule())
    with pytest.raises(OutOfRange):
        check_finite(1.0, [fine, broken], 1, schedule())


def test_a_rate_that_float32_does_not_have_is_refused() -> None:
    check_rate(schedule(learning_rate=1e-40))  # one of the smallest, below the normal ones
    with pytest.raises(OutOfRange, match="1e-60 is 0 in float32"):
        check_rate(schedule(learning_rate=1e-60))


def test_a_loss_that_does_not_fall_is_said() -> None:
    with collect_warnings() as notes:
        warn_of_no_progress([0.5, 0.4], schedule())
        warn_of_no_progress([0.5], schedule())
        assert not notes
        warn_of_no_progress([0.5, 0.6], schedule())
    assert "lower learning_rate, which is 0.1" in notes[0]
