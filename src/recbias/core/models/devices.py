"""The devices on which models compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

# fmt: off
Device: TypeAlias = Literal[
    "auto", "cpu", "cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6",
    "cuda:7", "mps",
]
# fmt: on
"""The device of tensors; ``auto`` is the first available of CUDA, MPS and CPU."""


@runtime_checkable
class UsesDevice(Protocol):
    """A plug-in, or a setting of one, that computes on the device that its user selects."""

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the settings ``device`` and ``precision`` as they are on this machine.

        ``default`` is the device of the spec, for a setting that has none. Empty if it computes
        elsewhere, as a server does. MissingExtra if this machine does not have the device.
        """


def is_cuda(device: str) -> bool:
    """Return whether a device is a GPU of CUDA, with or without its number."""
    return device.partition(":")[0] == "cuda"


def omit_device_numbers(settings: Any) -> Any:
    """Return plain settings with ``cuda`` for ``cuda:1``: GPUs of one machine compute the same.

    >>> omit_device_numbers({"llm": {"device": "cuda:1"}, "epochs": 3})
    {'llm': {'device': 'cuda'}, 'epochs': 3}
    """
    if not isinstance(settings, dict):
        return settings
    return {
        key: value.partition(":")[0]
        if key == "device" and isinstance(value, str)
        else omit_device_numbers(value)
        for key, value in settings.items()
    }
