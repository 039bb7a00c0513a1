"""How popularity is distributed and ordered within a list: concentration and rank correlation.

These metrics do not depend on the level of popularity: a list of equally rare items and one of
equally popular items have the same concentration. ``mean_popularity`` has the metrics of the
level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence, mark_contained
from recbias.metrics.popularity.desiderata import Desideratum, evaluate_desiderata
from recbias.metrics.popularity.item_popularity import (
    Cutoff,
    build_history_matrix,
    gini,
    herfindahl,
    read_popularity,
    warn_excluded_positions,
)
from recbias.metrics.popularity.popularity_metric import HistoryComparison, PopularityMetric
from recbias.numerics.rank_agreement import spearman


@dataclass(frozen=True, kw_only=True)
class GiniDifference(HistoryComparison):
    """Gini index of the popularities in a user's list minus that in the user's history.

        Gini(L_u) - Gini(H_u),    Gini(X) = Σ_i ((2 i - n - 1) / n) φ_i / Σ_j φ_j

    L_u is the list of user u cut at k, H_u the user's training items, φ_1 ≤ ... ≤ φ_n the
    popularities of the n items of X. 0 is neutral; a positive value is a list whose popularities
    are less even than those of the history. The index does not depend on the level: equally
    popular items have Gini 0, whether they are popular or rare. Undefined if the list or the
    history is empty or has popularity 0.

    The interval of a counted popularity refers to all users that could be sampled: a bootstrap of
    the users counts the popularity again, and the interval is as wide as its error and bias
    together. Tests and the intervals of groups (``by``) treat the popularity as known.

    >>> sets = np.array([1.0, 1.0, 4.0]), np.array([5.0, 5.0])
    >>> float(GiniDifference().compare_sets(*sets).round(6))  # (-2 + 0 + 2 x 4) / (3 x 6)
    0.333333

    Range:
        -1 to 1; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024, section 3.2, after Adomavicius
        and Kwon, "Maximizing aggregate recommendation diversity", DiveRS at RecSys 2011.
    """

    direction: ClassVar[Direction] = "zero"
    aggregate = gini

    popularity: str | None = None
    k: Cutoff = None


@dataclass(frozen=True, kw_only=True)
class HerfindahlDifference(HistoryComparison):
    """Herfindahl index of the popularities in a user's list minus that in the user's history.

        H(L_u) - H(H_u),    H(X) = Σ_{i in X} ( φ(i) / Σ_{j in X} φ(j) )²

    L_u is the list of user u cut at k, H_u the user's training items, φ the popularity of an item.
    H is 1/n if all n items are equally popular, and near 1 if one item has nearly all
    interactions. A history that is longer than the list tends to have a smaller H, so the value of
    random lists is not 0: compare models with each other, not with 0. Undefined if the list or the
    history is empty or has popularity 0.

    The interval of a counted popularity refers to all users that could be sampled: a bootstrap of
    the users counts the popularity again, and the interval is as wide as its error and bias
    together. Tests and the intervals of groups (``by``) treat the popularity as known.

    >>> sets = np.array([3.0, 1.0]), np.array([5.0, 5.0])
    >>> float(HerfindahlDifference().compare_sets(*sets))  # 9/16 + 1/16 - 1/2
    0.125

    Range:
        -1 to 1; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024, section 3.2, after Adomavicius
        and Kwon, "Maximizing aggregate recommendation diversity", DiveRS at RecSys 2011.
    """

    direction: ClassVar[Direction] = "zero"
    aggregate = herfindahl

    popularity: str | None = None
    k: Cutoff = None


@dataclass(frozen=True, kw_only=True)
class PopularityRankCorrelation(PopularityMetric):
    """Rank correlation between the popularity of the items of a list and their position.

        ρ(u) = - Spearman( φ(i), rank_u(i) ),    i in L_u ∩ X

    L_u is the list of user u cut at k, rank_u the position in it from 1 at the top, φ the
    popularity of an item; X is the set chosen by ``over``. 1 is a list sorted by descending
    popularity, -1 by ascending; the minus sign makes positive values a bias towards popular items,
    as in the other metrics. Equally popular items share their mean rank.

    - ``list``: all items of the list.
    - ``history``: the items of the user's history, as in the text of Lichtenberg et al. (items in
      both the recommended and the consumed set). All recommenders of this package exclude the
      history from the list, so this is for imported lists.
    - ``test``: the user's test items, the matched items of Zhu et al.

    Undefined for fewer than two such items, or if all are equally popular.

    Args:
        over: Which items of the list are correlated: ``list``, ``history`` or ``test``.

    >>> popularity = np.array([9.0, 7.0, 2.0])
    >>> float(PopularityRankCorrelation().compare_sets(popularity, np.array([1.0])))
    1.0

    Range:
        -1 to 1; undefined for fewer than two such items, or equally popular ones.

    Source:
        Zhu, He, Zhao, Zhang, Wang and Caverlee, "Popularity-opportunity bias in collaborative
        filtering", WSDM 2021, PRU; Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024,
        section 3.2.
    """

    direction: ClassVar[Direction] = "zero"

    over: Literal["list", "history", "test"] = "list"
    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: those of the popularity, and of ``over``."""
        more = {"list": frozenset[str](), "history": {"train"}, "test": {"test"}}[self.over]
        return super().needs_now() | more

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = read_popularity(evidence, self.popularity)
        items, known = evidence.ranked.items[:, : self.k], evidence.in_catalogue[:, : self.k]
        listed = np.append(popularity, np.nan)[np.where(known, items, -1)]
        warn_excluded_positions(evidence, self.k, int(np.count_nonzero(~np.isnan(listed))))
        listed[~self._mark_positions(evidence)[:, : self.k]] = np.nan
        return [evidence.measure_queries(_correlate_with_rank(listed))]

    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the correlation of popularities, best item first; ``consumed`` is not used."""
        return _correlate_with_rank(np.asarray(recommended, dtype=np.float64))

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five desiderata the metric satisfies on random sets."""
        return evaluate_desiderata(self)

    def _mark_positions(self, evidence: Evidence) -> BoolArray:
        if self.over == "test":
            return evidence.hits
        if self.over == "history":
            return mark_contained(build_history_matrix(evidence), evidence.ranked)
        return evidence.in_catalogue


def _correlate_with_rank(popularity: FloatArray) -> FloatArray:
    """Return minus the rank correlation of popularity and position, ``(..., k)`` to ``(...)``."""
    height = -np.arange(popularity.shape[-1], dtype=np.float64)
    return spearman(popularity, np.broadcast_to(height, popularity.shape))
