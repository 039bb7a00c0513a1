"""Dense layers and dropout on tensors that are initialized by the experiment's generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.ranking.tensors import (
    Tensor,
    copy_to_array,
    create_parameter,
    initialize_glorot,
)


@dataclass(frozen=True, eq=False)
class Dense:
    """A dense layer ``y = x W + b`` of tensors or arrays.

    Args:
        weight: ``W``, ``float32 (n_in, n_out)``.
        bias: ``b``, ``float32 (n_out,)``.
    """

    weight: Any
    bias: Any

    @classmethod
    def initialize(cls, n_in: int, n_out: int, device: Any, rng: np.random.Generator) -> Dense:
        """Return a layer with Glorot-uniform weights and zero biases."""
        weight = initialize_glorot((n_in, n_out), device, rng)
        return cls(weight, create_parameter(np.zeros(n_out), device))

    def __call__(self, x: Any) -> Any:
        """Return the layer's output for the rows of ``x``, ``(..., n_out)``."""
        return x @ self.weight + self.bias

    def parameters(self) -> Sequence[Tensor]:
        """Return both tensors."""
        return [self.weight, self.bias]


def initialize_layers(
    sizes: Sequence[int], device: Any, rng: np.random.Generator
) -> Sequence[Dense]:
    """Return one layer for each pair of consecutive ``sizes``."""
    return [Dense.initialize(n_in, n_out, device, rng) for n_in, n_out in pairwise(sizes)]


def collect_parameters(layers: Sequence[Dense]) -> Sequence[Tensor]:
    """Return the tensors of the layers, in order."""
    return [tensor for layer in layers for tensor in layer.parameters()]


def store_layers(name: str, layers: Sequence[Dense]) -> Mapping[str, AnyArray]:
    """Return the tensors of the layers as arrays named ``NAME.0.weight``, ``NAME.0.bias``, ..."""
    return {
        f"{name}.{index}.{field}": copy_to_array(getattr(layer, field))
        for index, layer in enumerate(layers)
        for field in ("weight", "bias")
    }


def restore_layers(name: str, state: Mapping[str, Any]) -> Sequence[Dense]:
    """Return the layers of a state, as arrays or tensors."""
    n_layers = sum(key.startswith(f"{name}.") and key.endswith(".weight") for key in state)
    return [
        Dense(state[f"{name}.{index}.weight"], state[f"{name}.{index}.bias"])
        for index in range(n_layers)
    ]


def apply_dropout(x: Tensor, rate: float, generator: Any) -> Tensor:
    """Set a random share ``rate`` of the entries to 0 and scale the others by 1 / (1 - rate)."""
    if rate == 0:
        return x
    import torch

    mask = torch.rand(x.shape, generator=generator, device=x.device) >= rate
    return x * mask / (1 - rate)
