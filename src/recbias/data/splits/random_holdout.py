"""Random hold-out: per user, per item or over all interactions."""

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
    RankedSplit,
    count_training_rows,
    rank_within_groups,
    rank_within_items,
    shuffle,
    shuffle_within_users,
    validate_shares,
)


@dataclass(frozen=True, kw_only=True)
class RandomHoldout(RankedSplit):
    """Hold out a random share of the interactions for testing.

        n_train(u) = max(1, floor((1 - test) * n(u))),   n_test(u) = n(u) - n_train(u)

    ``n(u)`` is the number of rows of user u. A user with one row keeps it in the training part and
    has no test row. With ``per: all`` the share is that of all rows at once. With ``per: item`` it
    is a share of the rows of each item (stratified by item); every item is then in the training
    part, as is needed to predict the item of a review. Repeated rows of a user and an item stay
    together. The validation part is taken from the training part in the same way, so that all
    three shares are of all interactions; the test part does not depend on ``validation``.

    Several folds are independent repeats (repeated hold-out), not the parts of a cross-validation:
    a row may be in the test part of several repeats, or of none.

    Args:
        test: Share of the interactions for testing.
        validation: Share of the interactions for validation; 0 for no validation part.
        folds: Number of independent repeats of the split.
        per: Whether the shares apply within each ``user``, within each ``item``, or to ``all``
            rows.

    Raises:
        Contradiction: ``test`` and ``validation`` add up to 1 or more.
        NothingLeft: A part would be empty.
        Leakage: A user has the same item in the training part and in the test part.

    Source:
        The per-user rule is the random subsampling of the framework Elliot (Anelli et al., SIGIR
        2021), except that Elliot loses users with one row.
    """

    test: Annotated[float, Gt(0.0), Lt(1.0)] = 0.2
    validation: Annotated[float, Ge(0.0), Lt(1.0)] = 0.0
    folds: Annotated[int, Gt(0), Le(1000)] = 1
    per: Literal["user", "item", "all"] = "user"

    def __post_init__(self) -> None:
        validate_shares(self.test, self.validation)

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return a split sampled with ``rng``; every repeat has its own generator."""
        rows = dataset.interactions
        ranks, counts, groups = self._rank_rows(rows, rng)
        starts = [
            count_training_rows(counts, share).astype(ranks.dtype)
            for share in (self.test + self.validation, self.test)
        ]
        n_train, test_start = starts if groups is None else [start[groups] for start in starts]
        return self.split_by_ranks(rows, ranks, n_train, test_start, "a random split")

    def _rank_rows(
        self, rows: Interactions, rng: np.random.Generator
    ) -> tuple[AnyArray, AnyArray, AnyArray | None]:
        """Return the rank of each row in a random order within its group, and the group sizes.

        These are by the code of the group, which is the third value; without one, by the row.
        """
        if self.per == "user":
            ranks = rank_within_groups(shuffle_within_users(rows, rng), rows.user_counts())
            return ranks, rows.user_counts(), rows.users
        if self.per == "item":
            return *rank_within_items(rows, rng), None
        ranks = np.empty(len(rows), dtype=np.int64)
        ranks[shuffle(rows, rng)] = np.arange(len(rows))
        return ranks, np.array(len(rows)), None
