"""The long tail, and how much of it is recommended: APLT and ACLT."""

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
    Cutoff,
    aggregate_lists,
    average_rows,
    read_popularity,
    sum_rows,
    summarize_queries,
)
from recbias.metrics.popularity.popularity_metric import NEEDS, PopularityMetric
from recbias.numerics.inequality import head

Share: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
"""The share that the head holds."""

HeadOf: TypeAlias = Literal["interactions", "items"]
"""What the head holds a share of."""


@dataclass(frozen=True, kw_only=True)
class APLT(PopularityMetric):
    """Average share of long-tail items in the lists.

        APLT@k = |L_u ∩ T| / |L_u|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds the share ``head`` of the interactions, or of
    the items; of equally popular items those with the lower code are in the head. Undefined for an
    empty list.

    Args:
        head: The share that the head holds.
        head_of: What it is a share of: the ``interactions``, or the number of ``items``.
        popularity: A column of the items that holds the popularity; by default it is the number of
            training interactions.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.

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

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        tail = mark_tail(evidence, self.popularity, self.head, self.head_of)
        return summarize_queries(evidence, aggregate_lists(evidence, tail, average_rows, self.k))


@dataclass(frozen=True, kw_only=True)
class ACLT(PopularityMetric):
    """Average number of long-tail items in the lists.

        ACLT@k = |L_u ∩ T|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds the share ``head`` of the interactions, or of
    the items; of equally popular items those with the lower code are in the head. Undefined for an
    empty list.

    Args:
        head: The share that the head holds.
        head_of: What it is a share of: the ``interactions``, or the number of ``items``.
        popularity: A column of the items that holds the popularity; by default it is the number of
            training interactions.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.

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

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        tail = mark_tail(evidence, self.popularity, self.head, self.head_of)
        return summarize_queries(evidence, aggregate_lists(evidence, tail, sum_rows, self.k))


def mark_tail(evidence: Evidence, column: str | None, share: float, of: HeadOf) -> FloatArray:
    """Return 1 for the items of the long tail and 0 for the head, ``float64[n_items]``.

    Items without a training interaction are in the tail, but do not count among the items that the
    head holds a share of: the number of rows of items.csv does not matter.

    Args:
        evidence: The training interactions, or the items.
        column: The column of the popularity; None counts training interactions.
        share: The share that the head holds.
        of: What it is a share of.
    """
    popularity = read_popularity(evidence, column)
    return mark_tail_by_popularity(popularity, share, of, evidence.candidates)


def mark_tail_by_popularity(
    popularity: FloatArray, share: float, of: HeadOf, candidates: BoolArray | None = None
) -> FloatArray:
    """Return 1 for the items of the long tail and 0 for the head, ``float64[n_items]``.

    Args:
        popularity: ``float64[n_items]``; an item of unknown popularity (NaN) is in neither.
        share: The share that the head holds.
        of: What it is a share of.
        candidates: The items that can be in the head, ``bool[n_items]``; None for all.
    """
    known = ~np.isnan(popularity)
    tail = np.where(known, 1.0, np.nan)
    inside = known if candidates is None else known & candidates
    tail[inside] = ~head(popularity[inside], share, of=of)
    return tail
