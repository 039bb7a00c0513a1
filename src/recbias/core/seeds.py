"""From one experiment seed to named, independent generators."""

from __future__ import annotations

import hashlib

import numpy as np


def derived_seed(seed: int, *names: object) -> int:
    """Return a 63-bit seed that belongs to ``seed`` and the names, whatever else is drawn.

    >>> derived_seed(42, "split", 0) == derived_seed(42, "split", 0)
    True
    >>> derived_seed(42, "split", 0) == derived_seed(42, "split", 1)
    False
    """
    text = "\0".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: object) -> np.random.Generator:
    """Return the generator of a seed and names."""
    return np.random.default_rng(derived_seed(seed, *names))
