"""The long tail, and how much of it is recommended: APLT and ACLT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Interval

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.item_popularity import (
    Cutoff,
    aggregate_lists,
    average_rows,
    read_popularity,
    sum_rows,
)
from recbias.metrics.popularity.popularity_metric import PopularityMetric
from recbias.numerics.inequality import head

Share: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
"""The share that the head holds."""


@dataclass(frozen=True, kw_only=True)
class LongTailMetric(PopularityMetric):
    """A metric of the items outside the head.

    Args:
        head: The share that the head holds.
        head_of: What it is a share of: the ``interactions``, or the number of ``items``.
        popularity: What the popularity is: ``train`` counts the training interactions (the
            default), ``all`` those of all parts of the split; any other text is a column of the
            items. Columns called ``train`` and ``all`` are written ``items.train`` and
            ``items.all``.
    """

    head: Share = 0.8
    head_of: Literal["interactions", "items"] = "interactions"
    popularity: str | None = None
    k: Cutoff = None

    def mark_tail(self, evidence: Evidence) -> FloatArray:
        """Return 1 for the items of the long tail and 0 for the head, ``float64[n_items]``.

        Items without a training interaction are in the tail, but do not count among the items that
        the head holds a share of: the number of rows of items.csv does not matter. An item of
        unknown popularity is in neither (NaN).
        """
        popularity = read_popularity(evidence, self.popularity)
        known = ~np.isnan(popularity)
        tail = np.where(known, 1.0, np.nan)
        inside = known if evidence.candidates is None else known & evidence.candidates
        tail[inside] = ~head(popularity[inside], self.head, of=self.head_of)
        return tail


class APLT(LongTailMetric):
    """Average share of long-tail items in the lists.

        APLT@k = |L_u ∩ T| / |L_u|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds the share ``head`` of the interactions, or of
    the items; of equally popular items those with the lower code are in the head. Undefined for an
    empty list.

    Range:
        0 to 1; undefined for an empty list.

    Source:
        Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems with
        personalized re-ranking", FLAIRS 2019.
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        tail = self.mark_tail(evidence)
        return [evidence.measure_queries(aggregate_lists(evidence, tail, average_rows, self.k))]


class ACLT(LongTailMetric):
    """Average number of long-tail items in the lists.

        ACLT@k = |L_u ∩ T|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds the share ``head`` of the interactions, or of
    the items; of equally popular items those with the lower code are in the head. Undefined for an
    empty list.

    Range:
        0 or more, at most k; undefined for an empty list.

    Source:
        Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems with
        personalized re-ranking", FLAIRS 2019.
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        tail = self.mark_tail(evidence)
        return [evidence.measure_queries(aggregate_lists(evidence, tail, sum_rows, self.k))]
