"""The choice model of the rounds of feedback: which items of a list a user accepts.

One step of a feedback loop: users accept recommended items, which become training data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recbias.config.specs import FeedbackSpec
from recbias.core.dataset import (
    BoolArray,
    Codes,
    Dataset,
    FloatArray,
    Interactions,
    Matrix,
    Odds,
    Split,
)
from recbias.core.errors import BrokenContract, Contradiction
from recbias.core.evidence import RankedLists, mark_contained, rank_ideal_lists, weigh_lists
from recbias.core.files import make_generator
from recbias.core.queries import Queries
from recbias.runner.stages import ModelOutputs, call_for, make_training_data, select_histories


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


@dataclass(frozen=True)
class AcceptItems:
    """Add the items that users accept from their lists to the training data of the next round.

    An item that the user has had, also in the test or validation set, is not accepted: no pair of
    these sets ever becomes training data. Users who are not asked accept nothing. An accepted item
    has the median value of the training data, and a time after all of them.

    Args:
        world: The dataset plug-in, which knows the odds.
        round: The number of the next round, from 2.
    """

    world: Any
    choice: FeedbackSpec
    seed: int
    fold: int
    round: int

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, outputs: ModelOutputs
    ) -> Split:
        """Return the split with the accepted items among its training data."""
        if outputs.lists is None:
            raise BrokenContract("the model returned no lists to accept items from")
        if len(queries) and (queries.users < 0).all():
            message = "no query is a user, so nobody can accept an item"
            raise Contradiction(message, remedy="remove feedback, or choose queries: users")
        data = make_training_data(dataset, split)
        odds = call_for(Odds, self.world.compute_odds, data.users, data.items)
        lists, users = outputs.lists, queries.users
        ideal = rank_ideal_lists(
            odds, users, select_histories(queries, data), data.candidates, lists.k
        )
        weights = weigh_lists(odds, users, lists.items)
        weights[mark_contained(_select_known_pairs(split, users), lists)] = 0.0
        rng = make_generator(self.seed, "feedback", self.fold, self.round)
        accepted = sample_choices(weights, weigh_lists(odds, users, ideal), self.choice, rng)
        return replace(split, train=_add_accepted(split.train, users, lists, accepted))


def _select_known_pairs(split: Split, users: Codes) -> Matrix:
    """Return the items of each query's user in any part of the split, CSR ``(q, n_items)``."""
    pairs = split.train.binary
    for part in (split.validation, split.test):
        pairs = pairs if part is None else pairs + part.binary
    return pairs.tocsr()[users]


def _add_accepted(
    train: Interactions, users: Codes, lists: RankedLists, accepted: Any
) -> Interactions:
    """Return the interactions with those of accepted positions, ``bool[q, k]``, at the end."""
    rows, ranks = np.nonzero(accepted)
    if not rows.size:
        return train
    value = np.full(rows.size, np.median(train.values) if len(train) else 1.0, dtype=np.float32)
    times = train.times
    if times is not None:
        latest = int(times.max(initial=0)) + 1
        times = np.concatenate([times, np.full(rows.size, latest, dtype=times.dtype)])
    return replace(
        train,
        users=np.concatenate([train.users, users[rows]]).astype(np.int32),
        items=np.concatenate([train.items, lists.items[rows, ranks]]).astype(np.int32),
        values=np.concatenate([train.values, value]),
        times=times,
    )
