"""Lists in which each value of an item attribute has a share of the places."""

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
from recbias.core.errors import (
    MissingEvidence,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UserError,
)
from recbias.core.suggestions import suggest
from recbias.models.text.text_ranking import Chooser, ItemClasses
from recbias.numerics.sparse.share_ranking import rank_to_shares
from recbias.numerics.sparse.topk import top_k

CLOSE = 1e-6
"""Shares that add up to 1 but for so much add up to 1."""


@dataclass(frozen=True, kw_only=True)
class Rerank:
    """Fill each list so that the values of an item attribute have given shares of its places.

    Place by place, the likeliest item is taken of the values that are short of their share so far
    (DetGreedy). Items without a value are a group of their own. The score of a place is then
    1 / rank.

    Args:
        attribute: A column of the items with one value an item, such as ``price_level``.
        target: ``catalogue`` gives each value the share of the items that have it; or the share of
            each value by name, ``{"1": 0.3, "2": 0.7}``. What they leave of 1 goes to the values
            not named, as they stand in the catalogue.

    Raises:
        OutOfRange: The shares add up to more than 1.

    Source:
        Geyik, Ambler and Kenthapadi, "Fairness-aware ranking in search and recommendation systems
        with application to LinkedIn talent search", KDD 2019, algorithm 1.
    """

    attribute: str
    target: Literal["catalogue"] | Mapping[str, Annotated[float, Ge(0), Le(1)]] = "catalogue"

    def __post_init__(self) -> None:
        """Refuse shares of more than everything."""
        if not isinstance(self.target, str) and math.fsum(self.target.values()) > 1 + CLOSE:
            found = f"the shares add up to {math.fsum(self.target.values()):g}"
            raise OutOfRange(found, where="target", remedy="give shares that add up to 1")


def chooser(rerank: Rerank | None, classes: ItemClasses, data: TrainingData) -> Chooser:
    """Return what makes lists of scores: the plain ranking, or one with target shares.

    Args:
        rerank: The target; None for the plain ranking.
        classes: The items that the columns of the scores stand for.
        data: Knows the items' attributes.

    Raises:
        MissingEvidence: Nothing is known of the items.
        UnknownColumn: The items have no such column, an item has several values in it, or no item
            has a value that the target names.
        NothingLeft: No item has a value in it.
        OutOfRange: The shares add up to less than 1 and name every value.
    """
    if rerank is None:
        return top_k
    if data.items is None:
        raise MissingEvidence("nothing is known of the items", remedy="give an items table")
    try:
        names, groups = _groups(data.items, rerank.attribute, classes.items)
        shares = _shares(rerank.target, names, np.bincount(groups, minlength=len(names) + 1))
    except UserError as error:
        raise type(error)(error.message, where="rerank", remedy=error.remedy) from error
    return partial(_by_shares, groups=groups, shares=shares)


def _by_shares(
    scores: AnyArray, k: int, *, groups: Codes, shares: FloatArray
) -> tuple[AnyArray, AnyArray]:
    columns, _ = rank_to_shares(scores, groups, shares, k)
    places = 1 / np.arange(1, k + 1, dtype=np.float32)
    return columns, np.where(columns < 0, np.float32(np.nan), places)


def _groups(items: Attributes, attribute: str, codes: Codes) -> tuple[tuple[str, ...], Codes]:
    """Return the values and the group of each item; the last group is of items without one."""
    found = items.membership(attribute)
    matrix = found.matrix[codes]
    if not matrix.nnz:
        raise NothingLeft(f"no item has a value of {attribute!r}", remedy="name another column")
    several = int(matrix.sum(axis=1).max(initial=0))
    if several > 1:
        told = f"an item has {several} values of {attribute!r}"
        raise UnknownColumn(told, remedy="name a column with one value an item")
    groups = np.full(codes.size, len(found.values), dtype=np.int32)
    rows, values = matrix.nonzero()
    groups[rows] = values
    return found.values, groups


def _shares(
    target: Literal["catalogue"] | Mapping[str, float], names: tuple[str, ...], counts: AnyArray
) -> FloatArray:
    """Return the share of each value, and of the items without one behind them."""
    if isinstance(target, str):
        catalogue: FloatArray = counts / counts.sum()
        return catalogue
    for name in target:
        if name not in names:
            found = f"no item has the value {name!r}"
            raise UnknownColumn(found, remedy=suggest(name, names))
    given = np.array([*(target.get(name, 0.0) for name in names), 0.0])
    free = np.where([*(name in target for name in names), False], 0, counts)
    rest = max(1 - given.sum(), 0.0)
    if rest > CLOSE and not free.any():
        found = f"the shares add up to {given.sum():g}, and every value is named"
        raise OutOfRange(found, remedy="give shares that add up to 1")
    shares: FloatArray = given + rest * free / max(free.sum(), 1)
    return shares
