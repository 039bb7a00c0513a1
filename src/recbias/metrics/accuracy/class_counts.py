"""Figures of classes weighted by their reviews, from how often each is named, and how rightly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.predictions import Predictions
from recbias.core.stage_context import warn
from recbias.metrics.accuracy.named_items import named
from recbias.statistics.bootstrap.query_bootstrap import resample_sums
from recbias.statistics.intervals import normal_interval


def say_unknown(evidence: Evidence, predictions: Predictions) -> None:
    """Warn of reviews of items that no model can name."""
    known = np.isin(predictions.items, predictions.ranked[:1])
    unknown = int(np.count_nonzero(~known))
    if unknown:
        what = "are of items without a training row, which no model can name, and are misses"
        warn(f"{evidence.metric}: {unknown:,} reviews {what}")


def weighted(evidence: Evidence, *, alpha: float) -> Sequence[Measurement]:
    """Return the one measurement of F over the classes, weighted by their reviews.

    Args:
        evidence: What the model names.
        alpha: How much precision weighs against recall: see ``f_measure``.
    """
    predictions = named(evidence)
    n = len(predictions)
    value, replicates = np.nan, np.full(evidence.n_bootstrap, np.nan)
    if n:
        say_unknown(evidence, predictions)
        counts = class_counts(predictions)
        value = float(f_measure(counts.sum(axis=0), alpha))
        samples = resample_sums(counts, evidence.n_bootstrap, evidence.bootstrap_seed)
        replicates = np.concatenate([np.empty(0), *(f_measure(each, alpha) for each in samples)])
    low, high = normal_interval(value, replicates)
    return [
        Measurement(
            value=value,
            n=n,
            undefined=0,
            ci_low=float(low),
            ci_high=float(high),
            replicates=replicates,
        )
    ]


def class_counts(predictions: Predictions) -> Matrix:
    """Return of each review its class, the class named first, and the class named rightly.

    Returns:
        CSR ``int32 (n, 3 c)`` of ones, over the c classes that a review is of: c columns for each
        of the three. A class named that no review is of is left out, for it has no weight.
    """
    from scipy.sparse import coo_array

    classes, own = np.unique(predictions.items, return_inverse=True)
    first = predictions.ranked[:, 0]
    place = np.minimum(np.searchsorted(classes, first), classes.size - 1)
    told = np.flatnonzero(classes[place] == first)
    right = np.flatnonzero(predictions.items == first)
    every = np.arange(len(predictions))
    rows = np.concatenate([every, told, right])
    c = classes.size
    columns = np.concatenate([own, c + place[told], 2 * c + own[right]])
    ones = np.ones(rows.size, dtype=np.int32)
    return coo_array((ones, (rows, columns)), shape=(every.size, 3 * c)).tocsr()


def f_measure(counts: AnyArray, alpha: float) -> FloatArray:
    """Return the mean over classes of F, weighted by their reviews.

        F = Σ_c (n_c / n) · h_c / (α m_c + (1 - α) n_c)

    n_c is the number of reviews of class c, m_c how many reviews have it named first, h_c how
    many of these are of it. α = 1 is precision, 1/2 is F1. A class whose divisor is 0 gives 0.

    Args:
        counts: n_c, m_c and h_c, ``int (..., 3 c)``.
        alpha: How much precision weighs against recall, 0 to 1.

    >>> counts = np.array([1, 3, 2, 1, 1, 1])  # the second class is named once, and rightly
    >>> float(f_measure(counts, 1.0)), float(f_measure(counts, 0.5))
    (0.875, 0.5416666666666666)

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """
    reviews, told, right = np.split(counts, 3, axis=-1)
    divisor = alpha * told + (1.0 - alpha) * reviews
    each = right / np.where(divisor > 0, divisor, 1.0)
    return np.asarray((reviews * each).sum(axis=-1) / reviews.sum(axis=-1))
