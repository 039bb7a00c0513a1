"""Train, validation and test sets, and the part of them that training may see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import BoolArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.sentences import Sentences
from recbias.core.errors import Leakage

USERS_AT_ONCE = 2**14
"""Users whose rows of two sets are compared at once."""


def encode_pairs(rows: Interactions) -> npt.NDArray[np.int64]:
    """Return an integer for each row, equal for equal (user, item) pairs, ``int64[n]``."""
    return rows.users.astype(np.int64) * max(rows.n_items, 1) + rows.items


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The data that models may see; it has no field for the test set.

    The reviews are those of the training and of the validation rows, and ``sentences`` has no test
    part. ``dataset`` is the label of the dataset, for models that read the output of other tools;
    else blank.
    """

    train: Interactions
    validation: Interactions | None = None
    users: Attributes | None = None
    items: Attributes | None = None
    reviews: Reviews | None = None
    validation_reviews: Reviews | None = None
    dataset: str = ""
    sentences: Sentences | None = None

    @cached_property
    def candidates(self) -> BoolArray:
        """The items that may be recommended: those with a training row, ``bool[n_items]``."""
        return self.train.item_counts() > 0


@dataclass(frozen=True, eq=False)
class Split:
    """Train, validation and test sets over the same vocabularies.

    ``test`` is None if no metric needs it; Leakage if a (user, item) pair is in two sets.
    """

    train: Interactions
    test: Interactions | None
    validation: Interactions | None = None

    def __post_init__(self) -> None:
        """Check that the sets are disjoint."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        present = [(name, rows) for name, rows in parts.items() if rows is not None]
        for (name, rows), (later_name, later_rows) in combinations(present, 2):
            shared = _count_shared(rows, later_rows)
            if shared:
                message = f"{shared:,} (user, item) pairs are in both {name} and {later_name}"
                raise Leakage(message, remedy="deduplicate the interactions, or correct the split")

    def item_counts(self) -> npt.NDArray[np.int64]:
        """Return the number of rows of each item in all sets, ``int64[n_items]``."""
        sets = (self.train, self.validation, self.test)
        counts = [rows.item_counts() for rows in sets if rows is not None]
        total: npt.NDArray[np.int64] = np.sum(counts, axis=0)
        return total

    def training_data(
        self,
        *,
        users: Attributes | None = None,
        items: Attributes | None = None,
        reviews: Reviews | None = None,
        dataset: str = "",
        sentences: Sentences | None = None,
    ) -> TrainingData:
        """Return what training may see: neither reviews of test rows, nor test sentences."""
        train = select_reviews(reviews, self.train)
        validation = select_reviews(reviews, self.validation)
        rows = (self.train, self.validation)
        visible = None if sentences is None else sentences.without_test()
        return TrainingData(*rows, users, items, train, validation, dataset, visible)


def _count_shared(rows: Interactions, later_rows: Interactions) -> int:
    """Return the number of (user, item) pairs in both, by products of blocks of users."""
    matrices = rows.binary, later_rows.binary
    starts = range(0, rows.n_users if len(later_rows) else 0, USERS_AT_ONCE)
    blocks = ([matrix[start : start + USERS_AT_ONCE] for matrix in matrices] for start in starts)
    return sum(int(block.multiply(later).nnz) for block, later in blocks)


def select_reviews(reviews: Reviews | None, rows: Interactions | None) -> Reviews | None:
    """Return the reviews of the (user, item) pairs of some rows; None if either is None."""
    if reviews is None or rows is None:
        return None
    keys = reviews.users.astype(np.int64) * max(rows.n_items, 1) + reviews.items
    positions = np.flatnonzero(np.isin(keys, encode_pairs(rows)))
    return Reviews(reviews.users[positions], reviews.items[positions], reviews.texts[positions])
