"""Ranking of items by a classifier of texts whose classes are items."""

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
from recbias.core.stage_context import warn
from recbias.numerics.sparse.topk import top_k

Blocks: TypeAlias = Iterator[tuple[AnyArray, AnyArray]]
"""Positions of texts, and their log-probabilities of the classes, ``float32 (b, c)``; every text
is in exactly one block."""

MAX_BLOCK_SCORES = 2**22  # Number of log-probabilities per block: 16 MB

Classifier: TypeAlias = Callable[[Ids], Blocks]  # Computes the log-probabilities of texts


@dataclass(frozen=True, eq=False)
class ItemClasses:
    """The items that are the classes of a classifier.

    Args:
        items: The item of each class, ascending, ``int32[c]``.
        n_items: Number of items of the dataset.
    """

    items: Codes
    n_items: int

    @classmethod
    def from_data(cls, data: TrainingData) -> ItemClasses:
        """Return the items with training interactions."""
        return cls(np.flatnonzero(data.candidates).astype(np.int32), data.train.n_items)

    @classmethod
    def from_state(cls, state: State) -> ItemClasses:
        """Return the classes of a stored state."""
        return cls(state["class_items"], int(state["class_n_items"]))

    def state(self) -> State:
        """Return the arrays."""
        return {"class_items": self.items, "class_n_items": np.array(self.n_items)}

    def __len__(self) -> int:
        return self.items.size

    def encode(self, items: Codes) -> AnyArray:
        """Return the class of each item, ``int64``; every item must have a class."""
        return np.searchsorted(self.items, items)

    def decode(self, classes: AnyArray) -> Codes:
        """Return the item of each class; -1 for the padding -1."""
        return np.where(classes < 0, np.int32(-1), self.items[classes])

    def recommend(self, classify: Classifier, texts: Ids, k: int) -> RankedLists:
        """Return the ``k`` most probable items for each text, ties by item code."""
        items = np.full((len(texts), k), -1, dtype=np.int32)
        scores = np.full((len(texts), k), np.nan, dtype=np.float32)
        for rows, log_probabilities in classify(texts):
            classes, scores[rows] = top_k(log_probabilities, k)
            items[rows] = self.decode(classes)
        return RankedLists(items, scores)

    def rank_all(self, classify: Classifier, texts: Ids) -> Codes:
        """Return all items for each text, the most probable first, ``int32[n, c]``."""
        rankings = np.empty((len(texts), len(self)), dtype=np.int32)
        for rows, log_probabilities in classify(texts):
            rankings[rows] = self.items[np.argsort(-log_probabilities, axis=1, kind="stable")]
        return rankings


def accuracy(blocks: Blocks, classes: AnyArray) -> float:
    """Return the share of texts whose most probable class is the true one; NaN without texts."""
    hits = [scores.argmax(axis=1) == classes[rows] for rows, scores in blocks]
    return float(np.concatenate(hits).mean()) if hits else float("nan")


def require_reviews(data: TrainingData) -> Reviews:
    """Return the training reviews.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: No review belongs to a training interaction.
    """
    if data.reviews is None:
        remedy = "choose a dataset with review texts, and keep them"
        raise MissingEvidence("the dataset has no reviews", remedy=remedy)
    if not len(data.reviews):
        problem = "no review belongs to a training interaction"
        raise NothingLeft(problem, remedy="choose other filters")
    return data.reviews


def prepare_reviews(data: TrainingData) -> Reviews:
    """Return the training reviews; a warning reports the number of candidates without any."""
    reviews = require_reviews(data)
    n_without = int(data.candidates.sum()) - np.unique(reviews.items).size
    if n_without:
        warn(f"{n_without:,} items with training interactions have no training review")
    return reviews


def select_validation_reviews(data: TrainingData, classes: ItemClasses) -> Reviews | None:
    """Return the validation reviews of items that are classes; None if there are none."""
    reviews = data.validation_reviews
    if reviews is None:
        return None
    rows = np.flatnonzero(np.isin(reviews.items, classes.items))
    selected = Reviews(reviews.users[rows], reviews.items[rows], reviews.texts[rows])
    return selected if rows.size else None
