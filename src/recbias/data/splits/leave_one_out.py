"""Leave one interaction of each user out, or a few: the last ones or random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.core.errors import Contradiction
from recbias.data.splits.masks import Counts, divided, places_within_users, shuffled_within_users
from recbias.data.splits.temporal import times_of


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut:
    """Test on one interaction of each user, the last or a random one, and train on the others.

        n_test(u) = min(n, n(u) - 1),   n_validation(u) = min(validation, n(u) - n_test(u) - 1)

    ``n(u)`` is the number of rows of user u: at least one stays in training, so a user with one
    row is not tested. Equal times are in the order of the rows. The test part does not change
    when a validation part is switched on.

    Args:
        which: Whether the ``last`` rows by time or ``random`` ones are left out.
        n: How many rows of each user are tested on.
        validation: How many rows of each user to tune on, the next in line; 0 makes no validation
            part.
        folds: How many independent splits are made; only random ones can be repeated.

    Raises:
        Contradiction: Several folds of the last rows, which would all be the same.
        UnknownColumn: ``which: last`` where the interactions have no times.
        NothingLeft: A part would be empty.
        Leakage: A user has the same item twice, once in training and once in the test.
    """

    which: Literal["last", "random"] = "last"
    n: Annotated[int, Gt(0)] = 1
    validation: Annotated[int, Ge(0)] = 0
    folds: Annotated[int, Gt(0), Le(1000)] = 1

    def __post_init__(self) -> None:
        """Refuse folds that would all be the same."""
        if self.which == "last" and self.folds > 1:
            found = f"{self.folds} folds that leave the last rows out are all the same"
            raise Contradiction(found, where="folds", remedy="set which: random, or folds: 1")

    def gives(self) -> frozenset[str]:
        """Return what it makes."""
        return frozenset({"test", "validation"} if self.validation else {"test"})

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return a split; ``rng`` is used where random rows are left out."""
        rows = dataset.interactions
        places = places_within_users(rows, self._order(rows, rng))
        counts = rows.user_counts()[rows.users]
        train = np.maximum(counts - self.n, 1)
        fit = np.maximum(train - self.validation, 1)
        validation = (places >= fit) & (places < train) if self.validation else None
        return divided(rows, places >= train, validation, "leaving rows out")

    def _order(self, rows: Interactions, rng: np.random.Generator) -> Counts:
        if self.which == "random":
            return shuffled_within_users(rows, rng)
        return np.lexsort((times_of(rows, "leaving the last rows out"), rows.users))
