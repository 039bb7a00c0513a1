"""What a stage costs beside wall time and memory: time of processors and cards, and energy."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from recbias.core.machine.energy import Counter, read_card, read_packages, subtract_packages

Cost: TypeAlias = Mapping[str, float | None]

NO_COST: Cost = MappingProxyType(
    dict.fromkeys(
        ("cpu_seconds", "gpu_seconds", "gpu_memory_mb", "cpu_energy_joules", "gpu_energy_joules")
    )
)
"""The cost of a stage of which nothing is known, such as a reused one."""


def _subtract(end: float | None, start: float | None) -> float | None:
    return None if end is None or start is None else end - start


def _read_cpu() -> tuple[float, float]:
    """Return the seconds of this process, with all threads, and of its ended children."""
    times = os.times()
    return time.process_time(), times.children_user + times.children_system


def _find_cuda() -> Any:
    """Return ``torch.cuda`` if this process has used a card; importing torch would be slow."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def _read_cards() -> dict[int, float | None]:
    """Return the joules of each card that this process may use, by its number."""
    cuda = _find_cuda()
    return {
        card: read_card(f"GPU-{cuda.get_device_properties(card).uuid}")
        for card in (range(cuda.device_count()) if cuda else ())
    }


@dataclass(frozen=True)
class CostMeter:
    """Measures a stage from now on.

    The energy is that of the machine's processors and of the cards that the process uses, with
    whatever else runs on them.
    """

    cpu: tuple[float, float] = field(default_factory=_read_cpu)
    packages: Mapping[str, Counter] = field(default_factory=read_packages)
    cards: Mapping[int, float | None] = field(default_factory=_read_cards)

    def __post_init__(self) -> None:
        """Reset the peak memory of the cards."""
        if cuda := _find_cuda():
            for card in range(cuda.device_count()):
                cuda.reset_peak_memory_stats(card)

    def measure(self, seconds: float) -> dict[str, float | None]:
        """Return the cost of a stage that took ``seconds``.

        ``gpu_seconds`` is the time for which the stage held cards, one after the other if it held
        several; it and the memory are None if other processes worked for the stage, which may
        have used cards. Without a card in use at the start the energy of cards is None.
        """
        process, children = (end - start for end, start in zip(_read_cpu(), self.cpu, strict=True))
        cost = dict(NO_COST) | {
            "cpu_seconds": round(process + children, 3),
            "cpu_energy_joules": subtract_packages(read_packages(), self.packages, seconds),
        }
        if children:
            return cost
        cuda = _find_cuda()
        peaks = {
            card: cuda.max_memory_allocated(card) / 2**20
            for card in (range(cuda.device_count()) if cuda else ())
            if cuda.max_memory_allocated(card)
        }
        ends = _read_cards()
        joules = [_subtract(ends.get(card), self.cards.get(card)) for card in peaks]
        return cost | {
            "gpu_seconds": round(seconds * len(peaks), 3),
            "gpu_memory_mb": round(math.fsum(peaks.values()), 1),
            "gpu_energy_joules": None if None in joules else math.fsum(filter(None, joules)),
        }
