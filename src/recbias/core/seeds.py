"""Named, independent random generators derived from one experiment seed."""

from __future__ import annotations

import hashlib

import numpy as np


def derive_seed(seed: int, *names: object) -> int:
    """Return a 63-bit seed that depends on ``seed`` and the names only.

    >>> derive_seed(42, "split", 0) == derive_seed(42, "split", 0)
    True
    >>> derive_seed(42, "split", 0) == derive_seed(42, "split", 1)
    False
    """
    text = "\0".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def make_generator(seed: int, *names: object) -> np.random.Generator:
    """Return the generator of a seed and names."""
    return np.random.default_rng(derive_seed(seed, *names))
