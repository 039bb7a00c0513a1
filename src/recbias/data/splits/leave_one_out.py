"""Leave-one-out: hold out the last or random interactions of each user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import AnyArray
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.core.errors import Contradiction
from recbias.data.splits.masks import (
    RankedSplit,
    rank_within_groups,
    shuffle_within_users,
)
from recbias.data.splits.temporal import require_times


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(RankedSplit):
    """Test on one interaction of each user, the last or a random one; train on all others.

        n_test(u) = min(n, n(u) - 1),   n_validation(u) = min(validation, n(u) - n_test(u) - 1)

    ``n(u)`` is the number of rows of user u. At least one row stays in the training part, so a
    user with one row has no test row. Rows with equal times are in the order of the file. The
    test part does not depend on ``validation``.

    Args:
        which: Whether the ``last`` rows by time or ``random`` rows are held out.
        n: Number of test rows of each user.
        validation: Number of validation rows of each user, the next in order; 0 for no validation
            part.
        folds: Number of independent repeats of the split; only random splits can be repeated.

    Raises:
        Contradiction: Several repeats of the last rows, which would be identical.
        UnknownColumn: ``which: last`` and the interactions have no times.
        NothingLeft: A part would be empty.
        Leakage: A user has the same item in the training part and in the test part.
    """

    which: Literal["last", "random"] = "last"
    n: Annotated[int, Gt(0)] = 1
    validation: Annotated[int, Ge(0)] = 0
    folds: Annotated[int, Gt(0), Le(1000)] = 1

    def __post_init__(self) -> None:
        if self.which == "last" and self.folds > 1:
            message = f"{self.folds} splits that hold out the last rows are identical"
            raise Contradiction(message, where="folds", remedy="set which: random, or folds: 1")

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return a split; ``rng`` samples the rows of a random split."""
        rows = dataset.interactions
        ranks = rank_within_groups(self._sort_rows(rows, rng), rows.user_counts())
        test_start = np.maximum(rows.user_counts() - self.n, 1).astype(ranks.dtype)
        n_train = np.maximum(test_start - self.validation, 1)
        starts = n_train[rows.users], test_start[rows.users]
        return self.split_by_ranks(rows, ranks, starts[0], starts[1], "leave-one-out")

    def _sort_rows(self, rows: Interactions, rng: np.random.Generator) -> AnyArray:
        if self.which == "random":
            return shuffle_within_users(rows, rng)
        return np.lexsort((require_times(rows, "leave-one-out by time"), rows.users))
