"""Reranking: each value of an item attribute has a target share of every list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft, OutOfRange, UnknownColumn, UserError
from recbias.core.suggestions import suggest
from recbias.models.text.text_ranking import ItemClasses, Selector
from recbias.numerics.sparse.share_ranking import rank_to_shares
from recbias.numerics.sparse.topk import top_k

TOLERANCE = 1e-6  # Largest deviation from 1 of shares that add up to 1


@dataclass(frozen=True, kw_only=True)
class Rerank:
    """Fill each list so that the values of an item attribute reach target shares (DetGreedy).

    Each rank takes the most probable item among the values that are below their target share so
    far. Items without a value are a separate group. The score at a rank is 1 / rank. In the list
    of a user the most probable item is that of the highest mean log-probability for the user's
    reviews, and the user's training items take no rank.

    Args:
        attribute: A column of the items with one value per item, such as ``price_level``.
        target: ``catalogue`` gives each value its share of the items. A mapping gives the share
            of each value by name, ``{"1": 0.3, "2": 0.7}``; the remainder to 1 is divided among
            the other values in proportion to their number of items.

    Raises:
        OutOfRange: The shares add up to more than 1.

    Source:
        Geyik, Ambler and Kenthapadi, "Fairness-aware ranking in search and recommendation systems
        with application to LinkedIn talent search", KDD 2019, algorithm 1.
    """

    attribute: str
    target: Literal["catalogue"] | Mapping[str, Annotated[float, Ge(0), Le(1)]] = "catalogue"

    def __post_init__(self) -> None:
        if not isinstance(self.target, str) and math.fsum(self.target.values()) > 1 + TOLERANCE:
            problem = f"the shares add up to {math.fsum(self.target.values()):g}"
            raise OutOfRange(problem, where="target", remedy="give shares that add up to 1")


def create_selector(rerank: Rerank | None, classes: ItemClasses, data: TrainingData) -> Selector:
    """Return the function that selects a list from scores: the highest if ``rerank`` is None.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column, an item has several values in it, or no item
            has a value that the target names.
        NothingLeft: No item has a value in the column.
        OutOfRange: The shares add up to less than 1 and name every value.
    """
    if rerank is None:
        return top_k
    if data.items is None:
        raise MissingEvidence("the dataset has no item attributes", remedy="add an items table")
    try:
        names, groups = _group_items(data.items, rerank.attribute, classes.items)
        counts = np.bincount(groups, minlength=len(names) + 1)
        shares = _compute_shares(rerank.target, names, counts)
    except UserError as error:
        raise type(error)(error.message, where="rerank", remedy=error.remedy) from error
    return partial(_select_by_shares, groups=groups, shares=shares)


def _select_by_shares(
    scores: AnyArray, k: int, *, groups: Codes, shares: FloatArray
) -> tuple[AnyArray, AnyArray]:
    columns, _ = rank_to_shares(scores, groups, shares, k)
    reciprocal_ranks = 1 / np.arange(1, k + 1, dtype=np.float32)
    return columns, np.where(columns < 0, np.float32(np.nan), reciprocal_ranks)


def _group_items(items: Attributes, attribute: str, codes: Codes) -> tuple[tuple[str, ...], Codes]:
    """Return the values, and the group of each item; items without a value are the last group."""
    membership = items.membership(attribute)
    matrix = membership.matrix[codes]
    if not matrix.nnz:
        raise NothingLeft(f"no item has a value of {attribute!r}", remedy="name another column")
    n_values = int(matrix.sum(axis=1).max(initial=0))
    if n_values > 1:
        problem = f"an item has {n_values} values of {attribute!r}"
        raise UnknownColumn(problem, remedy="name a column with one value per item")
    groups = np.full(codes.size, len(membership.values), dtype=np.int32)
    rows, values = matrix.nonzero()
    groups[rows] = values
    return membership.values, groups


def _compute_shares(
    target: Literal["catalogue"] | Mapping[str, float], names: tuple[str, ...], counts: AnyArray
) -> FloatArray:
    """Return the target share of each value, followed by that of the items without a value."""
    if isinstance(target, str):
        return np.asarray(counts / counts.sum())
    for name in target:
        if name not in names:
            problem = f"no item has the value {name!r}"
            raise UnknownColumn(problem, remedy=suggest(name, names))
    targets = np.array([*(target.get(name, 0.0) for name in names), 0.0])
    free_counts = np.where([*(name in target for name in names), False], 0, counts)
    remainder = max(1 - targets.sum(), 0.0)
    if remainder > TOLERANCE and not free_counts.any():
        problem = f"the shares add up to {targets.sum():g}, and every value is named"
        raise OutOfRange(problem, remedy="give shares that add up to 1")
    return np.asarray(targets + remainder * free_counts / max(free_counts.sum(), 1))
