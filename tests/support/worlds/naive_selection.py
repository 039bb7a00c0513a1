"""Re-ranking as the papers write it, one list at a time, in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

Values = Sequence[frozenset[str]]
"""The values of an attribute of each item."""


def share_values(items: Sequence[int], values: Values) -> dict[str, float]:
    """Return the share of each value; an item with m values counts 1/m for each."""
    totals: Counter[str] = Counter()
    valued = [item for item in items if values[item]]
    for item in valued:
        for value in values[item]:
            totals[value] += 1 / len(values[item])  # type: ignore[assignment]
    return {value: total / len(valued) for value, total in totals.items()}


def compute_kl(history: dict[str, float], listed: dict[str, float], a: float = 0.01) -> float:
    """Return the divergence of Steck: natural logarithm, smoothing a."""
    return sum(
        p * math.log(p / ((1 - a) * listed.get(value, 0.0) + a * p))
        for value, p in history.items()
    )


def compute_js(history: dict[str, float], listed: dict[str, float]) -> float:
    """Return the Jensen-Shannon divergence to base 2."""
    divergence = 0.0
    for value in {*history, *listed}:
        p, q = history.get(value, 0.0), listed.get(value, 0.0)
        middle = (p + q) / 2
        divergence += sum(share * math.log2(share / middle) / 2 for share in (p, q) if share)
    return divergence


def compute_cosine(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the cosine of two sets."""
    return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0


def select(
    items: Sequence[int], k: int, objective: Callable[[list[int], int], float]
) -> list[int]:
    """Return the greedy list; of items whose objective is equal the first."""
    chosen: list[int] = []
    left = list(items)
    while left and len(chosen) < k:
        gains = [objective(chosen, item) for item in left]
        best = next(at for at, gain in enumerate(gains) if gain >= max(gains) - 1e-12)
        chosen.append(left.pop(best))
    return chosen
