"""The types of settings that several re-rankers have."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Le

from recbias.core.machine.expected import ModelMemory, Sizes
from recbias.numerics.sparse.blocks import MEMORY_LIMIT

Strength: TypeAlias = Annotated[float, Ge(0), Le(1)]
"""The weight of the objective beside that of the scores."""

NumberOfCandidates: TypeAlias = Annotated[int, Gt(0), Le(10_000)]
"""The number of the model's best items from which a list is selected."""

Share: TypeAlias = Annotated[float, Ge(0), Le(1)]
"""A share of a list, or of the interactions."""

PER_CANDIDATE = 16
"""Bytes of a candidate: its item and its score, twice."""

VALUES = 6
"""Number of values of an item in an attribute: sizes do not tell it."""


def plan_selection(sizes: Sizes, candidates: int, bytes_per_candidate: float) -> ModelMemory:
    """Return the memory of selecting lists from candidates.

    Args:
        sizes: The sizes of the data.
        candidates: Number of candidates of a query.
        bytes_per_candidate: Bytes of a candidate while its block is selected from; those of all
            blocks are limited, and arrays that are freed take as much again.
    """
    n_queries = sizes.get("queries", sizes["users"])
    n = float(n_queries) * min(candidates, sizes["items"])
    blocks = min(2.0 * MEMORY_LIMIT, bytes_per_candidate * n)
    return ModelMemory(fit=0.0, state=0.0, lists=PER_CANDIDATE * n + blocks, ranking="none")
