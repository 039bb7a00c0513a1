"""What the metrics of responses share."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.text_outputs import Responses
from recbias.core.stage_context import warn

_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of Thai, Lao, Japanese and Chinese, which have no blanks between words."""

LONGEST_WORD = 2
"""Letters of these per token, above which a text is not divided into words: Chinese words have
fewer than two on average."""


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


def warn_of_undivided_texts(
    evidence: Evidence, texts: AnyArray, n_tokens: AnyArray, remedy: str
) -> None:
    """Warn of texts in a script without blanks between words, of which clauses are one token.

    Args:
        evidence: What is measured.
        texts: The texts.
        n_tokens: The number of tokens of each text, ``int64[n]``.
        remedy: The setting that gives tokens to such texts.
    """
    letters = np.array([len(_UNSPACED.findall(text)) for text in texts], dtype=np.int64)
    if n_undivided := int(np.count_nonzero(letters > LONGEST_WORD * n_tokens)):
        total = f"{n_undivided:,} of {len(texts):,} references"
        message = f"{total} have no blanks between words, so that a clause is one token"
        warn(f"{evidence.metric}: {message}; {remedy}")


def measure_mean(evidence: Evidence, values: FloatArray) -> Measurement:
    """Return the mean of one value per response; NaN is undefined."""
    return Measurement.from_units(UnitScores("response", get_responses(evidence).ids, values))
