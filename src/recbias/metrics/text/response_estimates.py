"""The responses that a metric compares with references, and estimates from all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.sentences import Responses
from recbias.core.stage_context import warn
from recbias.statistics.bootstrap.query_bootstrap import resample_sums
from recbias.statistics.intervals import normal_interval


def get_responses(evidence: Evidence) -> Responses:
    """Return the responses of the model.

    Raises:
        MissingEvidence: There are none.
    """
    evidence.need("responses")
    return evidence.responses  # type: ignore[return-value]  # need() raises on None


def get_texts_and_references(evidence: Evidence) -> tuple[AnyArray, AnyArray, BoolArray]:
    """Return the texts, their references, and which texts have a reference.

    Raises:
        MissingEvidence: There are no responses.
    """
    responses = get_responses(evidence)
    has_reference = np.array([text is not None for text in responses.references], dtype=bool)
    if not has_reference.all():
        n_missing, total = int((~has_reference).sum()), has_reference.size
        warn(f"{evidence.metric}: {n_missing:,} of {total:,} responses have no reference")
    return responses.texts, responses.references, has_reference


def measure_mean(evidence: Evidence, values: FloatArray) -> Measurement:
    """Return the mean of one value per response; NaN is undefined."""
    return Measurement.from_units(UnitScores("response", get_responses(evidence).ids, values))


def resample_estimate(
    statistics: AnyArray, evidence: Evidence, estimate: Callable[[AnyArray], float]
) -> FloatArray:
    """Return the estimate from the sums of all rows, then from those of each bootstrap sample.

    Args:
        statistics: One row per response.
        evidence: The source of the number of samples and of their seed.
        estimate: Computes the estimate from the sums of the columns.
    """
    from scipy.sparse import csr_array

    samples = resample_sums(csr_array(statistics), evidence.n_bootstrap, evidence.bootstrap_seed)
    rows = [statistics.sum(axis=0), *(row for block in samples for row in block)]
    return np.array([estimate(row) for row in rows])


def build_undefined(evidence: Evidence, is_used: BoolArray) -> Measurement:
    """Return an undefined estimate with undefined bootstrap samples."""
    return build_estimate(np.full(1 + evidence.n_bootstrap, np.nan), is_used)


def build_estimate(values: FloatArray, is_used: BoolArray) -> Measurement:
    """Return an estimate from all responses together.

    Args:
        values: The estimate, then its bootstrap samples.
        is_used: Which responses the estimate uses; the others are counted as undefined.
    """
    low, high = normal_interval(values[0], values[1:])
    n = 0 if np.isnan(values[0]) else int(is_used.sum())
    return Measurement(
        value=float(values[0]),
        n=n,
        undefined=is_used.size - n,
        ci_low=float(low),
        ci_high=float(high),
        replicates=values[1:],
    )
