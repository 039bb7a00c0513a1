"""Which column of a table of lists is the query, the item, the rank, the score, the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.suggestions import normalize_name, suggest

ALIASES: Mapping[str, frozenset[str]] = {
    "query_id": frozenset({"queryid", "query", "qid", "userid", "user", "uid"}),
    "item_id": frozenset({"itemid", "item", "iid", "docid", "docno"}),
    "rank": frozenset({"rank"}),
    "score": frozenset({"score", "prediction", "rating"}),
    "dataset": frozenset({"dataset"}),
}
"""What other tools call each column, without case, ``_`` and ``-``."""


def roles_of(names: Sequence[str], where: str, *, ordered: bool = False) -> dict[str, str]:
    """Return the column of each role: ``query_id``, ``item_id`` and ``rank``, ``score`` or both.

    A column ``dataset`` says of which dataset a row is.

    A column that has the name of its role is taken; else the one column that has another tool's
    name for it.

    >>> roles_of(["userId", "item", "prediction", "fold"], "mine.csv:1")
    {'query_id': 'userId', 'item_id': 'item', 'score': 'prediction'}

    Args:
        names: The columns of the table.
        where: The place of the header.
        ordered: Whether the lines may be in the order of the lists, without rank and score.

    Raises:
        UnknownColumn: No column may be the query or the item, or neither rank nor score is there.
        MalformedLine: Two columns may be the same.
    """
    found = {role: name for role in ALIASES if (name := _column(role, names, where))}
    for role in ("query_id", "item_id"):
        if role not in found:
            remedy = f"rename the column to {role!r}; {suggest(role, names)}"
            raise UnknownColumn(f"no column {role!r}", where=where, remedy=remedy)
    if not (ordered or {"rank", "score"} & set(found)):
        remedy = (
            "give each row a rank (from the best), a score, or both; "
            "if the lines are in the order of the lists, say layout: recbole"
        )
        raise UnknownColumn("neither a column 'rank' nor 'score'", where=where, remedy=remedy)
    return found


def _column(role: str, names: Sequence[str], where: str) -> str | None:
    exact = [name for name in names if name == role]
    taken = exact or [name for name in names if normalize_name(name) in ALIASES[role]]
    if len(taken) < 2:
        return taken[0] if taken else None
    if len(set(taken)) == 1:
        raise MalformedLine(f"two columns are called {taken[0]!r}", where=where)
    shown = " and ".join(map(repr, taken))
    remedy = f"rename the one that is meant to {role!r}"
    raise MalformedLine(f"{shown} may each be the {role}", where=where, remedy=remedy)
