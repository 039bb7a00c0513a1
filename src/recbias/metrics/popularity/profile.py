"""How the popularity of a list is spread and ordered: concentration, and rank against popularity.

These say nothing of the level of popularity: a list of equally rare items and one of equally
popular ones have the same spread. ``popularity`` has the metrics of the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence, mark_contained
from recbias.core.stage_context import warn
from recbias.metrics.popularity.desiderata import Desideratum, desiderata
from recbias.metrics.popularity.item_popularity import (
    COLUMN_NEEDS,
    NEEDS,
    Cutoff,
    compared,
    gini,
    herfindahl,
    histories_of,
    measured,
    of_sets,
    popularity_of,
)
from recbias.numerics.rank_agreement import spearman


@dataclass(frozen=True, kw_only=True)
class GiniDifference:
    """Whether the popularity of a list is spread less evenly than that of the user's history.

        Gini(L_u) - Gini(H_u),    Gini(X) = Σ_i ((2 i - n - 1) / n) φ_i / Σ_j φ_j

    L_u is the list of user u cut at k, H_u the user's training items, φ_1 ≤ ... ≤ φ_n the
    popularities of the n items of X. 0 is neutral; positive is a list that mixes very popular
    items with rare ones more than the history does. It does not see the level: items that are all
    as popular have Gini 0, be they hits or rarities. Undefined where the list or the history is
    empty or has popularity 0.

    Args:
        popularity: A column of the items to take for φ, in place of the number of training
            interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    >>> sets = np.array([1.0, 1.0, 4.0]), np.array([5.0, 5.0])
    >>> float(GiniDifference().of_sets(*sets).round(6))  # (-2 + 0 + 2 x 4) / (3 x 6)
    0.333333

    Range:
        -1 to 1; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024, section 3.2, after Adomavicius
        and Kwon, "Maximizing aggregate recommendation diversity", DiveRS at RecSys 2011.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"

    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return COLUMN_NEEDS | {"train"} if self.popularity else self.needs

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn where the items have no such column of numbers."""
        popularity_of(evidence, self.popularity)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = popularity_of(evidence, self.popularity)
        given, chosen = compared(evidence, popularity, gini, self.k)
        return measured(evidence, given - chosen)

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the difference of sets given by the popularities of their items, ``(..., n)``."""
        return of_sets(recommended, gini) - of_sets(consumed, gini)

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five properties it has, tried on random sets."""
        return desiderata(self)


@dataclass(frozen=True, kw_only=True)
class HerfindahlDifference:
    """Whether the popularity of a list is more concentrated than that of the user's history.

        H(L_u) - H(H_u),    H(X) = Σ_{i in X} ( φ(i) / Σ_{j in X} φ(j) )²

    L_u is the list of user u cut at k, H_u the user's training items, φ the popularity of an item.
    H is 1/n where all n items are as popular, and near 1 where one of them has nearly all. A
    history longer than the list therefore has a smaller H whatever is in it, so the figure of
    Random lists is not 0: compare models, not a model with 0. Undefined where the list or the
    history is empty or has popularity 0.

    Args:
        popularity: A column of the items to take for φ, in place of the number of training
            interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    >>> sets = np.array([3.0, 1.0]), np.array([5.0, 5.0])
    >>> float(HerfindahlDifference().of_sets(*sets))  # 9/16 + 1/16 - 1/2
    0.125

    Range:
        -1 to 1; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024, section 3.2, after Adomavicius
        and Kwon, "Maximizing aggregate recommendation diversity", DiveRS at RecSys 2011.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"

    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return COLUMN_NEEDS | {"train"} if self.popularity else self.needs

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn where the items have no such column of numbers."""
        popularity_of(evidence, self.popularity)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = popularity_of(evidence, self.popularity)
        given, chosen = compared(evidence, popularity, herfindahl, self.k)
        return measured(evidence, given - chosen)

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the difference of sets given by the popularities of their items, ``(..., n)``."""
        return of_sets(recommended, herfindahl) - of_sets(consumed, herfindahl)

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five properties it has, tried on random sets."""
        return desiderata(self)


@dataclass(frozen=True, kw_only=True)
class PopularityRankCorrelation:
    """Whether the more popular items stand higher in a list.

        ρ(u) = - Spearman( φ(i), rank_u(i) ),    i in L_u ∩ X

    L_u is the list of user u cut at k, rank_u the place in it from 1 at the top, φ the popularity
    of an item; X is what ``over`` says. The minus makes 1 the list in which every item is more
    popular than the next, as positive is too popular in the other measures; -1 is the reverse.
    Items as popular share their mean rank.

    - ``list``: all items of the list.
    - ``history``: those that the user has, the words of Lichtenberg et al. (items in both the
      recommended and the consumed set). A recommender that leaves out what the user has, as all
      of this package do, has none: this is for lists made elsewhere.
    - ``test``: those among the user's test items, the matched items of Zhu et al.

    Undefined (NaN, and counted) where fewer than two such items are there, or all are as popular.

    Args:
        over: Which items of the list are correlated: ``list``, ``history`` or ``test``.
        popularity: A column of the items to take for φ, in place of the number of training
            interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    >>> float(PopularityRankCorrelation().of_sets(np.array([9.0, 7.0, 2.0]), np.array([1.0])))
    1.0

    Range:
        -1 to 1; undefined for fewer than two such items, or all of them as popular.

    Source:
        Zhu, He, Zhao, Zhang, Wang and Caverlee, "Popularity-opportunity bias in collaborative
        filtering", WSDM 2021, PRU; Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024,
        section 3.2.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"

    over: Literal["list", "history", "test"] = "list"
    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: the popularity's, and those of ``over``."""
        more = {"list": frozenset[str](), "history": {"train"}, "test": {"test"}}[self.over]
        return (COLUMN_NEEDS if self.popularity else self.needs) | more

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn where the items have no such column of numbers."""
        popularity_of(evidence, self.popularity)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = popularity_of(evidence, self.popularity)
        items, known = evidence.ranked.items[:, : self.k], evidence.in_catalogue[:, : self.k]
        found = np.append(popularity, np.nan)[np.where(known, items, -1)]
        strangers = int(np.count_nonzero((items >= 0) & np.isnan(found)))
        if strangers:
            what = "hold an item without a popularity that counts, and are left out"
            warn(f"{evidence.metric}: {strangers:,} places of the lists {what}")
        found[~self._counted(evidence)[:, : self.k]] = np.nan
        return measured(evidence, _higher_is_more_popular(found))

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the correlation of lists given by the popularities of their items, best first.

        What was consumed has no part in it.
        """
        return _higher_is_more_popular(np.asarray(recommended, dtype=np.float64))

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five properties it has, tried on random sets."""
        return desiderata(self)

    def _counted(self, evidence: Evidence) -> BoolArray:
        if self.over == "test":
            return evidence.hits
        if self.over == "history":
            return mark_contained(histories_of(evidence), evidence.ranked)
        return evidence.in_catalogue


def _higher_is_more_popular(popularity: FloatArray) -> FloatArray:
    """Return the rank correlation of the popularity with the height of the place, ``[...]``."""
    height = -np.arange(popularity.shape[-1], dtype=np.float64)
    return spearman(popularity, np.broadcast_to(height, popularity.shape))
