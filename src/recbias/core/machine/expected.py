"""The protocols of plug-ins that say how large their result is.

Sizes are counts by name: ``users``, ``items``, ``interactions`` of the dataset, ``training``
interactions, ``queries``, and ``bytes`` of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

Sizes: TypeAlias = Mapping[str, int]


@runtime_checkable
class EstimatesDataset(Protocol):
    """A dataset plug-in that estimates its sizes from its files, without reading them whole."""

    def estimate_dataset(self, data: Path) -> Sizes:
        """Return ``users``, ``items`` and ``interactions`` of the files in a data folder."""


@runtime_checkable
class EstimatesSizes(Protocol):
    """A filter, split or source of queries that changes sizes."""

    def estimate_sizes(self, sizes: Sizes) -> Sizes:
        """Return the sizes after it, such as ``training`` after a split; other sizes stay."""
