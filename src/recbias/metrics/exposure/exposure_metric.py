"""Settings and steps that all measures of exposure share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from recbias.core.arrays import Matrix
from recbias.core.inherited_sections import InheritsSections
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.exposure.browsing import (
    BrowsingModel,
    Patience,
    build_exposure_matrix,
    weigh_ranks,
)
from recbias.metrics.exposure.item_groups import (
    ItemGroups,
    Multiple,
    Ungrouped,
    read_item_groups,
    warn_ungrouped,
)
from recbias.metrics.popularity.item_popularity import Cutoff


@dataclass(frozen=True, kw_only=True)
class ExposureMetric(InheritsSections):
    """A measure of the exposure that lists give to items.

    Args:
        browsing: How much exposure a rank r gives: ``rbp`` for gamma^(r - 1), or ``dcg`` for
            1 / log2(r + 1).
        gamma: The probability that a user goes on to the next rank, for ``rbp``; below 1.
        k: How many ranks of each list are evaluated; by default all.
    """

    browsing: BrowsingModel = "rbp"
    gamma: Patience = 0.8
    k: Cutoff = None

    def omitted_settings(self) -> frozenset[str]:
        """Return ``gamma`` where no rank depends on it."""
        return frozenset() if self.browsing == "rbp" else frozenset({"gamma"})

    def expose_items(self, evidence: Evidence) -> Matrix:
        """Return the exposure of the items of each list, CSR ``(q, n_items + n outside)``."""
        n_ranks = evidence.ranked.k if self.k is None else self.k
        return build_exposure_matrix(evidence, weigh_ranks(self.browsing, self.gamma, n_ranks))


@dataclass(frozen=True, kw_only=True)
class GroupExposureMetric(ExposureMetric):
    """A measure of the exposure that lists give to groups of items.

    Args:
        attribute: The column of the items that holds their groups, also a label of a detector
            (``ngim.gender``); a cell ``a|b`` is in both groups. ``weight of p_minor`` names a
            column of probabilities, by which exposure is weighted. Its groups are unknown:
            ``exposure_gap`` has an interval that accounts for this, other measures have none, and
            tests compare models given the probabilities.
        multiple: What an item of several groups gives to each: ``split`` an equal share of its
            exposure and relevance, ``full`` all of it.
        ungrouped: Whether items without a group are left out and counted in a warning
            (``exclude``), or are the group ``(none)`` (``group``).

    Raises:
        UnknownColumn: The items have no such column.
        WrongType: It holds numbers with fractions, which are no groups.
        NothingLeft: Fewer than two groups have an item that may be recommended.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})

    attribute: str
    multiple: Multiple = "split"
    ungrouped: Ungrouped = "exclude"

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` about the groups."""
        self.read_groups(evidence)

    def read_groups(self, evidence: Evidence) -> ItemGroups:
        """Return the groups of the items."""
        return read_item_groups(evidence, self.attribute, self.multiple, self.ungrouped)

    def expose_groups(self, evidence: Evidence, groups: ItemGroups) -> Matrix:
        """Return the exposure of each group in each list, CSR ``(q, g)``.

        Positions that hold an item without a group are counted in a warning.
        """
        warn_ungrouped(evidence, groups, self.k)
        return groups.sum_members(self.expose_items(evidence))
