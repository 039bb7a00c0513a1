"""The types of settings that several re-rankers have."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Le

Strength: TypeAlias = Annotated[float, Ge(0), Le(1)]
"""The weight of the objective beside that of the scores."""

NumberOfCandidates: TypeAlias = Annotated[int, Gt(0), Le(10_000)]
"""The number of the model's best items from which a list is selected."""

Share: TypeAlias = Annotated[float, Ge(0), Le(1)]
"""A share of a list, or of the interactions."""
