"""Tensors that are learned: where they live and their first values; torch is imported inside."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import MissingExtra

Tensor: TypeAlias = Any
"""A ``torch.Tensor``; torch is imported only where one is made."""

Device: TypeAlias = Literal["auto", "cpu", "cuda", "mps"]
"""Where tensors live: ``auto`` is the first of CUDA, MPS and CPU that is there."""


def device_of(name: Device) -> Any:
    """Return the ``torch.device`` of a name.

    Raises:
        MissingExtra: This machine or this build of torch does not have it.
    """
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next((each for each in there if there[each]), "cpu"))
    if not there.get(name, True):
        found = f"device {name}: torch {torch.__version__} finds none on this machine"
        raise MissingExtra(found, where="device", remedy="set device: auto, or cpu")
    return torch.device(name)


class OnDevice:
    """A model that is trained on a device of its own choosing."""

    device: Device

    def check_machine(self) -> None:
        """Refuse a device that this machine does not have."""
        if self.device not in {"auto", "cpu"}:
            device_of(self.device)


def drawn_normal(
    shape: tuple[int, ...], std: float, device: Any, rng: np.random.Generator
) -> Tensor:
    """Return a parameter with entries of Normal(0, std²), the same on every device."""
    return parameter(rng.standard_normal(shape, dtype=np.float32) * np.float32(std), device)


def drawn_glorot(shape: tuple[int, int], device: Any, rng: np.random.Generator) -> Tensor:
    """Return a parameter with entries uniform within ± sqrt(6 / (rows + columns))."""
    limit = math.sqrt(6 / sum(shape))
    return parameter((2 * rng.random(shape, dtype=np.float32) - 1) * np.float32(limit), device)


def parameter(values: AnyArray, device: Any) -> Tensor:
    """Return a tensor that is learned, of these first values, ``float32``."""
    import torch

    return torch.tensor(values, dtype=torch.float32, device=device, requires_grad=True)


def torch_generator(rng: np.random.Generator, device: Any) -> Any:
    """Return a ``torch.Generator`` of a device, for noise that is drawn within a loss."""
    import torch

    return torch.Generator(device=device).manual_seed(int(rng.integers(2**63 - 1)))


OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
"""What torch says where memory ran out."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; only CUDA has a class of its own for that."""
    import torch

    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    said = str(error)
    return isinstance(error, RuntimeError) and any(each in said for each in OUT_OF_MEMORY)


def array_of(tensor: Tensor) -> AnyArray:
    """Return a copy of a tensor's values as an array."""
    array: AnyArray = tensor.detach().cpu().numpy().copy()
    return array
