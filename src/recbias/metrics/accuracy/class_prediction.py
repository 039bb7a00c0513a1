"""How well a model names the item that a review is about: the items are classes.

The class of a review is the item reviewed, the only one that is right. An item that no training
row has is no class that a model knows; its reviews are misses, and are counted in a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy import hit_scores
from recbias.metrics.accuracy.class_counts import say_unknown, weighted
from recbias.metrics.accuracy.named_items import (
    Cutoff,
    Score,
    blockwise,
    check_cutoff,
    named,
    of_reviews,
    refuse_beyond,
)

_NEEDS = frozenset({"predictions"})
_VALUES = "0 to 1; undefined without a review"
_SCIKIT = "Pedregosa et al., scikit-learn, JMLR 2011"


@dataclass(frozen=True, kw_only=True)
class ClassAccuracy:
    """The share of reviews whose item is the one that the model names first.

        accuracy = (1/n) Σ_r [ first(r) = item(r) ]

    ``item(r)`` is the item reviewed, ``first(r)`` the first of the model's ranking of all items.
    Undefined without a review.

    Range:
        0 to 1; undefined without a review.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 3, Acc.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return 1 or 0 for each review, and their mean."""
        return _scored(evidence, hit_scores.hit_rate, 1, share=True)


@dataclass(frozen=True, kw_only=True)
class ClassRecall:
    """The share of each item's reviews that are told to be of it, items weighing by their reviews.

        recall = Σ_c (n_c / n) · h_c / n_c = (1/n) Σ_c h_c

    n_c is the number of reviews of item c, h_c how many of them have c named first. The weights
    cancel the divisors, so it is the accuracy (``class_accuracy``); papers print both. Undefined
    without a review.

    Range:
        0 to 1; undefined without a review.

    Source:
        ``recall_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen
        et al. 2022, table 3, R.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return 1 or 0 for each review, and their mean."""
        return ClassAccuracy().measure(evidence)


@dataclass(frozen=True, kw_only=True)
class ClassPrecision:
    """How often the model is right when it names an item, items weighing by their reviews.

        precision = Σ_c (n_c / n) · h_c / m_c

    n_c is the number of reviews of item c among all n, m_c how many reviews have c named first
    and h_c how many of these are of c. An item never named first has precision 0, as with
    scikit-learn's ``zero_division=0``; one without a review has no weight. Undefined without a
    review. It is one figure of all reviews; interval and tests come from bootstrap samples of the
    reviews, the same for every model.

    Range:
        0 to 1; undefined without a review.

    Source:
        ``precision_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011);
        Shen et al. 2022, table 3, P.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its bootstrap samples."""
        return weighted(evidence, alpha=1.0)


@dataclass(frozen=True, kw_only=True)
class ClassF1:
    """The harmonic mean of each item's precision and recall, items weighing by their reviews.

        F1 = Σ_c (n_c / n) · 2 h_c / (n_c + m_c)

    n_c is the number of reviews of item c among all n, m_c how many reviews have c named first
    and h_c how many of these are of c. It is not the harmonic mean of ``class_precision`` and
    ``class_recall``, and may lie below both. Undefined without a review. It is one figure of all
    reviews; interval and tests come from bootstrap samples of the reviews, the same for every
    model.

    Range:
        0 to 1; undefined without a review.

    Source:
        ``f1_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen et
        al. 2022, table 3, F1-Score.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its bootstrap samples."""
        return weighted(evidence, alpha=0.5)


@dataclass(frozen=True, kw_only=True)
class ClassMRR:
    """The mean of 1 over the rank at which the model names the item reviewed.

        MRR = (1/n) Σ_r 1 / rank(r)

    ``rank(r)`` is the place, from 1, of the item reviewed in the model's ranking of all items; an
    item that it does not know gives 0. Undefined without a review.

    Range:
        0 to 1; undefined without a review.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999; Shen et al. 2022, table 3.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review, and their mean."""
        return _scored(evidence, hit_scores.reciprocal_rank, None)


@dataclass(frozen=True, kw_only=True)
class ClassHitRate:
    """The share of reviews whose item is among the first k that the model names.

        HR@k = (1/n) Σ_r [ rank(r) ≤ k ]

    ``rank(r)`` is the place of the item reviewed in the model's ranking of all items. At k = 1 it
    is ``class_accuracy``. Undefined without a review.

    Args:
        k: How many of the items named count; left open in a spec it is the spec's ``k``.

    Raises:
        OutOfRange: There are fewer than ``k`` items to name.

    Range:
        0 to 1; undefined without a review.

    Source:
        ``top_k_accuracy_score`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen et al. 2022,
        table 3, HR@5, HR@10 and HR@20.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "review"

    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Refuse a cutoff behind the last item."""
        check_cutoff(evidence, self.k)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return 1 or 0 for each review, and their mean."""
        return _scored(evidence, hit_scores.hit_rate, self.k, share=True)


def _scored(
    evidence: Evidence, score: Score, k: int | None, *, share: bool = False
) -> Sequence[Measurement]:
    """Return the one measurement of a score of the first ``k`` items named for each review."""
    predictions = named(evidence)
    width = predictions.ranked.shape[1]
    refuse_beyond(k, width)
    say_unknown(evidence, predictions)
    ranked, items = predictions.ranked[:, :k], predictions.items

    def work(rows: slice) -> FloatArray:
        hits = ranked[rows] == items[rows, None]
        return score(hits, np.ones(len(hits), dtype=np.int64), k or width)

    return of_reviews(predictions, blockwise(work, predictions), share=share)
