"""Accuracy: how well the lists hold the items that were held out of training.

Every metric here is one value a query. A query without a test item is undefined: NaN, counted, and
left out of the mean. A list without an item answered nothing and is 0. Gains are binary: a test
item is relevant, whatever its rating. The arithmetic is in ``hit_scores``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from annotated_types import Gt

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy import hit_scores

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None

_NEEDS = frozenset({"lists", "test"})
_VALUES = "0 to 1; undefined for a query without test items"


def _measured(
    evidence: Evidence,
    score: Callable[..., FloatArray],
    k: int | None,
    *,
    share: bool = False,
) -> Sequence[Measurement]:
    """Return the one measurement of a score of each list; without ``k``, of the whole lists."""
    cutoff = k or max(evidence.ranked.k, 1)
    values = score(evidence.hits, evidence.n_relevant, cutoff)
    queries = evidence.queries
    return [Measurement.from_units(UnitScores(queries.unit, queries.ids.ids, values, share))]


@dataclass(frozen=True, kw_only=True)
class NDCG:
    """How much of the gain of a perfect list each list has, early hits counting more.

        nDCG@k = Σ_{r ≤ k} rel(r) / log2(r + 1)  /  Σ_{r ≤ min(R, k)} 1 / log2(r + 1)

    ``rel(r)`` is 1 where the item at rank r is a test item, else 0; R is the number of the query's
    test items, so the second sum is the gain of a list that begins with as many of them as fit.
    1 is a perfect list. Undefined without a test item; an empty list is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
        2002, with the discount log2(r + 1).
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.ndcg, self.k)


@dataclass(frozen=True, kw_only=True)
class HitRate:
    """The share of queries whose list holds at least one test item.

        HR@k = 1 if rel(r) = 1 for any r ≤ k, else 0

    ``rel(r)`` is 1 where the item at rank r is a test item. Also called Success@k. Undefined
    without a test item; an empty list is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        Deshpande and Karypis, "Item-based top-N recommendation algorithms", ACM TOIS 2004.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.hit_rate, self.k, share=True)


@dataclass(frozen=True, kw_only=True)
class MRR:
    """How early the first test item stands in each list.

        MRR@k = 1 / r₁ if r₁ ≤ k, else 0

    ``r₁`` is the rank of the first test item. Undefined without a test item; an empty list is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.reciprocal_rank, self.k)


@dataclass(frozen=True, kw_only=True)
class MAP:
    """Average precision: the mean precision at the ranks of the test items.

        AP@k = Σ_{r ≤ k} P@r · rel(r)  /  min(R, k),    P@r = hits among the first r / r

    ``rel(r)`` is 1 where the item at rank r is a test item; R is the number of the query's test
    items. A list that begins with test items only is 1, also where R is more than k. This is AP
    proper: ``mean_precision`` is what the Elliot framework calls MAP, and TREC's ``map_cut``
    divides by R instead of min(R, k). Undefined without a test item; an empty list is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000; divided by
        min(R, k), as is usual for lists of k.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.average_precision, self.k)


@dataclass(frozen=True, kw_only=True)
class MeanPrecision:
    """The mean of the precisions at 1, 2, ..., k: what the Elliot framework calls MAP.

        mean_precision@k = (1/k) Σ_{r ≤ k} P@r,    P@r = hits among the first r / r

    Every rank counts, hit or not, and the number of test items does not matter: this is not
    average precision, which is ``MAP``. Ranks behind the end of a short list have no hit.
    Undefined without a test item; an empty list is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        Anelli et al., "Elliot: a comprehensive and rigorous framework for reproducible
        recommender systems evaluation", SIGIR 2021, metric MAP as implemented.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.mean_precision, self.k)


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The share of each list that is test items.

        P@k = hits among the first k / k

    The divisor is k also where the list is shorter. Undefined without a test item; an empty list
    is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        Cleverdon, "The Cranfield tests on index language devices", 1967; cut at k.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.precision, self.k)


@dataclass(frozen=True, kw_only=True)
class Recall:
    """The share of the test items that each list holds.

        R@k = hits among the first k / R

    R is the number of the query's test items; where it is more than k, 1 is out of reach.
    Undefined without a test item; an empty list is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        Cleverdon, "The Cranfield tests on index language devices", 1967; cut at k.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.recall, self.k)


@dataclass(frozen=True, kw_only=True)
class RPrecision:
    """The precision at R, where R is the number of the test items.

        R-Precision@k = hits among the first min(R, k) / R

    Precision and recall are equal at that rank. Where R is more than the length of the list, the
    places behind its end have no hit: give long lists to this metric. Undefined without a test
    item; an empty list is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        Buckley and Voorhees, "Retrieval system evaluation", in TREC: Experiment and Evaluation
        in Information Retrieval, 2005.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.r_precision, self.k)


@dataclass(frozen=True, kw_only=True)
class F1:
    """The harmonic mean of precision and recall.

        F1@k = 2 P@k R@k / (P@k + R@k) = 2 hits among the first k / (k + R)

    R is the number of the query's test items. A list without a hit is 0, the limit of the first
    form. Undefined without a test item; an empty list is 0.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined for a query without test items.

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        return _measured(evidence, hit_scores.f1, self.k)
