"""Devices, initialization and conversion of torch tensors; torch is imported in the functions."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import MissingExtra

Tensor: TypeAlias = Any
"""A ``torch.Tensor``; typed as Any so that torch is not imported."""

Device: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]
"""The device of tensors; ``auto`` is the first available of CUDA, MPS and CPU."""

OUT_OF_MEMORY_MESSAGES = ("out of memory", "can't allocate memory", "not enough memory")
"""Parts of torch's error messages when memory runs out."""


def resolve_device(name: Device) -> Any:
    """Return the ``torch.device`` with this name.

    Raises:
        MissingExtra: The device is not available on this machine or in this build of torch.
    """
    import torch

    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next((device for device in available if available[device]), "cpu"))
    if not available.get(name, True):
        problem = f"device {name}: torch {torch.__version__} finds none on this machine"
        raise MissingExtra(problem, where="device", remedy="set device: auto, or cpu")
    return torch.device(name)


class OnDevice:
    """Base class of models that are trained on a selectable device."""

    device: Device

    def check_machine(self) -> None:
        """Raise MissingExtra if this machine does not have the device."""
        if self.device not in {"auto", "cpu"}:
            resolve_device(self.device)


def initialize_normal(
    shape: tuple[int, ...], std: float, device: Any, rng: np.random.Generator
) -> Tensor:
    """Return a parameter sampled from Normal(0, std²), with the same values on every device."""
    return create_parameter(rng.standard_normal(shape, dtype=np.float32) * np.float32(std), device)


def initialize_glorot(shape: tuple[int, int], device: Any, rng: np.random.Generator) -> Tensor:
    """Return a parameter sampled uniformly within ± sqrt(6 / (rows + columns))."""
    limit = math.sqrt(6 / sum(shape))
    return create_parameter(
        (2 * rng.random(shape, dtype=np.float32) - 1) * np.float32(limit), device
    )


def create_parameter(values: AnyArray, device: Any) -> Tensor:
    """Return a trainable ``float32`` tensor with these initial values."""
    import torch

    return torch.tensor(values, dtype=torch.float32, device=device, requires_grad=True)


def create_torch_generator(rng: np.random.Generator, device: Any) -> Any:
    """Return a ``torch.Generator`` on a device, seeded by ``rng``."""
    import torch

    return torch.Generator(device=device).manual_seed(int(rng.integers(2**63 - 1)))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; only CUDA has an error class for this."""
    import torch

    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(
        text in message for text in OUT_OF_MEMORY_MESSAGES
    )


def copy_to_array(tensor: Tensor) -> AnyArray:
    """Return a copy of a tensor as an array."""
    array: AnyArray = tensor.detach().cpu().numpy().copy()
    return array
