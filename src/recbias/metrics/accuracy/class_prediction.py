"""How well a model predicts the item that a review is about: each item is a class.

Reviews of items without training rows are misses, because no model can predict these items; a
warning counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy import hit_scores
from recbias.metrics.accuracy.class_counts import measure_weighted_f, warn_of_unknown_items
from recbias.metrics.accuracy.named_items import (
    Cutoff,
    Score,
    check_cutoff,
    compute_in_blocks,
    measure_reviews,
    require_predictions,
    validate_cutoff,
)
from recbias.statistics.intervals import log_interval


@dataclass(frozen=True, kw_only=True)
class _ReviewMetric(InheritsSections):
    """A metric of the items that a model predicts for reviews.

    Range:
        0 to 1; undefined without a review.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"predictions"})
    unit: ClassVar[str] = "review"


class ClassAccuracy(_ReviewMetric):
    """The share of reviews whose item the model ranks first.

        accuracy = (1/n) Σ_r [ first(r) = item(r) ]

    ``item(r)`` is the item reviewed, ``first(r)`` the first item of the ranking that the model
    predicts.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 3, Acc.
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return 1 or 0 for each review and their mean."""
        return _score_reviews(evidence, hit_scores.hit_rate, 1, share=True)


class ClassRecall(ClassAccuracy):
    """The mean recall of the items, weighted by their numbers of reviews.

        recall = Σ_c (n_c / n) · h_c / n_c = (1/n) Σ_c h_c

    n_c is the number of reviews of item c, h_c the number of these that have c ranked first. The
    weights cancel the divisors, so it equals the accuracy (``class_accuracy``); papers print both.

    Source:
        ``recall_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen
        et al. 2022, table 3, R.
    """

    direction: ClassVar[Direction] = "higher"


class ClassPrecision(_ReviewMetric):
    """The mean precision of the items, weighted by their numbers of reviews.

        precision = Σ_c (n_c / n) · h_c / m_c

    n_c is the number of reviews of item c among all n, m_c the number of reviews that have c
    ranked first and h_c the number of these that are of c. An item that is never ranked first has
    precision 0, as with scikit-learn's ``zero_division=0``; one without a review has no weight.
    The interval and the tests come from bootstrap samples of the reviews, the same for every
    model.

    Source:
        ``precision_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011);
        Shen et al. 2022, table 3, P.
    """

    direction: ClassVar[Direction] = "higher"
    unit = ""
    alpha: ClassVar[float] = 1.0
    """The weight of precision against recall."""

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate with its bootstrap samples."""
        return measure_weighted_f(evidence, alpha=type(self).alpha)


class ClassF1(ClassPrecision):
    """The mean F1 of the items, weighted by their numbers of reviews.

        F1 = Σ_c (n_c / n) · 2 h_c / (n_c + m_c)

    n_c is the number of reviews of item c among all n, m_c the number of reviews that have c
    ranked first and h_c the number of these that are of c. This is not the harmonic mean of
    ``class_precision`` and ``class_recall``, and may be smaller than both. The interval and the
    tests come from bootstrap samples of the reviews, the same for every model; the interval is on
    the scale of the logarithm, since a small F1 varies less than a large one.

    Source:
        ``f1_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen et
        al. 2022, table 3, F1-Score.
    """

    direction: ClassVar[Direction] = "higher"
    alpha = 0.5

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate with its bootstrap samples."""
        (estimate,) = super().measure(evidence)
        if estimate.replicates is None:
            return [estimate]
        low, high = log_interval(estimate.value, estimate.replicates)
        return [replace(estimate, ci_low=low, ci_high=high, log_scale=True)]


class ClassMRR(_ReviewMetric):
    """The mean reciprocal rank of the item reviewed.

        MRR = (1/n) Σ_r 1 / rank(r)

    ``rank(r)`` is the rank, from 1, of the item reviewed in the ranking that the model predicts; a
    review of an item without training rows counts as 0.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999; Shen et al. 2022, table 3.
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review and their mean."""
        return _score_reviews(evidence, hit_scores.reciprocal_rank, None)


@dataclass(frozen=True, kw_only=True)
class ClassHitRate(_ReviewMetric):
    """The share of reviews whose item is among the first k of the ranking.

        HR@k = (1/n) Σ_r [ rank(r) ≤ k ]

    ``rank(r)`` is the rank of the item reviewed in the ranking that the model predicts. At k = 1
    it equals ``class_accuracy``.

    Args:
        k: Cutoff; by default the ``k`` of the spec.

    Raises:
        OutOfRange: There are fewer than ``k`` items to predict.

    Source:
        ``top_k_accuracy_score`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen et al. 2022,
        table 3, HR@5, HR@10 and HR@20.
    """

    direction: ClassVar[Direction] = "higher"

    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Refuse a cutoff that is too large for the data, before any training."""
        check_cutoff(evidence, self.k)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return 1 or 0 for each review and their mean."""
        return _score_reviews(evidence, hit_scores.hit_rate, self.k, share=True)


def _score_reviews(
    evidence: Evidence, score: Score, k: int | None, *, share: bool = False
) -> Sequence[Measurement]:
    """Return the measurement of a score of the first ``k`` items of each ranking."""
    predictions = require_predictions(evidence)
    width = predictions.ranked.shape[1]
    validate_cutoff(k, width)
    warn_of_unknown_items(evidence, predictions)
    ranked, items = predictions.ranked[:, :k], predictions.items

    def score_rows(rows: slice) -> FloatArray:
        hits = ranked[rows] == items[rows, None]
        return score(hits, np.ones(len(hits), dtype=np.int64), k or width)

    return measure_reviews(predictions, compute_in_blocks(score_rows, predictions), share=share)
