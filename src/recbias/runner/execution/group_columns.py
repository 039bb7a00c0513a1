"""Errors about columns that cannot group queries."""

from __future__ import annotations

from recbias.core.errors import UnknownColumn, UserError
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import list_part_columns, split_crossing


def explain_item_column(error: UserError, by: str, evidence: Evidence) -> UserError:
    """Return the error of a label that no query has; another one if it is a column of items."""
    if not isinstance(error, UnknownColumn) or evidence.items is None:
        return error
    labels = evidence.queries.labels
    names = [name for part in split_crossing(by) for name in list_part_columns(part, labels)]
    columns = [name for name in names if name in set(evidence.items.names) - set(labels.names)]
    if not columns:
        return error
    texts = [name for name in labels.names if labels.column(name).dtype.kind != "f"]
    column, label = columns[0], next(iter(texts), "LABEL")
    message = f"{column!r} is a column of the items; by groups queries, that is users or prompts"
    remedy = (
        f"to compare groups of items, name the column in a metric of items, such as "
        f"{{name: association, label: {label}, attribute: {column}}}; "
        f"to group queries, name one of {', '.join(labels.names) or 'their labels'}"
    )
    return UnknownColumn(message, where=error.where, remedy=remedy)
