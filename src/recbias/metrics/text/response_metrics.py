"""What the metrics of responses share."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.text_outputs import Responses
from recbias.core.stage_context import warn


class ResponseMetric:
    """A metric of the responses of a model."""

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    unit: ClassVar[str] = "response"


def get_responses(evidence: Evidence) -> Responses:
    """Return the responses; MissingEvidence if there are none."""
    evidence.need("responses")
    return evidence.responses  # type: ignore[return-value]  # need() raises on None


def get_texts_and_references(evidence: Evidence) -> tuple[AnyArray, AnyArray, BoolArray]:
    """Return the texts, their references, and which texts have a reference."""
    responses = get_responses(evidence)
    has_reference = np.array([text is not None for text in responses.references], dtype=bool)
    if n_missing := int((~has_reference).sum()):
        total = has_reference.size
        warn(f"{evidence.metric}: {n_missing:,} of {total:,} responses have no reference")
    return responses.texts, responses.references, has_reference


def measure_mean(evidence: Evidence, values: FloatArray) -> Measurement:
    """Return the mean of one value per response; NaN is undefined."""
    return Measurement.from_units(UnitScores("response", get_responses(evidence).ids, values))
