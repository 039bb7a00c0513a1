"""What a dataset is once it is read: interactions and what is known of users and items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Reviews:
    """Review texts.

    Args:
        users: Code of the reviewer, ``int32[n]``.
        items: Code of the item, ``int32[n]``.
        texts: The review, ``str``; an empty review is ``""``.
    """

    users: Codes
    items: Codes
    texts: Ids

    def __len__(self) -> int:
        """Return the number of reviews."""
        return int(self.users.size)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Everything a dataset plug-in reads; parts that it does not have are None.

    Args:
        interactions: The rows; its vocabularies are the users and items of the dataset.
        users: What is known of the users, aligned to ``interactions.user_ids``.
        items: What is known of the items, aligned to ``interactions.item_ids``.
        reviews: Review texts over the same codes.
        counts: What was counted on the way: ``bad_lines``, rows before each filter, and so on.
    """

    interactions: Interactions
    users: Attributes | None = None
    items: Attributes | None = None
    reviews: Reviews | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def user_ids(self) -> Vocabulary:
        """The users."""
        return self.interactions.user_ids

    @property
    def item_ids(self) -> Vocabulary:
        """The items."""
        return self.interactions.item_ids

    def with_rows(self, rows: AnyArray) -> Dataset:
        """Keep some interactions (a mask or positions), and only the users and items they hold."""
        kept = self.interactions.take(rows).compacted()
        users = self.users.aligned(kept.user_ids) if self.users else None
        items = self.items.aligned(kept.item_ids) if self.items else None
        return replace(
            self, interactions=kept, users=users, items=items, reviews=self._reviews_of(kept)
        )

    def _reviews_of(self, kept: Interactions) -> Reviews | None:
        if self.reviews is None:
            return None
        user_place = kept.user_ids.find(self.user_ids.ids)
        item_place = kept.item_ids.find(self.item_ids.ids)
        users, items = user_place[self.reviews.users], item_place[self.reviews.items]
        both = (users >= 0) & (items >= 0)
        return Reviews(users[both], items[both], self.reviews.texts[np.flatnonzero(both)])
