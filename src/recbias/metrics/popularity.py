"""How popular the recommended items are, by themselves and against what the users had chosen.

The popularity of an item is its number of training interactions, or a column of the items table.
Every metric here is one value a query. Items of unknown popularity (outside the catalogue, or with
a missing or negative cell in the column) are left out of a list, and counted in a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from annotated_types import Gt, Interval

from recbias.core.arrays import FloatArray
from recbias.core.evidence import Evidence
from recbias.core.notes import warn
from recbias.core.scores import Direction, Measurement, UnitScores
from recbias.numerics.inequality import head

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None

_NEEDS = frozenset({"lists", "train"})
_OF_COLUMN = frozenset({"lists", "items"})


@dataclass(frozen=True, kw_only=True)
class ARP:
    """Average recommendation popularity: how popular the items of each list are.

        ARP@k = (1 / |L_u|) Σ_{i in L_u} φ(i)

    L_u is the list of user u cut at k, φ the popularity of an item. Undefined for an empty list.

    Args:
        popularity: A column of the items to take for φ, in place of the number of training
            interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    Source:
        Yin, Cui, Li, Yao and Chen, "Challenging the long tail recommendation", VLDB 2012.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"
    formula: ClassVar[str] = "mean over the list of popularity(i)"
    values: ClassVar[str] = "0 or more, in interactions; undefined for an empty list"
    source: ClassVar[str] = "Yin et al., Challenging the long tail recommendation, VLDB 2012"

    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return _OF_COLUMN if self.popularity else self.needs

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = _popularity(evidence, self.popularity)
        return _measured(evidence, _list_means(evidence, popularity, self.k))


@dataclass(frozen=True, kw_only=True)
class LogPopularityDifference:
    """Whether a user is recommended items more popular than those they had chosen, on a log scale.

        Δ(u) = (1/|p_r|) Σ_{i in p_r} ln φ(i)  -  (1/|p_u|) Σ_{i in p_u} ln φ(i)

    p_r are the items of the user's list cut at k, p_u the user's training items, φ the popularity
    of an item; the logarithm is natural. 0 is neutral, positive is too popular: ln 2 is items
    twice as popular. Items of popularity 0, which have no logarithm, are left out of both means.
    Undefined for a list or a history in which none is left.

    Args:
        popularity: A column of the items to take for φ, in place of the number of training
            interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    Source:
        Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study
        of popularity bias", Gen-IR at SIGIR 2024, equation 2.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"
    formula: ClassVar[str] = (
        "mean over the list of ln popularity(i) - mean over the history of ln popularity(i)"
    )
    values: ClassVar[str] = "any number; undefined for an empty list or history"
    source: ClassVar[str] = "Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024, equation 2"

    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return _OF_COLUMN | {"train"} if self.popularity else self.needs

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = _popularity(evidence, self.popularity)
        logs = np.log(popularity, out=np.full(popularity.shape, np.nan), where=popularity > 0)
        given = _list_means(evidence, logs, self.k)
        return _measured(evidence, given - _history_means(evidence, logs))


@dataclass(frozen=True, kw_only=True)
class PopularityLift:
    """By how much the items of a list are more popular than those the user had chosen.

        lift(u) = ( AP(L_u) - AP(H_u) ) / AP(H_u),    AP(X) = (1/|X|) Σ_{i in X} φ(i)

    L_u is the list of user u cut at k, H_u the user's training items, φ the popularity of an item.
    0 is neutral, 1 is twice as popular, -1 the least there is. Undefined for an empty list, or a
    history that is empty or has popularity 0.

    Args:
        popularity: A column of the items to take for φ, in place of the number of training
            interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    Source:
        Abdollahpouri, Mansoury, Burke and Mobasher, "The connection between popularity bias,
        calibration, and fairness in recommendation", RecSys 2020; here for one user at a time.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"
    formula: ClassVar[str] = (
        "(mean popularity of the list - mean popularity of the history) / that of the history"
    )
    values: ClassVar[str] = "-1 or more; undefined for an empty list or history"
    source: ClassVar[str] = "Abdollahpouri, Mansoury, Burke and Mobasher, RecSys 2020"

    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return _OF_COLUMN | {"train"} if self.popularity else self.needs

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = _popularity(evidence, self.popularity)
        chosen = _history_means(evidence, popularity)
        chosen[chosen == 0] = np.nan
        given = _list_means(evidence, popularity, self.k)
        return _measured(evidence, (given - chosen) / chosen)


@dataclass(frozen=True, kw_only=True)
class APLT:
    """Average share of long-tail items in the lists.

        APLT@k = |L_u ∩ T| / |L_u|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds ``head`` of the interactions; of equally
    popular items those of lower code are in the head. Undefined for an empty list.

    Args:
        head: The share of the interactions that the head holds.
        popularity: A column of the items to take for the popularity, in place of the number of
            training interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    Source:
        Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems with
        personalized re-ranking", FLAIRS 2019.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"
    formula: ClassVar[str] = "long-tail items in the list / items in the list"
    values: ClassVar[str] = "0 to 1; undefined for an empty list"
    source: ClassVar[str] = "Abdollahpouri, Burke and Mobasher, FLAIRS 2019"

    head: Annotated[float, Interval(ge=0, le=1)] = 0.8
    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return _OF_COLUMN if self.popularity else self.needs

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = _popularity(evidence, self.popularity)
        in_tail = ~head(np.nan_to_num(popularity), self.head)
        tail = np.where(np.isnan(popularity), np.nan, in_tail)
        return _measured(evidence, _list_means(evidence, tail, self.k))


def _popularity(evidence: Evidence, column: str | None) -> FloatArray:
    """Return the popularity of each item, ``float64[n_items]``; NaN where it is unknown."""
    if column is None:
        return evidence.popularity
    evidence.need("items")
    numbers = evidence.items.numbers(column)  # type: ignore[union-attr]  # need() raises on None
    return np.where(numbers >= 0, numbers, np.nan)


def _list_means(evidence: Evidence, worth: FloatArray, k: int | None) -> FloatArray:
    """Return the mean worth of the items of each list, ``float64[q]``; NaN where none is known."""
    items = evidence.ranked.items[:, :k]
    known = evidence.in_catalogue[:, :k]
    found = np.append(worth, np.nan)[np.where(known, items, -1)]
    counted = ~np.isnan(found)
    strangers = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(counted))
    if strangers:
        what = "hold an item without a popularity that counts, and are left out"
        warn(f"{evidence.metric}: {strangers:,} places of the lists {what}")
    return _mean(np.where(counted, found, 0.0).sum(axis=1), np.count_nonzero(counted, axis=1))


def _history_means(evidence: Evidence, worth: FloatArray) -> FloatArray:
    """Return the mean worth of the training items of each query, ``float64[q]``."""
    evidence.need("train")
    histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
    known = ~np.isnan(worth)
    means = _mean(histories @ np.where(known, worth, 0.0), histories @ known.astype(np.float64))
    return np.append(means, np.nan)[evidence.queries.users]  # a query of no user reads the NaN


def _mean(totals: FloatArray, counts: FloatArray) -> FloatArray:
    undefined = np.full(totals.shape, np.nan)
    found: FloatArray = np.divide(totals, counts, out=undefined, where=counts > 0)
    return found


def _measured(evidence: Evidence, values: FloatArray) -> Sequence[Measurement]:
    queries = evidence.queries
    return [Measurement.of_units(UnitScores(queries.unit, queries.ids.ids, values))]
