"""Train, validation and test, and what training may see of them."""

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
from recbias.core.errors import Leakage


def pair_keys(rows: Interactions) -> npt.NDArray[np.int64]:
    """Return one number a row that is the same for the same (user, item)."""
    return rows.users.astype(np.int64) * max(rows.n_items, 1) + rows.items


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What ``fit``, the search and the lists may see; it has no field for the test set.

    Args:
        train: The rows to learn from.
        validation: Rows to stop early and to tune on, or None.
        users: What is known of the users.
        items: What is known of the items.
        reviews: Review texts of the training rows.
        validation_reviews: Review texts of the validation rows.
        dataset: The dataset's label, for a model that reads files made elsewhere; else blank.
    """

    train: Interactions
    validation: Interactions | None = None
    users: Attributes | None = None
    items: Attributes | None = None
    reviews: Reviews | None = None
    validation_reviews: Reviews | None = None
    dataset: str = ""

    @cached_property
    def candidates(self) -> BoolArray:
        """The items that may be recommended: those with a training row, ``bool[n_items]``."""
        return self.train.item_counts() > 0


@dataclass(frozen=True, eq=False)
class Split:
    """Three parts over the same vocabularies.

    Args:
        train: Rows to learn from.
        test: Rows to measure on; None where the lists are measured without a test set.
        validation: Rows to tune on, or None.

    Raises:
        Leakage: A (user, item) pair stands in two parts.
    """

    train: Interactions
    test: Interactions | None
    validation: Interactions | None = None

    def __post_init__(self) -> None:
        """Refuse parts that overlap."""
        named = {"train": self.train, "validation": self.validation, "test": self.test}
        parts = [(name, rows) for name, rows in named.items() if rows is not None]
        for (first, rows), (second, others) in combinations(parts, 2):
            both = rows.binary.multiply(others.binary).nnz if len(others) else 0
            if both:
                found = f"{both:,} (user, item) pairs stand in both {first} and {second}"
                raise Leakage(found, remedy="deduplicate the interactions, or mend the split")

    def training_data(
        self,
        *,
        users: Attributes | None = None,
        items: Attributes | None = None,
        reviews: Reviews | None = None,
        dataset: str = "",
    ) -> TrainingData:
        """Return what training may see; reviews of pairs outside ``train`` are left out."""
        return TrainingData(
            self.train,
            self.validation,
            users,
            items,
            select_reviews(reviews, self.train),
            select_reviews(reviews, self.validation),
            dataset,
        )


def select_reviews(reviews: Reviews | None, rows: Interactions | None) -> Reviews | None:
    """Return the reviews of the (user, item) pairs of some rows; None where either is None."""
    if reviews is None or rows is None:
        return None
    keys = reviews.users.astype(np.int64) * max(rows.n_items, 1) + reviews.items
    kept = np.flatnonzero(np.isin(keys, pair_keys(rows)))
    return Reviews(reviews.users[kept], reviews.items[kept], reviews.texts[kept])
