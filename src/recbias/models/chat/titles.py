"""Items as titles with years, and the histories of users in time order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.language.prompts.recommendation_prompts import HistoryItem
from recbias.language.replies.title_forms import restore_article, split_year


def read_titles(data: TrainingData, title: str, year: str | None) -> list[HistoryItem]:
    """Return the title and year of each item, in the order of the codes.

    An article at the end of a title is moved to its front: ``The Matrix``. An item without a
    title is named by its identifier.

    Args:
        data: The training data.
        title: The column of titles.
        year: The column of years; None to read the year from the title (``Heat (1995)``).

    Raises:
        MissingEvidence: The dataset has no items.
        UnknownColumn: There is no such column, or no item has a title.
    """
    if data.items is None:
        message, remedy = "the dataset has no items", "give it an items table with titles"
        raise MissingEvidence(message, remedy=remedy)
    cells = _read_column(data, "title", title)
    if not any(cells):
        raise UnknownColumn(f"no item has a value in {title!r}", where="title")
    pairs = [split_year(cell) for cell in cells]
    years: Sequence[int | None] = [written for _, written in pairs]
    if year is not None:
        try:
            numbers = data.items.numbers(year)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="year", remedy=error.remedy) from error
        years = [None if np.isnan(number) else int(number) for number in numbers]
    ids = data.train.item_ids.ids
    return [
        (restore_article(name) or str(ids[code]), years[code])
        for code, (name, _) in enumerate(pairs)
    ]


def _read_column(data: TrainingData, setting: str, name: str) -> list[str]:
    try:
        column = data.items.column(name)  # type: ignore[union-attr]  # checked by read_titles
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where=setting, remedy=error.remedy) from error
    return [str(cell) if isinstance(cell, str) else "" for cell in column]


@dataclass(frozen=True, eq=False)
class Histories:
    """The training items of each user in time order; in the order of the data without times.

    Args:
        items: The items of all users, ``int32[n]``.
        starts: The position of the first item of each user, ``int64[n_users + 1]``.
    """

    items: Codes
    starts: AnyArray

    @classmethod
    def from_data(cls, data: TrainingData) -> Histories:
        """Return the histories of all users; without times, with a warning."""
        train = data.train
        if train.times is None:
            warn("the interactions have no times: histories are in the order of the data")
        times = np.zeros(len(train)) if train.times is None else train.times
        order = np.lexsort((times, train.users))
        starts = np.concatenate([[0], np.cumsum(train.user_counts())])
        return cls(train.items[order], starts)

    def select(self, queries: Queries) -> list[Codes]:
        """Return the items of each query, the oldest first; none if the query is not a user."""
        empty = self.items[:0]
        return [
            self.items[self.starts[user] : self.starts[user + 1]] if user >= 0 else empty
            for user in queries.users.tolist()
        ]
