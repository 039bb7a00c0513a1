"""Dense layers and dropout, of plain tensors that are drawn by the experiment's own generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.ranking.tensors import Tensor, array_of, drawn_glorot, parameter


@dataclass(frozen=True, eq=False)
class Dense:
    """``y = x W + b``, of tensors under training or of arrays.

    Args:
        weight: ``W``, ``float32 (n_in, n_out)``.
        bias: ``b``, ``float32 (n_out,)``.
    """

    weight: Any
    bias: Any

    @classmethod
    def drawn(cls, n_in: int, n_out: int, device: Any, rng: np.random.Generator) -> Dense:
        """Return a layer of Glorot's uniform weights and biases of 0."""
        return cls(drawn_glorot((n_in, n_out), device, rng), parameter(np.zeros(n_out), device))

    def __call__(self, x: Any) -> Any:
        """Return the layer's output for rows of ``x``, ``(..., n_out)``."""
        return x @ self.weight + self.bias

    def parameters(self) -> Sequence[Tensor]:
        """Return both tensors."""
        return [self.weight, self.bias]


def drawn_layers(sizes: Sequence[int], device: Any, rng: np.random.Generator) -> Sequence[Dense]:
    """Return a layer between each two neighbours of ``sizes``."""
    return [Dense.drawn(n_in, n_out, device, rng) for n_in, n_out in pairwise(sizes)]


def parameters_of(layers: Sequence[Dense]) -> Sequence[Tensor]:
    """Return the tensors of some layers, in order."""
    return [each for layer in layers for each in layer.parameters()]


def state_of(name: str, layers: Sequence[Dense]) -> Mapping[str, AnyArray]:
    """Return the arrays of layers under training, ``NAME.0.weight`` and so on."""
    return {
        f"{name}.{place}.{part}": array_of(getattr(layer, part))
        for place, layer in enumerate(layers)
        for part in ("weight", "bias")
    }


def layers_of(name: str, state: Mapping[str, Any]) -> Sequence[Dense]:
    """Return the layers of a state, of arrays or tensors as the state has them."""
    many = sum(key.startswith(f"{name}.") and key.endswith(".weight") for key in state)
    return [
        Dense(state[f"{name}.{place}.weight"], state[f"{name}.{place}.bias"])
        for place in range(many)
    ]


def dropped(x: Tensor, share: float, generator: Any) -> Tensor:
    """Return ``x`` with that share of its entries 0 by chance, the others larger in return."""
    if share == 0:
        return x
    import torch

    kept = torch.rand(x.shape, generator=generator, device=x.device) >= share
    return x * kept / (1 - share)
