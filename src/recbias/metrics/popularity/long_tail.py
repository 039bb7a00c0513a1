"""How much of the long tail is recommended: its share of each list, and how many of its items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Interval

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.item_popularity import (
    COLUMN_NEEDS,
    NEEDS,
    Cutoff,
    means,
    measured,
    of_lists,
    popularity_of,
    sums,
)
from recbias.numerics.inequality import head

Share: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
"""How much the head holds."""

HeadOf: TypeAlias = Literal["interactions", "items"]
"""What that is a share of."""


@dataclass(frozen=True, kw_only=True)
class APLT:
    """Average share of long-tail items in the lists.

        APLT@k = |L_u ∩ T| / |L_u|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds ``head`` of the interactions, or of the
    items; of equally popular items those of lower code are in the head. Undefined for an empty
    list.

    Args:
        head: The share that the head holds.
        head_of: What it is a share of: the ``interactions``, or the number of ``items``.
        popularity: A column of the items to take for the popularity, in place of the number of
            training interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    Range:
        0 to 1; undefined for an empty list.

    Source:
        Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems with
        personalized re-ranking", FLAIRS 2019.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    head: Share = 0.8
    head_of: HeadOf = "interactions"
    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return COLUMN_NEEDS if self.popularity else self.needs

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn where the items have no such column of numbers."""
        popularity_of(evidence, self.popularity)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        tail = tail_of(evidence, self.popularity, self.head, self.head_of)
        return measured(evidence, of_lists(evidence, tail, means, self.k))


@dataclass(frozen=True, kw_only=True)
class ACLT:
    """Average number of long-tail items in the lists.

        ACLT@k = |L_u ∩ T|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds ``head`` of the interactions, or of the
    items; of equally popular items those of lower code are in the head. Undefined for an empty
    list.

    Args:
        head: The share that the head holds.
        head_of: What it is a share of: the ``interactions``, or the number of ``items``.
        popularity: A column of the items to take for the popularity, in place of the number of
            training interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    Range:
        0 or more, at most k; undefined for an empty list.

    Source:
        Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems with
        personalized re-ranking", FLAIRS 2019.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    head: Share = 0.8
    head_of: HeadOf = "interactions"
    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return COLUMN_NEEDS if self.popularity else self.needs

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn where the items have no such column of numbers."""
        popularity_of(evidence, self.popularity)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        tail = tail_of(evidence, self.popularity, self.head, self.head_of)
        return measured(evidence, of_lists(evidence, tail, sums, self.k))


def tail_of(evidence: Evidence, column: str | None, share: float, of: HeadOf) -> FloatArray:
    """Return 1 for the items of the long tail and 0 for the head, ``float64[n_items]``.

    An item that nobody has trained on, and nothing can recommend, is in the tail and does not
    count among the items that the head is a share of: how many rows items.csv has does not matter.

    Args:
        evidence: The evidence.
        column: The column of popularity, or None for training interactions.
        share: How much the head holds.
        of: What that is a share of.
    """
    popularity = popularity_of(evidence, column)
    return in_tail(popularity, share, of, evidence.candidates)


def in_tail(
    popularity: FloatArray, share: float, of: HeadOf, counted: BoolArray | None = None
) -> FloatArray:
    """Return 1 for the items of the long tail and 0 for the head, ``float64[n_items]``.

    Args:
        popularity: The popularity of each item, ``float64[n_items]``; NaN where it is unknown, and
            the item is in neither.
        share: How much the head holds.
        of: What that is a share of.
        counted: The items that can be in the head, ``bool[n_items]``; None for all.
    """
    known = ~np.isnan(popularity)
    tail = np.where(known, 1.0, np.nan)
    inside = known if counted is None else known & counted
    tail[inside] = ~head(popularity[inside], share, of=of)
    return tail
