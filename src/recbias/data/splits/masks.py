"""What the splits share: the rank of a row within its user or item, and splitting by ranks."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.core.errors import Contradiction, NothingLeft
from recbias.numerics.sparse.counting_sort import argsort_codes, sort_within_groups

Counts = npt.NDArray[np.int64]

ROUNDING = 1e-9
"""Added before rounding down, so that 0.7 of 10 rows is 7 although 0.7 * 10 may be 6.999."""


class RankedSplit:
    """Base of the splits that hold out the last rows of an order."""

    validation: float

    def gives(self) -> frozenset[str]:
        """Return the parts that the split makes."""
        return frozenset({"test", "validation"} if self.validation else {"test"})

    def split_by_ranks(
        self,
        rows: Interactions,
        ranks: AnyArray,
        n_train: AnyArray,
        test_start: AnyArray,
        name: str,
    ) -> Split:
        """Split rows by their ranks, ``[n]``: train, validation and test in this order."""
        is_later = ranks >= n_train
        validation = is_later & (ranks < test_start) if self.validation else None
        return split_by_masks(rows, ranks >= test_start, validation, name)


def shuffle(rows: Interactions, rng: np.random.Generator) -> AnyArray:
    """Return the positions of the rows in random order, independent of the order of the file."""
    return _order_by_user_and_item(rows)[rng.permutation(len(rows))]


def shuffle_within_users(rows: Interactions, rng: np.random.Generator) -> AnyArray:
    """Return the positions of the rows grouped by user, in the order of ``shuffle``."""
    order = _order_by_user_and_item(rows)
    places = np.empty_like(order)
    places[rng.permutation(len(rows))] = np.arange(len(rows), dtype=order.dtype)
    sort_within_groups(order, places, _find_starts(rows))
    return order


def _order_by_user_and_item(rows: Interactions) -> AnyArray:
    """Return the positions of the rows by user and item; repeated rows keep their order."""
    order = argsort_codes(rows.users, rows.n_users)
    items, starts = rows.items[order], _find_starts(rows)
    sort_within_groups(order, items, starts)
    is_repeated = items[1:] == items[:-1]
    is_repeated[starts[(starts > 0) & (starts < len(rows))] - 1] = False  # of another user
    if is_repeated.any():
        by_item = argsort_codes(rows.items, rows.n_items)
        order = by_item[argsort_codes(rows.users[by_item], rows.n_users)]
    return order


def _find_starts(rows: Interactions) -> AnyArray:
    return np.concatenate([[0], np.cumsum(rows.user_counts())])


def rank_within_items(rows: Interactions, rng: np.random.Generator) -> tuple[AnyArray, Counts]:
    """Return the rank of each row in a random order of its item's users, and their number.

    Rows of one user and item have the same rank.
    """
    n_items = max(rows.n_items, 1)
    keys = rows.users.astype(np.int64) * n_items + rows.items
    pairs, pair_codes = np.unique(keys, return_inverse=True)
    items = pairs % n_items
    permutation = rng.permutation(pairs.size)
    order = permutation[np.argsort(items[permutation], kind="stable")]
    counts = np.bincount(items, minlength=rows.n_items)
    return rank_within_groups(order, counts)[pair_codes], counts[items][pair_codes]


def rank_within_groups(order: AnyArray, counts: AnyArray) -> AnyArray:
    """Return the rank of each row in its group, from 0, of the type of ``order``.

    ``order`` has the positions of the rows by group, ``counts`` the sizes of the groups.
    """
    starts = (np.cumsum(counts) - counts).astype(order.dtype)
    by_group = np.arange(order.size, dtype=order.dtype)
    by_group -= np.repeat(starts, counts)
    ranks = np.empty_like(order)
    ranks[order] = by_group
    return ranks


def count_training_rows(counts: AnyArray, test_share: float) -> Counts:
    """Return max(1, floor((1 - test_share) * n)) for each count n.

    >>> count_training_rows(np.array([10, 4, 1]), 0.2).tolist()
    [8, 3, 1]
    """
    n_train = np.floor((1.0 - test_share) * counts + ROUNDING).astype(np.int64)
    return np.maximum(n_train, 1)


def validate_shares(test: float, validation: float) -> None:
    """Refuse shares that leave nothing to train on.

    Raises:
        Contradiction: The shares add up to 1 or more.
    """
    if test + validation > 1.0 or math.isclose(test + validation, 1.0):
        message = f"test ({test:g}) and validation ({validation:g}) leave nothing to train on"
        remedy = "both are shares of all interactions: their sum must be below 1"
        raise Contradiction(message, where="validation", remedy=remedy)


def split_by_masks(
    rows: Interactions, test: BoolArray, validation: BoolArray | None, split_name: str
) -> Split:
    """Split the rows by two masks, ``bool[n]``; all other rows are for training.

    Raises:
        NothingLeft: A part is empty.
        Leakage: A (user, item) pair is in two parts.
    """
    masks = {"train": ~test if validation is None else ~(test | validation), "test": test}
    if validation is not None:
        masks["validation"] = validation
    if not len(rows):
        message = "the dataset has no interactions to split"
        remedy = "its file has no rows, or its filters leave none: recbias data describe SPEC"
        raise NothingLeft(message, remedy=remedy)
    for name, mask in masks.items():
        if not mask.any():
            message = f"{split_name} of {len(rows):,} interactions leaves the {name} part empty"
            raise NothingLeft(message, remedy="choose other shares, or a dataset with more rows")
    parts = {name: rows.take(mask) for name, mask in masks.items()}
    return Split(parts["train"], parts["test"], parts.get("validation"))
