"""The choice model of the rounds of feedback: which items of a list a user accepts."""

from __future__ import annotations

import numpy as np

from recbias.config.specs import FeedbackSpec
from recbias.core.arrays import BoolArray, FloatArray


def sample_choices(
    weights: FloatArray,
    ideal_weights: FloatArray,
    choice: FeedbackSpec,
    rng: np.random.Generator,
) -> BoolArray:
    """Sample which items of each list its user accepts.

    A user u chooses from the list L, whose item at rank r has the odds ``w_r`` of a pick, or
    chooses nothing. The probability of each choice is that of a multinomial logit model:

        P(u accepts rank r | L) = a w_r r^-η / ( (1 - a) W_u + a Σ_s w_s s^-η )
        W_u = Σ_s w*_s s^-η,    w*: the odds of the ideal list of u

    a is ``acceptance`` and η ``position``. A user so accepts an item of the ideal list with
    probability a, one of a worse list with a lower probability, and better items and upper ranks
    are accepted more often. After an acceptance the user chooses again among the other items, by
    the same odds, until nothing is chosen or ``picks`` items are.

    It is sampled by an exponential race: each rank arrives at Exp(1) / odds and so does the choice
    of nothing; the items before it are accepted. Ranks are compared by the same random numbers
    whatever the lists, so that two models differ by their lists only.

    Args:
        weights: The odds of each rank, ``float64[q, k]``; 0 or NaN cannot be accepted.
        ideal_weights: The odds of each rank of the ideal list, ``float64[q, k]``.
        choice: The settings of the model.
        rng: The generator of the round.

    Returns:
        Which ranks are accepted, ``bool[q, k]``.

    >>> choice = FeedbackSpec(rounds=2, acceptance=1.0, picks=1, position=0.0)
    >>> lists = np.array([[0.0, 1.0, 0.0]])
    >>> sample_choices(lists, lists, choice, np.random.default_rng(1)).tolist()
    [[False, True, False]]

    Source:
        McFadden, "Conditional logit analysis of qualitative choice behavior", in: Frontiers in
        Econometrics, 1974 (the choice); Plackett, "The Analysis of Permutations", Applied
        Statistics 24, 1975 (several choices); Joachims, Swaminathan and Schnabel, "Unbiased
        learning-to-rank with biased feedback", WSDM 2017 (the factor r^-η of a rank).
    """
    n, k = weights.shape
    draws = rng.standard_exponential((n, k + 1))
    if choice.acceptance == 0:
        return np.zeros((n, k), dtype=bool)
    attention = np.arange(1, k + 1) ** -choice.position
    nothing = (1 - choice.acceptance) / choice.acceptance * (ideal_weights * attention).sum(axis=1)
    rates = np.where(weights > 0, weights * attention, 0.0)
    with np.errstate(divide="ignore"):
        arrivals, end = draws[:, :k] / rates, draws[:, k] / nothing
    order = np.argsort(np.argsort(arrivals, axis=1), axis=1)
    is_accepted: BoolArray = (rates > 0) & (arrivals < end[:, None]) & (order < choice.picks)
    return is_accepted
