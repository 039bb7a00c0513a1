"""Base classes of the metrics of two groups, and of two groups and two target sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from recbias.core.inherited_sections import InheritsSections
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.embeddings.entity_pairs import GroupPair, TargetPair
from recbias.metrics.embeddings.entity_sets import select_members


@dataclass(frozen=True, kw_only=True)
class GroupMetric(InheritsSections):
    """A metric of the vectors of two groups.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The table has no such attribute.
        NothingLeft: Fewer than two members of a set have the value and a vector.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items"})
    unit: ClassVar[str] = ""

    groups: GroupPair

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"embeddings", self.groups.of})

    def check(self, evidence: Evidence) -> None:
        """Validate the settings before any training."""
        select_members(evidence, self.groups)


@dataclass(frozen=True, kw_only=True)
class ChoosingMetric(InheritsSections):
    """A metric that uses the members of two groups that are most aligned with their group.

    Args:
        chosen_in: The label of the model in whose embedding space the most aligned members are
            chosen, so that several models use the same ones; by default each model its own.

    Raises:
        UnknownName: No model has this label.
    """

    chosen_in: str | None = None


@dataclass(frozen=True, kw_only=True)
class TargetMetric(GroupMetric):
    """A metric of the vectors of two groups and two target sets.

    Args:
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
    """

    targets: TargetPair

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return super().needs_now() | {self.targets.of}

    def check(self, evidence: Evidence) -> None:
        """Validate the settings before any training."""
        super().check(evidence)
        select_members(evidence, self.targets)
