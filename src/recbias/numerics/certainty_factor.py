"""Scores that speak for or against one thing, combined by the Stanford certainty factor."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, FloatArray


def certainty_factor(
    scores: npt.ArrayLike, groups: npt.ArrayLike, n_groups: int | None = None
) -> FloatArray:
    """Return the certainty of each group of scores, which does not depend on their order.

    Two scores x and y are combined by

        x + y - x y                         both at least 0
        x + y + x y                         both at most 0
        (x + y) / (1 - min(|x|, |y|))       opposite signs

    and the rest is folded in one after another. That is a sum in disguise: with
    h(x) = -ln(1 - x) for x ≥ 0 and ln(1 + x) for x < 0, h(x and y) = h(x) + h(y), and so it is
    worked out here. 0 says nothing, and is what a group without a score has. A score of 1 or -1
    is certain whatever the others say; a group that has both 1 and -1 is undefined by the rule,
    and 0 here.

    Args:
        scores: From -1 (certainly not) to 1 (certainly), ``float64[n]``.
        groups: The group of each score, from 0, ``int[n]``.
        n_groups: How many groups there are; by default one more than the largest.

    Returns:
        From -1 to 1, ``float64[n_groups]``.

    >>> certainty_factor([0.5, 0.6, 0.6, -0.2], [0, 0, 1, 1]).round(3).tolist()
    [0.8, 0.5]

    Source:
        Shortliffe and Buchanan, "A model of inexact reasoning in medicine", Mathematical
        Biosciences 1975; the form for opposite signs: van Melle, "A domain-independent system
        that aids in constructing knowledge-based consultation programs", Stanford 1980.
    """
    given = np.asarray(scores, dtype=np.float64)
    places = np.asarray(groups, dtype=np.intp)
    size = int(places.max(initial=-1)) + 1 if n_groups is None else n_groups
    open_ = np.abs(given) < 1
    evidence = -np.sign(given[open_]) * np.log1p(-np.abs(given[open_]))
    total = np.bincount(places[open_], weights=evidence, minlength=size)
    found = -np.sign(total) * np.expm1(-np.abs(total))
    certain_for = _present(places[given >= 1], size)
    certain_against = _present(places[given <= -1], size)
    found = np.where(certain_for | certain_against, 0.0, found)
    return np.asarray(found + certain_for.astype(np.float64) - certain_against)


def _present(places: AnyArray, size: int) -> AnyArray:
    return np.bincount(places, minlength=size) > 0
