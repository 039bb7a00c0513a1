"""Files of lists none of whose queries exist, with the most likely explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from recbias.core.arrays import Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import UnknownIdentifier
from recbias.core.queries.queries import Queries
from recbias.core.suggestions import suggest
from recbias.formats.lists.rows import ListRows

EXPLANATIONS: Mapping[str, Callable[[str], str]] = {
    "its ids have spaces around them: write them without": str.strip,
    "its ids are decimal numbers: write them as whole numbers": lambda text: text.removesuffix(
        ".0"
    ),
    "its ids begin with zeros that the dataset's lack": lambda text: text.lstrip("0"),
}
"""How another tool may have changed the ids, and the function that undoes it."""


def validate_queries(rows: ListRows, queries: Queries, data: TrainingData) -> None:
    """Raise UnknownIdentifier if no query of a file is a query or a user of the dataset.

    The remedy is the most likely explanation.
    """
    file_ids, users = rows.query_ids.ids, data.train.user_ids
    if not file_ids.size or _has_any(queries.ids, file_ids) or _has_any(users, file_ids):
        return
    message = (
        f"none of the {file_ids.size:,} queries of {rows.path.name} is evaluated: "
        f"it has {_list_some(file_ids)}, the queries are {_list_some(queries.ids.ids)}"
    )
    location = rows.place(0) if rows.queries.size else str(rows.path)
    raise UnknownIdentifier(message, where=location, remedy=_explain(rows, queries, data))


def _explain(rows: ListRows, queries: Queries, data: TrainingData) -> str:
    file_ids, query_ids = rows.query_ids.ids, queries.ids
    if _has_any(data.train.item_ids, file_ids) and _has_any(query_ids, rows.item_ids.ids):
        return "its columns of queries and items look swapped"
    for explanation, undo in EXPLANATIONS.items():
        if _has_any(query_ids, np.array([undo(text) for text in file_ids], dtype=object)):
            return explanation
    nearest = suggest(str(file_ids[0]), [str(query) for query in query_ids.ids])
    return f"use the ids of the dataset, not the internal numbers of a tool: {nearest}"


def _has_any(vocabulary: Vocabulary, ids: Ids) -> bool:
    return bool((vocabulary.find(ids) >= 0).any())


def _list_some(ids: Ids, n_listed: int = 3) -> str:
    return ", ".join(map(repr, ids[:n_listed])) + (", ..." if ids.size > n_listed else "")
