"""The memory of a process without data: Python with the libraries that it has imported."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

BASE = 175 * 2**20
"""Bytes of the process with the libraries of every run: about 145 of a worker that loads a few
rows, 160 of one with SciPy, and 190 of the main process."""

LIBRARIES = {
    "torch": 250 * 2**20,
    "numba": 90 * 2**20,
    "implicit": 10 * 2**20,
    "lenskit": 225 * 2**20,
    "transformers": 150 * 2**20,
    "openai": 20 * 2**20,
    "anthropic": 45 * 2**20,
    "sacrebleu": 45 * 2**20,
    "rouge-score": 95 * 2**20,
}
"""Bytes of the libraries that only some models import."""

SHARED = 195 * 2**20
"""Bytes of torch that lenskit loads too."""


def sum_libraries(names: AbstractSet[str]) -> float:
    """Return the bytes of the process with these libraries.

    >>> sum_libraries({"numba"}) - sum_libraries(set()) == LIBRARIES["numba"]
    True
    """
    shared = SHARED if {"torch", "lenskit"} <= names else 0
    return BASE - shared + float(sum([LIBRARIES.get(name, 0) for name in names]))
