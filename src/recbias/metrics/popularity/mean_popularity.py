"""How popular the recommended items are, by themselves and against what the users had chosen.

The popularity of an item is its number of training interactions, or a column of the items table.
Every metric here is one value a query; ``popularity_values`` has what they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.desiderata import Desideratum, desiderata
from recbias.metrics.popularity.item_popularity import (
    COLUMN_NEEDS,
    NEEDS,
    Cutoff,
    compared,
    in_histories,
    in_lists,
    means,
    measured,
    of_lists,
    of_sets,
    popularity_of,
    refuse_zeros,
)


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

    Range:
        0 or more, in interactions; undefined for an empty list.

    Source:
        Yin, Cui, Li, Yao and Chen, "Challenging the long tail recommendation", VLDB 2012.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

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
        popularity = popularity_of(evidence, self.popularity)
        return measured(evidence, of_lists(evidence, popularity, means, self.k))


@dataclass(frozen=True, kw_only=True)
class LogPopularityDifference:
    """Whether a user is recommended items more popular than those they had chosen, on a log scale.

        Δ(u) = (1/|p_r|) Σ_{i in p_r} ln φ(i)  -  (1/|p_u|) Σ_{i in p_u} ln φ(i)

    p_r are the items of the user's list cut at k, p_u the user's training items, φ the popularity
    of an item; the logarithm is natural. 0 is neutral, positive is too popular: ln 2 is items
    twice as popular. An item of popularity 0 in a list or history has no logarithm and is an error
    that names it, unless ``smoothing`` is added to every φ. Items of unknown popularity are left
    out and counted; undefined for a list or a history in which none is left.

    Args:
        popularity: A column of the items to take for φ, in place of the number of training
            interactions.
        smoothing: Added to the popularity of every item before the logarithm; null adds nothing.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.
        OutOfRange: An item of a list or history has popularity 0, and there is no smoothing.

    Range:
        Any number; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study
        of popularity bias", Gen-IR at SIGIR 2024, equation 2.
    """

    needs: ClassVar[frozenset[str]] = NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = "query"

    popularity: str | None = None
    smoothing: Annotated[float, Gt(0)] | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return COLUMN_NEEDS | {"train"} if self.popularity else self.needs

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn for such a column, OutOfRange for a history with a popularity 0."""
        refuse_zeros(evidence, self._smoothed(evidence), in_histories(evidence))

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        popularity = self._smoothed(evidence)
        refuse_zeros(evidence, popularity, in_lists(evidence, self.k) | in_histories(evidence))
        with np.errstate(divide="ignore"):  # an item that nobody has or is given may have 0
            logs = np.log(popularity)
        given, chosen = compared(evidence, logs, means, self.k)
        return measured(evidence, given - chosen)

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the difference of sets given by the popularities of their items, ``(..., n)``.

        >>> sets = np.array([4.0, 2.0]), np.array([4.0, 2.0, 1.0])
        >>> float(LogPopularityDifference().of_sets(*sets).round(6))  # 1.5 ln 2 - ln 2
        0.346574
        """
        given, chosen = (
            of_sets(np.log(np.asarray(each) + (self.smoothing or 0.0)), means)
            for each in (recommended, consumed)
        )
        return given - chosen

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five properties it has, tried on random sets."""
        return desiderata(self)

    def _smoothed(self, evidence: Evidence) -> FloatArray:
        return popularity_of(evidence, self.popularity) + (self.smoothing or 0.0)


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

    Range:
        -1 or more; undefined for an empty list or history.

    Source:
        Abdollahpouri, Mansoury, Burke and Mobasher, "The connection between popularity bias,
        calibration, and fairness in recommendation", RecSys 2020; here for one user at a time.
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
        return measured(evidence, _lift(*compared(evidence, popularity, means, self.k)))

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the lift of sets given by the popularities of their items, ``(..., n)``."""
        return _lift(of_sets(recommended, means), of_sets(consumed, means))

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five properties it has, tried on random sets."""
        return desiderata(self)


def _lift(given: FloatArray, chosen: FloatArray) -> FloatArray:
    undefined = np.full(given.shape, np.nan)
    found: FloatArray = np.divide(given - chosen, chosen, out=undefined, where=chosen > 0)
    return found
