"""Whether the network may be used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

OFFLINE = "RECBIAS_OFFLINE"
"""The environment variable that forbids the network; worker processes inherit it."""

_TRUE = {"1", "true", "yes", "on"}


@contextmanager
def forbid_network() -> Iterator[None]:
    """Forbid the network in this block and in the processes that it starts."""
    before = {name: text for name, text in os.environ.items() if name == OFFLINE}
    os.environ[OFFLINE] = "1"
    try:
        yield
    finally:
        os.environ.pop(OFFLINE, None)
        os.environ.update(before)


def is_network_forbidden() -> bool:
    """Return whether ``RECBIAS_OFFLINE`` forbids the network."""
    return os.environ.get(OFFLINE, "").lower() in _TRUE


def is_offline() -> bool:
    """Return whether ``RECBIAS_OFFLINE`` or ``HF_HUB_OFFLINE`` forbids the network."""
    return any(os.environ.get(name, "").lower() in _TRUE for name in (OFFLINE, "HF_HUB_OFFLINE"))
