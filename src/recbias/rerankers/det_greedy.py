"""DetGreedy: every prefix of a list follows target shares of the values of an attribute."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange, UnknownColumn
from recbias.core.models.rerankers import Candidates
from recbias.core.suggestions import suggest
from recbias.numerics.sparse.blocks import block_size, map_blocks
from recbias.numerics.sparse.share_ranking import rank_to_shares
from recbias.rerankers.item_values import ItemValues, read_values
from recbias.rerankers.settings import NumberOfCandidates, Share

TOLERANCE = 1e-6
"""The largest deviation from 1 of shares that add up to 1."""


@dataclass(frozen=True, kw_only=True)
class DetGreedy:
    """Fill each list so that the values of an item attribute reach target shares.

        at each rank r: the best item of the values a with n_a < ⌊p_a r⌋,
        else of those with n_a < ⌈p_a r⌉, else the best item

    p_a is the target share of the value a, and n_a the number of its items in the list so far. The
    best item is the first of the model's list. Items without a value, and those outside the
    catalogue, are a group of their own.

    Args:
        attribute: A column of the items with one value per item, such as ``price_level``.
        target: ``catalogue`` gives each value its share of the items with training interactions. A
            mapping gives the share of each value by name, ``{"1": 0.3, "2": 0.7}``; the remainder
            to 1 is divided among the other values in proportion to their number of items.
        candidates: How many of the model's best items a list is selected from.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column, an item has several values in it, or no item
            has a value that the target names.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in the column.
        OutOfRange: The shares add up to more than 1, or to less although they name every value.

    Source:
        Geyik, Ambler and Kenthapadi, "Fairness-aware ranking in search and recommendation systems
        with application to LinkedIn talent search", KDD 2019, algorithm 1.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = ""

    attribute: str
    target: Literal["catalogue"] | Mapping[str, Share] = "catalogue"
    candidates: NumberOfCandidates = 100

    def __post_init__(self) -> None:
        """Refuse shares that add up to more than 1."""
        if not isinstance(self.target, str) and math.fsum(self.target.values()) > 1 + TOLERANCE:
            problem = f"the shares add up to {math.fsum(self.target.values()):g}"
            raise OutOfRange(problem, where="target", remedy="give shares that add up to 1")

    def check_data(self, data: TrainingData) -> None:
        """Refuse an attribute with several values per item, and targets that cannot be reached."""
        self._compute_shares(self._read_values(data), data)

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        values = self._read_values(candidates.data)
        shares = self._compute_shares(values, candidates.data)
        n = candidates.lists.k
        order = np.where(candidates.filled, -np.arange(n, dtype=np.float32), -np.inf)
        groups = values.codes[candidates.items, 0]

        def select(start: int, stop: int) -> Codes:
            return rank_to_shares(order[start:stop], groups[start:stop], shares, k)[0]

        size = block_size(8 * (4 * n + 8 * shares.size))
        blocks = map_blocks(select, len(order), size, label="re-rank")
        return np.concatenate([np.empty((0, k), dtype=np.int32), *blocks])

    def _read_values(self, data: TrainingData) -> ItemValues:
        values = read_values(data, self.attribute)
        if (n_values := int(values.counts.max())) > 1:
            problem = f"an item has {n_values} values of {self.attribute!r}"
            remedy = "name a column with one value per item"
            raise UnknownColumn(problem, where="attribute", remedy=remedy)
        return values

    def _compute_shares(self, values: ItemValues, data: TrainingData) -> FloatArray:
        """Return the target share of each value, and of the items without one."""
        groups = values.codes[:-1, 0][data.candidates]
        counts: AnyArray = np.bincount(groups, minlength=values.n_values + 1)
        if isinstance(self.target, str):
            return np.asarray(counts / counts.sum())
        for name in self.target:
            if name not in values.names:
                problem = f"no item has the value {name!r}"
                remedy = suggest(name, values.names)
                raise UnknownColumn(problem, where="target", remedy=remedy)
        targets = np.array([*(self.target.get(name, 0.0) for name in values.names), 0.0])
        is_named = np.array([*(name in self.target for name in values.names), False])
        free_counts = np.where(is_named, 0, counts)
        remainder = max(1 - targets.sum(), 0.0)
        if remainder > TOLERANCE and not free_counts.any():
            problem = f"the shares add up to {targets.sum():g}, and every value is named"
            remedy = "give shares that add up to 1"
            raise OutOfRange(problem, where="target", remedy=remedy)
        return np.asarray(targets + remainder * free_counts / max(free_counts.sum(), 1))
