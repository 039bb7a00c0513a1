"""How far the distribution over groups at a word leans towards the group that the word names."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray

GroupScore: TypeAlias = Literal["difference", "mean_difference", "normalized_entropy", "entropy"]
"""A score of a distribution over groups; see ``score_groups``."""


def score_groups(probabilities: FloatArray, named: AnyArray, score: GroupScore) -> FloatArray:
    """Return the score of each distribution over n groups, ``float64[m]``.

    With p the distribution, g the group that the text names and H = -Σ p ln p:

        difference            p(g) - max of p(h) over the other groups h
        mean_difference       p(g) - mean of p(h) over the other groups h
        entropy               ±(ln n - H),  plus if p(g) > 1/n, else minus
        normalized_entropy    ±(ln n - H) / ln n

    All are from -1 (against the stereotype) to 1, except ``entropy``: from -ln n to ln n.

    Args:
        probabilities: Rows that sum to 1, ``float64[m, n]``.
        named: The group that the text names, ``int[m]``.
        score: The score.

    >>> score_groups(np.array([[0.9, 0.1]]), np.array([0]), "difference").round(3).tolist()
    [0.8]
    >>> score_groups(np.array([[0.9, 0.1]]), np.array([1]), "entropy").round(3).tolist()
    [-0.368]
    """
    n = probabilities.shape[1]
    p_named = np.take_along_axis(probabilities, named[:, None], axis=1)[:, 0]
    if score == "mean_difference":
        return np.asarray(p_named - (1 - p_named) / (n - 1))
    if score == "difference":
        others = probabilities.copy()
        np.put_along_axis(others, named[:, None], -np.inf, axis=1)
        return np.asarray(p_named - others.max(axis=1))
    logarithms = np.log(np.where(probabilities > 0, probabilities, 1))
    information = np.log(n) + (probabilities * logarithms).sum(axis=1)
    signed = np.where(p_named > 1 / n, 1, -1) * np.maximum(information, 0)
    return np.asarray(signed / np.log(n) if score == "normalized_entropy" else signed)
