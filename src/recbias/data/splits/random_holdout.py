"""Hold interactions out at random, user by user or over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.data.splits.masks import (
    check_shares,
    divided,
    kept_for_training,
    places_within_items,
    places_within_users,
    shuffled,
    shuffled_within_users,
)


@dataclass(frozen=True, kw_only=True)
class RandomHoldout:
    """Hold a random share of the interactions out for testing.

        n_train(u) = max(1, floor((1 - test) * n(u))),   n_test(u) = n(u) - n_train(u)

    ``n(u)`` is the number of rows of user u. A user with one row keeps it in training and is not
    tested. With ``per: all`` the share is taken over all rows at once, whoever's they are; with
    ``per: item`` within the rows of each item (stratified by item), as suits reviews of which the
    item is to be named: every item with two users is then trained on. A user's several rows of
    one item stay together. The
    validation part is taken from the training part in the same way, so that train, validation
    and test are shares of the whole; the test part does not change when it is switched on.

    Several folds are independent splits, not the parts of a cross-validation: a row may be in the
    test part of several of them, or of none.

    Args:
        test: Share of the interactions that is tested on.
        validation: Share of the interactions to tune on; 0 makes no validation part.
        folds: How many independent splits are made.
        per: Whether the shares are taken within each ``user``, within each ``item``, or over
            ``all`` rows.

    Raises:
        Contradiction: ``test`` and ``validation`` add up to 1 or more.
        NothingLeft: A part would be empty.
        Leakage: A user has the same item twice, once in training and once in the test.

    Source:
        The per-user rule is that of the framework Elliot (Anelli et al., SIGIR 2021) for random
        subsampling, but for users of one row, who are lost there.
    """

    test: Annotated[float, Gt(0.0), Lt(1.0)] = 0.2
    validation: Annotated[float, Ge(0.0), Lt(1.0)] = 0.0
    folds: Annotated[int, Gt(0), Le(1000)] = 1
    per: Literal["user", "item", "all"] = "user"

    def __post_init__(self) -> None:
        """Refuse shares that leave nothing to train on."""
        check_shares(self.test, self.validation)

    def gives(self) -> frozenset[str]:
        """Return what it makes."""
        return frozenset({"test", "validation"} if self.validation else {"test"})

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return a split drawn from ``rng``; every fold has its own generator."""
        rows = dataset.interactions
        places, counts = self._places(rows, rng)
        train = kept_for_training(counts, self.test)
        fit = kept_for_training(counts, self.test + self.validation)
        validation = (places >= fit) & (places < train) if self.validation else None
        return divided(rows, places >= train, validation, "a random split")

    def _places(self, rows: Interactions, rng: np.random.Generator) -> tuple[AnyArray, AnyArray]:
        """Return each row's place in a random order of its user's, its item's or all rows.

        Behind it, how many of those there are.
        """
        if self.per == "user":
            places = places_within_users(rows, shuffled_within_users(rows, rng))
            return places, rows.user_counts()[rows.users]
        if self.per == "item":
            return places_within_items(rows, rng)
        places = np.empty(len(rows), dtype=np.int64)
        places[shuffled(rows, rng)] = np.arange(len(rows))
        return places, np.array(len(rows))
