from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_warnings
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.models.gpu import create_parameter
from recbias.models.training import (
    Schedule,
    report_device_out_of_memory,
    validate_finite,
    validate_learning_rate,
    warn_about_stalled_loss,
)

SETTINGS = {"negatives": 10**8, "embedding_size": 4, "reg": 0.1}


def create_schedule(**changes: Any) -> Schedule:
    defaults: dict[str, Any] = {"name": "M", "epochs": 9, "batch_size": 4096, "learning_rate": 0.1}
    return Schedule(**(defaults | changes))


@pytest.mark.parametrize(
    ("by_samples", "settings", "where", "remedy"),
    [
        (False, {}, "batch_size", "lower batch_size, which is 4,096"),
        (
            True,
            SETTINGS,
            "negatives",
            "lower negatives, which is 100,000,000 or embedding_size, which is 4",
        ),
        (True, {}, "", "lower the settings that increase the memory use"),
    ],
)
def test_memory_error_names_the_settings_to_lower(
    by_samples: bool, settings: dict[str, Any], where: str, remedy: str
) -> None:
    with (
        pytest.raises(TooLittleMemory) as caught,
        report_device_out_of_memory(create_schedule(settings=settings), by_samples=by_samples),
    ):
        raise MemoryError
    assert (caught.value.where, caught.value.remedy) == (where, remedy)


def test_other_errors_are_not_caught() -> None:
    with (
        pytest.raises(RuntimeError, match="shapes"),
        report_device_out_of_memory(create_schedule(), by_samples=True),
    ):
        raise RuntimeError("shapes differ")


@pytest.mark.parametrize(
    ("regs", "remedy"),
    [
        ({}, "lower learning_rate, which is 0.1"),
        ({"reg_user": 1e30, "reg_item": 0.1}, "lower reg_user, which is 1e+30"),
        # rate · reg = 0.2 < 1: the shrinkage of a step does not diverge
        ({"reg": 2.0}, "lower learning_rate, which is 0.1"),
        ({"embedding_size": 10**6}, "lower learning_rate, which is 0.1"),
    ],
)
def test_divergence_error_names_the_setting_to_lower(regs: dict[str, Any], remedy: str) -> None:
    with pytest.raises(OutOfRange, match="M diverged in epoch 3 of 9: the loss is inf") as caught:
        validate_finite(float("inf"), [], 3, create_schedule(settings=regs))
    assert caught.value.remedy == remedy


def test_large_learning_rate_is_named_before_a_regularization_weight() -> None:
    with pytest.raises(OutOfRange) as caught:
        validate_finite(
            np.nan, [], 2, create_schedule(learning_rate=1e30, settings={"reg_user": 10.0})
        )
    assert caught.value.where == "learning_rate"


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinite_parameter_raises_divergence_error(value: float) -> None:
    finite, infinite = (
        create_parameter(np.array([1.0, entry]), torch.device("cpu")) for entry in (2, value)
    )
    validate_finite(1.0, [finite], 1, create_schedule())
    with pytest.raises(OutOfRange):
        validate_finite(1.0, [finite, infinite], 1, create_schedule())


def test_learning_rate_that_is_zero_in_float32_raises() -> None:
    validate_learning_rate(create_schedule(learning_rate=1e-40))  # a subnormal number
    with pytest.raises(OutOfRange, match="1e-60 is 0 in float32"):
        validate_learning_rate(create_schedule(learning_rate=1e-60))


def test_warning_reports_a_loss_that_does_not_decrease() -> None:
    with collect_warnings() as warnings:
        warn_about_stalled_loss([0.5, 0.4], create_schedule())
        warn_about_stalled_loss([0.5], create_schedule())
        assert not warnings
        warn_about_stalled_loss([0.5, 0.6], create_schedule())
    assert "lower learning_rate, which is 0.1" in warnings[0]
