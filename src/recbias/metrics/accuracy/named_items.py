"""What metrics of named items share: the ranking of every review, scored block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import OutOfRange
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.predictions import Predictions
from recbias.numerics.sparse.blocks import block_size, map_blocks

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None

Score: TypeAlias = Callable[[BoolArray, AnyArray, int], FloatArray]
"""A function of ``hit_scores``."""

BYTES_A_PLACE = 28
"""What a score of a block takes for each place of its rankings: counts, precisions, gains."""


def named(evidence: Evidence) -> Predictions:
    """Return the items that the model names; an error where it names none."""
    evidence.need("predictions")
    return evidence.predictions  # type: ignore[return-value]  # need() raises on None


def refuse_beyond(k: int | None, n_items: int) -> None:
    """Refuse a cutoff behind the last item that a model can name.

    Raises:
        OutOfRange: ``k`` is more than the number of items; ``where`` is ``k``.
    """
    if k is not None and k > n_items:
        found = f"k is {k}, but a model can name only {n_items:,} items"
        raise OutOfRange(found, where="k", remedy=f"set k to {n_items} or less")


def check_cutoff(evidence: Evidence, k: int | None) -> None:
    """Refuse a cutoff that the data alone shows to be too large."""
    if evidence.candidates is not None:
        refuse_beyond(k, int(np.count_nonzero(evidence.candidates)))


def blockwise(
    work: Callable[[slice], FloatArray], predictions: Predictions, *, bytes_a_row: int = 0
) -> FloatArray:
    """Return what ``work`` says of each review, ``float64[n]``, in bounded memory.

    Args:
        work: Gives the values of a range of reviews.
        predictions: The reviews.
        bytes_a_row: What it takes for a review beyond the score of its ranking.
    """
    n, width = predictions.ranked.shape
    size = block_size(bytes_a_row + BYTES_A_PLACE * max(width, 1))
    found = map_blocks(lambda start, stop: work(slice(start, stop)), n, size)
    return np.concatenate([np.empty(0), *found])


def of_reviews(
    predictions: Predictions, values: FloatArray, *, share: bool = False
) -> Sequence[Measurement]:
    """Return the one measurement of a value of each review."""
    return [Measurement.from_units(UnitScores("review", predictions.ids, values, share))]
