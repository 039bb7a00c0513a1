"""Accuracy: how many of the test items the lists contain, and at which ranks.

Relevance is binary: a test item is relevant whatever its rating. The arithmetic is in
``hit_scores``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy import hit_scores
from recbias.metrics.accuracy.named_items import Cutoff, Score


@dataclass(frozen=True, kw_only=True)
class ListAccuracy(InheritsSections):
    """A function of ``hit_scores`` as a metric: one value per query.

    Args:
        k: Cutoff; by default the length of the lists.

    Range:
        0 to 1; undefined for a query without test items.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test"})
    unit: ClassVar[str] = "query"
    score: ClassVar[Score]
    is_share: ClassVar[bool] = False
    """Whether the values are 0 or 1."""

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query and their mean."""
        cutoff = self.k or max(evidence.ranked.k, 1)
        values = type(self).score(evidence.hits, evidence.n_relevant, cutoff)
        queries = evidence.queries
        scores = UnitScores(queries.unit, queries.ids.ids, values, self.is_share)
        return [Measurement.from_units(scores)]


class NDCG(ListAccuracy):
    """The discounted cumulative gain of each list, divided by that of the ideal list.

        nDCG@k = Σ_{r ≤ k} rel(r) / log2(r + 1)  /  Σ_{r ≤ min(R, k)} 1 / log2(r + 1)

    ``rel(r)`` is 1 if the item at rank r is a test item, else 0; R is the number of test items of
    the query. The ideal list begins with as many test items as fit. An empty list has 0.

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
        2002, with the discount log2(r + 1).
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.ndcg


class HitRate(ListAccuracy):
    """The share of queries whose list contains at least one test item.

        HR@k = 1 if rel(r) = 1 for any r ≤ k, else 0

    ``rel(r)`` is 1 if the item at rank r is a test item. Also called Success@k. An empty list
    has 0.

    Source:
        Deshpande and Karypis, "Item-based top-N recommendation algorithms", ACM TOIS 2004.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.hit_rate
    is_share = True


class MRR(ListAccuracy):
    """The reciprocal rank of the first test item in each list.

        MRR@k = 1 / r₁ if r₁ ≤ k, else 0

    ``r₁`` is the rank of the first test item. An empty list has 0.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.reciprocal_rank


class MAP(ListAccuracy):
    """Average precision: the mean precision at the ranks of the test items.

        AP@k = Σ_{r ≤ k} P@r · rel(r)  /  min(R, k),    P@r = hits among the first r / r

    ``rel(r)`` is 1 if the item at rank r is a test item; R is the number of test items of the
    query. A list that begins with test items only has 1, also if R is larger than k. The Elliot
    framework uses the name MAP for ``mean_precision``; TREC's ``map_cut`` divides by R instead of
    min(R, k). An empty list has 0.

    Source:
        Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000; divided by
        min(R, k), as is usual for lists of length k.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.average_precision


class MeanPrecision(ListAccuracy):
    """The mean of the precisions at 1, 2, ..., k, which the Elliot framework calls MAP.

        mean_precision@k = (1/k) Σ_{r ≤ k} P@r,    P@r = hits among the first r / r

    Unlike average precision (``MAP``), every rank counts, whether it is a hit or not, and the
    number of test items does not matter. The ranks after the end of a short list are misses.

    Source:
        Anelli et al., "Elliot: a comprehensive and rigorous framework for reproducible
        recommender systems evaluation", SIGIR 2021, metric MAP as implemented.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.mean_precision


class Precision(ListAccuracy):
    """The share of test items in each list.

        P@k = hits among the first k / k

    The divisor is k even if the list is shorter. An empty list has 0.

    Source:
        Cleverdon, "The Cranfield tests on index language devices", 1967; with a cutoff k.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.precision


class Recall(ListAccuracy):
    """The share of a query's test items that its list contains.

        R@k = hits among the first k / R

    R is the number of test items of the query; if it is larger than k, the recall cannot reach 1.
    An empty list has 0.

    Source:
        Cleverdon, "The Cranfield tests on index language devices", 1967; with a cutoff k.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.recall


class RPrecision(ListAccuracy):
    """The precision at R, where R is the number of test items of the query.

        R-Precision@k = hits among the first min(R, k) / R

    Precision and recall are equal at rank R. If R is larger than the length of the list, the
    missing ranks are misses, so this metric needs long lists. An empty list has 0.

    Source:
        Buckley and Voorhees, "Retrieval system evaluation", in TREC: Experiment and Evaluation
        in Information Retrieval, 2005.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.r_precision


class F1(ListAccuracy):
    """The harmonic mean of precision and recall.

        F1@k = 2 P@k R@k / (P@k + R@k) = 2 hits among the first k / (k + R)

    R is the number of test items of the query. A list without a hit has 0.

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.f1
