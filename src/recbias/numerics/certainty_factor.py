"""Combine scores for and against a hypothesis by the Stanford certainty factor."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import FloatArray


def certainty_factor(
    scores: npt.ArrayLike, groups: npt.ArrayLike, n_groups: int | None = None
) -> FloatArray:
    """Return the combined certainty of each group of scores.

    Two scores x and y are combined by

        x + y - x y                         both at least 0
        x + y + x y                         both at most 0
        (x + y) / (1 - min(|x|, |y|))       opposite signs

    The rule is associative and commutative: with h(x) = -ln(1 - x) for x ≥ 0 and ln(1 + x) for
    x < 0, the combination is h⁻¹(h(x) + h(y)), which this function computes. 0 is no evidence, and
    the value of a group without scores. A score of 1 (certainly true) or -1 (certainly false)
    decides the group. The rule leaves a group with both undefined; its value here is 0.

    Args:
        scores: From -1 to 1, ``float64[n]``.
        groups: Group of each score, from 0, ``int[n]``.
        n_groups: Number of groups; by default the largest group plus one.

    >>> certainty_factor([0.5, 0.6, 0.6, -0.2], [0, 0, 1, 1]).round(3).tolist()
    [0.8, 0.5]

    Source:
        Shortliffe and Buchanan, "A model of inexact reasoning in medicine", Mathematical
        Biosciences 1975; the form for opposite signs: van Melle, "A domain-independent system
        that aids in constructing knowledge-based consultation programs", Stanford 1980.
    """
    values = np.asarray(scores, dtype=np.float64)
    codes = np.asarray(groups, dtype=np.intp)
    size = int(codes.max(initial=-1)) + 1 if n_groups is None else n_groups
    uncertain = np.abs(values) < 1
    evidence = -np.sign(values[uncertain]) * np.log1p(-np.abs(values[uncertain]))
    total = np.bincount(codes[uncertain], weights=evidence, minlength=size)
    factors = -np.sign(total) * np.expm1(-np.abs(total))
    certain_for = np.bincount(codes[values >= 1], minlength=size) > 0
    certain_against = np.bincount(codes[values <= -1], minlength=size) > 0
    factors = np.where(certain_for | certain_against, 0.0, factors)
    return np.asarray(factors + certain_for.astype(np.float64) - certain_against)
