"""Epochs of triples in blocks of users, whose vectors and items stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.models.factorization.triple_kernels import (
    BITS_PER_PAIR,
    PARTS,
    WORD,
    draw_triples,
    gather_block,
)
from recbias.models.training.samplers import Sampler
from recbias.numerics.compiled.loops import compile_loop

Triples: TypeAlias = tuple[Codes, Codes, Codes]

USERS_PER_BLOCK = 2048
"""Their 64 factors and the items of MovieLens' users take about 2 MB."""

MANY_USERS = 16_384
"""From so many users on, vectors and items are too large for the cache of a core."""


@dataclass(frozen=True, eq=False)
class UserBlocks:
    """Samples an epoch of triples, block of users after block of users.

    Each epoch divides the users into blocks anew, at random. The triples are the independent ones
    of ``Sampler.sample_triples`` in another order: how many are in each block is multinomial by
    its number of pairs, and those of a block are drawn in random order.

    Args:
        sampler: The pairs; negatives are uniform.
        size: About how many users a block has, at most 40,000.
    """

    sampler: Sampler
    size: int = USERS_PER_BLOCK

    def sample(self, rng: np.random.Generator) -> Triples:
        """Sample triples (user, seen item, unseen item), as many as there are pairs.

        Users who have every item are left out.

        >>> pairs = [np.array(codes, dtype=np.int32) for codes in ([0, 1, 1], [1, 0, 1])]
        >>> sampler = Sampler(*pairs, np.array([0, 1, 3]), np.array([1, 2]))
        >>> [array.tolist() for array in UserBlocks(sampler).sample(np.random.default_rng(0))]
        [[0], [1], [0]]
        """
        counts, n_items = np.diff(self.sampler.starts), self.sampler.ends.size
        users = np.flatnonzero((counts > 0) & (counts < n_items)).astype(np.int32)
        order = rng.permutation(users)
        n = int(counts[users].sum())
        triples = (np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32))
        if n:
            n_blocks = max(1, round(users.size / self.size))
            blocks = np.array_split(order, n_blocks)
            sizes = np.array([counts[block].sum() for block in blocks])
            ends = np.cumsum(rng.multinomial(n, sizes / n))
            seeds = rng.integers(2**64, size=n_blocks, dtype=np.uint64)
            self._fill(blocks, sizes, ends, seeds, triples)
        return triples

    def _fill(
        self, blocks: list[Codes], sizes: AnyArray, ends: AnyArray, seeds: AnyArray, triples: Any
    ) -> None:
        """Draw the triples of each block up to its end."""
        memory = _create_memory(int(sizes.max()), blocks[0].size)
        gather, draw = compile_loop(gather_block), compile_loop(draw_triples, parts=PARTS)
        start = 0
        for users, end, seed in zip(blocks, ends.tolist(), seeds, strict=True):
            gather(users, self.sampler.starts, self.sampler.items, memory)
            parts = tuple(array[start:end] for array in triples)
            draw(seed, self.sampler.ends.size, users, memory, parts)
            start = end


def _create_memory(n_pairs: int, n_users: int) -> tuple[AnyArray, ...]:
    """Return the arrays of ``triple_kernels`` for the largest block."""
    n_words = 2 * BITS_PER_PAIR * n_pairs // WORD + n_users  # powers of two: less than twice
    return (
        np.empty(n_pairs, dtype=np.uint16),
        np.empty(n_pairs, dtype=np.int32),
        np.empty(n_users + 1, dtype=np.int64),
        np.empty(n_users, dtype=np.int64),
        np.empty(n_users, dtype=np.uint32),
        np.empty(n_words, dtype=np.uint32),
    )


def create_triple_sampler(
    sampler: Sampler, *, in_blocks: bool
) -> Callable[[np.random.Generator], Triples]:
    """Return a sampler of an epoch's triples, in blocks if that is allowed and of use.

    It is of use for ``MANY_USERS``, and possible if negatives are uniform.
    """
    if in_blocks and sampler.is_uniform and sampler.starts.size > MANY_USERS:
        return UserBlocks(sampler).sample
    return lambda rng: sampler.sample_triples(sampler.users.size, rng)
