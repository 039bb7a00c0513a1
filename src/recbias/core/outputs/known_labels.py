"""Labels of sentences and responses that are known before a model is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from recbias.core.queries.queries import Queries


@runtime_checkable
class ChecksLabels(Protocol):
    """A metric that groups the sentences or responses of a model by their labels."""

    def check_labels(self, labels: Sequence[str]) -> None:
        """Raise UnknownColumn if a setting names none of the labels; ``where`` is the setting."""


@runtime_checkable
class ListsLabels(Protocol):
    """A model that knows the labels of its sentences or responses before it is trained."""

    def list_labels(self, queries: Queries) -> Sequence[str]:
        """Return the labels, those of the queries that they have included."""
