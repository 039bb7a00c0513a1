"""A loaded dataset: interactions, attributes of users and items, reviews, and sentences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.sentences import Sentences
from recbias.core.dataset.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Reviews:
    """Review texts, with the codes of their users and items; an empty review is ``""``."""

    users: Codes
    items: Codes
    texts: Ids

    def __len__(self) -> int:
        """Return the number of reviews."""
        return int(self.users.size)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Everything that a dataset plug-in loads; a part that it does not have is None.

    Args:
        interactions: The interactions; their vocabularies are the users and items of the dataset,
            to which the tables of attributes are aligned.
        counts: Counts taken while loading: ``bad_lines``, rows before each filter, and so on.
    """

    interactions: Interactions
    users: Attributes | None = None
    items: Attributes | None = None
    reviews: Reviews | None = None
    counts: dict[str, int] = field(default_factory=dict)
    sentences: Sentences | None = None

    @property
    def user_ids(self) -> Vocabulary:
        """The users."""
        return self.interactions.user_ids

    @property
    def item_ids(self) -> Vocabulary:
        """The items."""
        return self.interactions.item_ids

    def select_rows(self, rows: AnyArray) -> Dataset:
        """Return the dataset of some interactions (a mask or positions) and their users and items.

        Users and items without an interaction are dropped, and their reviews with them.
        """
        interactions = self.interactions.take(rows).drop_unused_ids()
        return replace(
            self,
            interactions=interactions,
            users=self.users.align(interactions.user_ids) if self.users else None,
            items=self.items.align(interactions.item_ids) if self.items else None,
            reviews=self._recode_reviews(interactions),
        )

    def _recode_reviews(self, interactions: Interactions) -> Reviews | None:
        if self.reviews is None:
            return None
        users = interactions.user_ids.find(self.user_ids.ids)[self.reviews.users]
        items = interactions.item_ids.find(self.item_ids.ids)[self.reviews.items]
        present = (users >= 0) & (items >= 0)
        return Reviews(users[present], items[present], self.reviews.texts[np.flatnonzero(present)])
