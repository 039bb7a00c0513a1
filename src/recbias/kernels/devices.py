"""The devices of this machine, on which torch computes; torch is imported in functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Literal, TypeAlias

from recbias.core.context import warn
from recbias.core.errors import MissingExtra
from recbias.core.packages import is_installed
from recbias.core.plugins import Device, is_cuda

Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]
"""The type of matrix products: ``auto`` is bfloat16 on CUDA and float32 elsewhere."""

_CONTEXT = 700 * 2**20
"""The bytes of a GPU that a process takes besides tensors, at most."""

_SHARED = 0.05
"""The share of a GPU's memory in other processes that is worth a warning."""


def list_devices() -> tuple[str, ...]:
    """Return the devices of this machine, the preferred one first.

    torch is not imported where it is absent or a build for CPUs.
    """
    if not is_installed("torch") or _find_torch_version().endswith("+cpu"):
        return ("cpu",)
    import torch

    devices = ["cpu"]
    if torch.backends.mps.is_available():
        devices.insert(0, "mps")
    if torch.cuda.is_available():
        numbers = range(torch.cuda.device_count())
        devices = ["cuda", *(f"cuda:{number}" for number in numbers), *devices]
    return tuple(devices)


@cache
def _find_torch_version() -> str:
    return version("torch")


def find_device(name: Device) -> str:
    """Return the device with this name; of ``auto`` the first of CUDA, MPS and CPU.

    Raises:
        MissingExtra: This machine, or this build of torch, does not have it.
    """
    if name == "cpu":
        return name
    devices = list_devices()
    if name == "auto":
        return devices[0]
    if name not in devices:
        found = ", ".join(devices)
        problem = f"device {name}: torch {_find_torch_version()} finds {found} on this machine"
        remedy = f"set device: auto, or {' or '.join(devices)}"
        raise MissingExtra(problem, where="device", remedy=remedy)
    return name


def resolve_device(name: Device) -> Any:
    """Return the ``torch.device`` with this name; MissingExtra if there is none.

    A GPU on which other processes hold much memory is a warning, once in a process.
    """
    import torch

    device = torch.device(find_device(name))
    if device.type == "cuda":
        _warn_about_others(torch.cuda.current_device() if device.index is None else device.index)
    return device


def find_accelerator(name: Device, *, double: bool = False) -> Any:
    """Return the ``torch.device`` with this name if it is a GPU; None for the CPU.

    With ``double`` it is None for MPS too, which has no double precision. torch is imported only
    if there is a GPU; MissingExtra if this machine does not have the device.

    >>> find_accelerator("cpu") is None
    True
    """
    device = find_device(name)
    return resolve_device(name) if is_cuda(device) or (device == "mps" and not double) else None


@cache
def _warn_about_others(number: int) -> None:
    """Warn if other processes hold memory of a GPU that is not shared by the tasks of a run."""
    import torch

    if torch.cuda.get_per_process_memory_fraction(number) < 1:
        return
    free, total = torch.cuda.mem_get_info(number)
    n_others = total - free - torch.cuda.memory_reserved(number) - _CONTEXT
    if n_others > _SHARED * total:
        warn(
            f"cuda:{number}: other processes hold {n_others / 2**20:,.0f} MB of the "
            f"{total / 2**20:,.0f} MB of the GPU; nvidia-smi lists them"
        )


def choose_precision(precision: Precision, device: str) -> Literal["float32", "bfloat16"]:
    """Return the type of matrix products on a device."""
    if precision == "auto":
        return "bfloat16" if is_cuda(device) else "float32"
    return precision


class OnDevice:
    """Base class of models that are trained on a selectable device."""

    device: Device

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the device of this machine; MissingExtra if it has none of this name."""
        return {"device": find_device(self.device)}
