"""Weighted precision and F1 of classes from their numbers of reviews, predictions and hits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.text_outputs import Predictions
from recbias.core.stage_context import warn
from recbias.metrics.accuracy.named_items import require_predictions
from recbias.metrics.resampled_estimates import estimate_from_totals


def warn_of_unknown_items(evidence: Evidence, predictions: Predictions) -> None:
    """Warn of reviews of items that no model can predict."""
    is_known = np.isin(predictions.items, predictions.ranked[:1])
    n_unknown = int(np.count_nonzero(~is_known))
    if n_unknown:
        reason = "no model can predict items without training rows"
        warn(f"{evidence.metric}: {n_unknown:,} reviews are misses, because {reason}")


def measure_weighted_f(evidence: Evidence, *, alpha: float) -> Sequence[Measurement]:
    """Return the mean of F over the classes, weighted by their numbers of reviews."""
    predictions = require_predictions(evidence)
    warn_of_unknown_items(evidence, predictions)
    counts = count_classes(predictions)
    return estimate_from_totals(evidence, counts, lambda sums: f_measure(sums, alpha))


def count_classes(predictions: Predictions) -> Matrix:
    """Return the class, the predicted class and the correctly predicted class of each review.

    Returns:
        CSR ``int32 (n, 3 c)`` of ones, over the c classes that have reviews: c columns for each of
        the three. A predicted class without reviews has no weight and is excluded.
    """
    from scipy.sparse import coo_array

    classes, codes = np.unique(predictions.items, return_inverse=True)
    predicted = predictions.ranked[:, :1].sum(axis=1)  # also without reviews
    predicted_codes = np.minimum(np.searchsorted(classes, predicted), classes.size - 1)
    has_class = np.flatnonzero(classes[predicted_codes] == predicted)
    hits = np.flatnonzero(predictions.items == predicted)
    reviews = np.arange(len(predictions))
    rows = np.concatenate([reviews, has_class, hits])
    c = classes.size
    columns = np.concatenate([codes, c + predicted_codes[has_class], 2 * c + codes[hits]])
    ones = np.ones(rows.size, dtype=np.int32)
    return coo_array((ones, (rows, columns)), shape=(reviews.size, 3 * c)).tocsr()


def f_measure(counts: AnyArray, alpha: float) -> FloatArray:
    """Return the mean of F over the classes, weighted by their numbers of reviews.

        F = Σ_c (n_c / n) · h_c / (α m_c + (1 - α) n_c)

    n_c is the number of reviews of class c, m_c the number of reviews for which c is predicted,
    h_c the number of these that are of c. α = 1 is precision, 1/2 is F1. A class whose divisor is
    0 counts as 0.

    Args:
        counts: n_c, m_c and h_c, ``int (..., 3 c)``.
        alpha: The weight of precision against recall, 0 to 1.

    >>> counts = np.array([1, 3, 2, 1, 1, 1])  # the second class is predicted once, correctly
    >>> float(f_measure(counts, 1.0)), float(f_measure(counts, 0.5))
    (0.875, 0.5416666666666666)

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """
    n_reviews, n_predicted, n_hits = np.split(counts, 3, axis=-1)
    divisor = alpha * n_predicted + (1.0 - alpha) * n_reviews
    scores = n_hits / np.where(divisor > 0, divisor, 1.0)
    return np.asarray((n_reviews * scores).sum(axis=-1) / n_reviews.sum(axis=-1))
