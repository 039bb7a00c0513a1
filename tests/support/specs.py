"""Specs that run within a second, as mappings."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 42,
    "dataset": {"name": "demo", "n_users": 60, "n_items": 50},
    "split": {"name": "random", "test": 0.2},
    "k": 5,
    "models": ["MostPop", "ItemKNN"],
    "metrics": ["nDCG", "HR"],
    "tests": ["paired_t"],
    "report": {"formats": ["csv"]},
}


def make_small_spec(**changes: Any) -> dict[str, Any]:
    """Return the small spec with changed keys; None removes a key."""
    spec = {**SMALL, **changes}
    return {key: value for key, value in spec.items() if value is not None}
