"""A file of lists that answers nothing that was asked, and the nearest explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from recbias.core.arrays import BoolArray, Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import UnknownIdentifier
from recbias.core.queries.queries import Queries
from recbias.core.suggestions import suggest
from recbias.formats.lists.rows import ListRows

REWRITTEN: Mapping[str, Callable[[str], str]] = {
    "its ids have spaces around them: write them without": str.strip,
    "its ids are decimal numbers: write them as whole numbers": lambda name: name.removesuffix(
        ".0"
    ),
    "its ids begin with zeros that the dataset's lack": lambda name: name.lstrip("0"),
}
"""What may have become of ids on their way, and how to undo it."""


def refuse_strangers(rows: ListRows, queries: Queries, data: TrainingData) -> None:
    """Refuse a file whose queries are none of those asked and no users of the dataset either.

    Raises:
        UnknownIdentifier: They are; the remedy is the nearest explanation that can be found.
    """
    names, users = rows.query_ids.ids, data.train.user_ids
    if not names.size or _any(queries.ids, names) or _any(users, names):
        return
    found = (
        f"none of the {names.size:,} queries of {rows.path.name} was asked: "
        f"it has {_some(names)}, asked were {_some(queries.ids.ids)}"
    )
    where = rows.place(0) if rows.queries.size else str(rows.path)
    raise UnknownIdentifier(found, where=where, remedy=_explained(rows, queries, data))


def _explained(rows: ListRows, queries: Queries, data: TrainingData) -> str:
    names, asked = rows.query_ids.ids, queries.ids
    if _any(data.train.item_ids, names) and _any(asked, rows.item_ids.ids):
        return "its columns of queries and items look swapped"
    for explanation, undo in REWRITTEN.items():
        if _any(asked, np.array([undo(name) for name in names], dtype=object)):
            return explanation
    near = suggest(str(names[0]), [str(name) for name in asked.ids])
    return f"write the ids as the dataset does, not the numbers a tool has inside: {near}"


def _any(known: Vocabulary, names: Ids) -> bool:
    found: BoolArray = known.find(names) >= 0
    return bool(found.any())


def _some(names: Ids, shown: int = 3) -> str:
    return ", ".join(map(repr, names[:shown])) + (", ..." if names.size > shown else "")
