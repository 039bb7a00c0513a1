"""Metrics that use the embeddings of another model than the measured one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ChoosesMembers(Protocol):
    """A metric of embeddings that may choose members by the embeddings of another model."""

    chosen_in: str | None
    """The label of the other model, whose embeddings are ``evidence.choosing_embeddings``."""


@runtime_checkable
class BorrowsEmbeddings(Protocol):
    """A metric of lists that may compare items by the embeddings of another model."""

    embeddings_of: str | None
    """The label of the other model, whose embeddings are ``evidence.choosing_embeddings``."""
