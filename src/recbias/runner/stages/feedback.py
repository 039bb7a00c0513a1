"""One step of a feedback loop: users accept recommended items, which become training data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recbias.config.specs import FeedbackSpec
from recbias.core.arrays import Codes, Matrix
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.odds import Odds
from recbias.core.dataset.split import Split
from recbias.core.errors import BrokenContract, Contradiction
from recbias.core.outputs.evidence import mark_contained
from recbias.core.outputs.ideal_lists import rank_ideal_lists, weigh_lists
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.core.seeds import make_generator
from recbias.runner.stages.choices import sample_choices
from recbias.runner.stages.model import select_histories
from recbias.runner.stages.model_outputs import ModelOutputs
from recbias.runner.stages.returned_values import call_for
from recbias.runner.stages.shared import make_training_data


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
