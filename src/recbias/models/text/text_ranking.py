"""Lists and rankings of models that say of a text how likely each item is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.numerics.sparse.topk import top_k

Blocks: TypeAlias = Iterator[tuple[AnyArray, AnyArray]]
"""Positions of some texts, and the log-chance of each class for them, ``float32 (b, c)``; every
text is in one block."""

Reader: TypeAlias = Callable[[Ids], Blocks]
"""Reads texts."""

Chooser: TypeAlias = Callable[[AnyArray, int], tuple[AnyArray, AnyArray]]
"""Takes scores ``(b, c)`` and k; returns the columns and scores of the list of each row."""


@dataclass(frozen=True, eq=False)
class ItemClasses:
    """The items that a model tells apart: its classes.

    Args:
        items: The item of each class, ascending, ``int32[c]``.
        n_items: How many items the dataset has.
    """

    items: Codes
    n_items: int

    @classmethod
    def of(cls, data: TrainingData) -> ItemClasses:
        """Return those of the items with training interactions."""
        return cls(np.flatnonzero(data.candidates).astype(np.int32), data.train.n_items)

    @classmethod
    def restored(cls, state: State) -> ItemClasses:
        """Return those of a stored state."""
        return cls(state["class_items"], int(state["class_n_items"]))

    def state(self) -> State:
        """Return the arrays."""
        return {"class_items": self.items, "class_n_items": np.array(self.n_items)}

    def __len__(self) -> int:
        """Return the number of classes."""
        return self.items.size

    def of_items(self, items: Codes) -> AnyArray:
        """Return the class of each item, ``int64``; each must have one."""
        return np.searchsorted(self.items, items)

    def lists(
        self, read: Reader, queries: Queries, k: int, *, choose: Chooser = top_k
    ) -> RankedLists:
        """Return the ``k`` likeliest items for each query's text, ties by item code.

        A query without a text has an empty list; how many there are is noted as a warning.

        Args:
            read: Reads the texts.
            queries: Who or what is asked.
            k: The length of the lists.
            choose: Makes lists of the log-chances, where it is not the likeliest that are wanted.
        """
        items = np.full((len(queries), k), -1, dtype=np.int32)
        scores = np.full((len(queries), k), np.nan, dtype=np.float32)
        if queries.texts is None:
            warn(f"all {len(queries):,} queries have no text: empty lists")
            return RankedLists(items, scores)
        for rows, chances in read(queries.texts):
            classes, scores[rows] = choose(chances, k)
            items[rows] = np.where(classes < 0, -1, self.items[classes])
        return RankedLists(items, scores)

    def ranked(self, read: Reader, texts: Ids) -> Codes:
        """Return all items for each text, the likeliest first, ``int32[n, c]``."""
        found = np.empty((len(texts), len(self)), dtype=np.int32)
        for rows, chances in read(texts):
            found[rows] = self.items[np.argsort(-chances, axis=1, kind="stable")]
        return found


def accuracy(blocks: Blocks, classes: AnyArray) -> float:
    """Return the share of texts whose likeliest class is theirs; NaN of none.

    Args:
        blocks: What was read.
        classes: The class of each text.
    """
    right = [chances.argmax(axis=1) == classes[rows] for rows, chances in blocks]
    return float(np.concatenate(right).mean()) if right else float("nan")


def reviews_to_learn(data: TrainingData) -> Reviews:
    """Return the training reviews.

    Raises:
        MissingEvidence: The dataset has none.
        NothingLeft: None is of a training interaction.
    """
    if data.reviews is None:
        remedy = "choose a dataset with review texts, and keep them"
        raise MissingEvidence("the dataset has no reviews", remedy=remedy)
    if not len(data.reviews):
        raise NothingLeft("no review is of a training interaction", remedy="choose other filters")
    silent = int((data.train.item_counts() > 0).sum()) - np.unique(data.reviews.items).size
    if silent:
        warn(f"{silent:,} items with training interactions have no training review")
    return data.reviews


def judged_reviews(data: TrainingData, classes: ItemClasses) -> Reviews | None:
    """Return the validation reviews of items that the model knows, None where there are none."""
    held = data.validation_reviews
    if held is None:
        return None
    known = np.flatnonzero(np.isin(held.items, classes.items))
    if not known.size:
        return None
    return Reviews(held.users[known], held.items[known], held.texts[known])
