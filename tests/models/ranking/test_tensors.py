from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.errors import MissingExtra
from recbias.models.ranking.tensors import (
    array_of,
    device_of,
    drawn_glorot,
    drawn_normal,
    parameter,
    torch_generator,
)

CPU = torch.device("cpu")


def test_noise_is_the_same_for_one_generator() -> None:
    first, second = (
        torch.rand(4, generator=torch_generator(np.random.default_rng(seed), CPU))
        for seed in (5, 5)
    )
    assert torch.equal(first, second)


def test_first_values_have_their_spread(rng: np.random.Generator) -> None:
    normal = array_of(drawn_normal((200, 100), 0.1, CPU, rng))
    assert normal.std() == pytest.approx(0.1, rel=0.03)
    assert abs(normal.mean()) < 0.003
    glorot = array_of(drawn_glorot((200, 100), CPU, rng))
    # uniform within sqrt(6 / 300) = 0.1414
    assert np.abs(glorot).max() == pytest.approx(math.sqrt(0.02), rel=0.01)
    assert np.abs(glorot).max() <= math.sqrt(0.02)
    assert glorot.dtype == normal.dtype == np.float32


def test_auto_is_a_device_that_is_there() -> None:
    assert device_of("cpu").type == "cpu"
    assert torch.zeros(1, device=device_of("auto")).item() == 0


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused(name: Any) -> None:
    there = torch.cuda.is_available() if name == "cuda" else torch.backends.mps.is_available()
    if there:
        pytest.skip("it is there")
    with pytest.raises(MissingExtra, match=f"device {name}"):
        device_of(name)


def test_an_array_is_a_copy() -> None:
    weight = parameter(np.ones(2), CPU)
    array_of(weight)[0] = 5
    assert weight.tolist() == [1, 1]
