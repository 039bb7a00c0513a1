"""Scores of the ranking that a model predicts for each review, computed in blocks of reviews."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import OutOfRange
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.text_outputs import Predictions
from recbias.numerics.sparse.blocks import block_size, map_blocks

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None
"""How many ranks of each ranking or list are evaluated."""

Score: TypeAlias = Callable[[BoolArray, AnyArray, int], FloatArray]
"""A function of ``hit_scores``."""

BYTES_PER_RANK = 28
"""Memory that a score needs for each rank of a ranking: counts, precisions, gains."""


def require_predictions(evidence: Evidence) -> Predictions:
    """Return the predicted rankings; raise an error if the model predicts none."""
    evidence.need("predictions")
    return evidence.predictions  # type: ignore[return-value]  # need() raises on None


def validate_cutoff(k: int | None, n_items: int) -> None:
    """Refuse a cutoff that is larger than the number of items a model can predict.

    Raises:
        OutOfRange: ``k`` is larger than the number of items; ``where`` is ``k``.
    """
    if k is not None and k > n_items:
        message = f"k is {k}, but a model can predict only {n_items:,} items"
        raise OutOfRange(message, where="k", remedy=f"set k to {n_items} or less")


def check_cutoff(evidence: Evidence, k: int | None) -> None:
    """Refuse a cutoff that is too large for the data, before any training."""
    if evidence.candidates is not None:
        validate_cutoff(k, int(np.count_nonzero(evidence.candidates)))


def compute_in_blocks(
    compute: Callable[[slice], FloatArray], predictions: Predictions, *, bytes_a_row: int = 0
) -> FloatArray:
    """Return the value of each review, ``float64[n]``, in bounded memory.

    ``bytes_a_row`` is the memory per review in addition to the score of its ranking.
    """
    n, width = predictions.ranked.shape
    size = block_size(bytes_a_row + BYTES_PER_RANK * max(width, 1))
    blocks = map_blocks(lambda start, stop: compute(slice(start, stop)), n, size)
    return np.concatenate([np.empty(0), *blocks])


def measure_reviews(
    predictions: Predictions, values: FloatArray, *, share: bool = False
) -> Sequence[Measurement]:
    """Return the measurement of one value per review."""
    return [Measurement.from_units(UnitScores("review", predictions.ids, values, share))]
