"""Base classes of the popularity metrics with one value for each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.item_popularity import read_popularity

NEEDS = frozenset({"lists", "train"})
"""The kinds of evidence if the popularity is the number of training interactions."""


class PopularityMetric:
    """A metric of popularity, which is counted in training or read from a column of the items."""

    needs: ClassVar[frozenset[str]]

    if TYPE_CHECKING:

        @property
        def popularity(self) -> str | None:
            """The column of the popularity; None for training interactions."""

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a popularity column replaces the training interactions."""
        return frozenset({"lists", "items"}) if self.popularity else self.needs

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn if the items have no such numeric column."""
        read_popularity(evidence, self.popularity)


class HistoryComparison(PopularityMetric):
    """A metric that compares the popularity of a user's list with that of the history."""

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: those of the popularity, and the histories."""
        return super().needs_now() | {"train"}
