"""The roles of the columns of a table of lists: query, item, rank, score and dataset."""

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
"""The names that other tools use for each role, without case, ``_`` and ``-``."""


def assign_roles(names: Sequence[str], location: str, *, ordered: bool = False) -> dict[str, str]:
    """Return the column of each role: ``query_id``, ``item_id`` and ``rank``, ``score`` or both.

    A column ``dataset`` names the dataset of each row. A column with the name of the role comes
    before one with another tool's name for it.

    If the table is ``ordered``, its lines may be in list order, without rank and score.

    >>> assign_roles(["userId", "item", "prediction", "fold"], "mine.csv:1")
    {'query_id': 'userId', 'item_id': 'item', 'score': 'prediction'}

    Raises:
        UnknownColumn: There is no column for the query or the item, or neither rank nor score.
        MalformedLine: Two columns match the same role.
    """
    roles = {role: name for role in ALIASES if (name := _find_column(role, names, location))}
    for role in ("query_id", "item_id"):
        if role not in roles:
            remedy = f"rename the column to {role!r}; {suggest(role, names)}"
            raise UnknownColumn(f"no column {role!r}", where=location, remedy=remedy)
    if not (ordered or {"rank", "score"} & set(roles)):
        remedy = (
            "give each row a rank (1 is the best), a score, or both; "
            "if the lines are in list order, set layout: recbole"
        )
        raise UnknownColumn("neither a column 'rank' nor 'score'", where=location, remedy=remedy)
    return roles


def _find_column(role: str, names: Sequence[str], location: str) -> str | None:
    exact = [name for name in names if name == role]
    matches = exact or [name for name in names if normalize_name(name) in ALIASES[role]]
    if len(matches) < 2:
        return matches[0] if matches else None
    if len(set(matches)) == 1:
        raise MalformedLine(f"two columns are called {matches[0]!r}", where=location)
    listed = " and ".join(map(repr, matches))
    remedy = f"rename the right one to {role!r}"
    raise MalformedLine(f"{listed} may each be the {role}", where=location, remedy=remedy)
