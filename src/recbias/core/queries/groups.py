"""Queries by what is known of them: one label, a condition, or a crossing of several."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import NothingLeft, UnknownColumn, WrongType
from recbias.core.queries.conditions import list_condition_columns, match_rows
from recbias.core.suggestions import suggest

JOIN = "&"
"""Between the parts of a crossing: ``gender&race``."""

_COMPARES = re.compile(r"(^|\s)([<>]=?|[=!]=)(\s|$)|\sin\s*[\[(]")
"""What stands in conditions, and in no name of a column that is not asking for trouble."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each row is in.

    Args:
        by: As the user wrote it: ``gender&age < 25``.
        names: The groups that occur, ``gender=F&age < 25``, in the natural order of their labels.
        codes: The group of each row, ``int32[n]``; -1 where a label is missing.
        values: The label of each part of each group: ``("F", "age < 25")``.
    """

    by: str
    names: tuple[str, ...]
    codes: Codes
    values: tuple[tuple[str, ...], ...]

    @property
    def counts(self) -> AnyArray:
        """The number of rows in each group, ``int64[g]``."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    @property
    def missing(self) -> int:
        """How many rows are in no group."""
        return int(np.count_nonzero(self.codes < 0))


def split_crossing(by: str) -> tuple[str, ...]:
    """Return the parts of a crossing.

    >>> split_crossing("gender & age < 25")
    ('gender', 'age < 25')

    Raises:
        WrongType: A part is blank.
    """
    parts = tuple(each.strip() for each in by.split(JOIN))
    if not all(parts):
        found = f"{by!r} is no label: a part of it is blank"
        raise WrongType(found, remedy="write a label, or several joined by &: gender&race")
    return parts


def validate_by(by: str) -> None:
    """Refuse a crossing of which a part can neither be a column nor a condition.

    >>> validate_by("gender & age < 25")

    Raises:
        WrongType: A part is blank, or compares and is not a condition.
    """
    for part in split_crossing(by):
        if _COMPARES.search(part):
            list_condition_columns(part)


def group_by(labels: Attributes, by: str) -> Groups:
    """Return the groups of rows by their labels.

    Each part is a column, whose values make the groups, or a condition such as ``age < 25``, which
    makes two: ``age < 25`` and ``not age < 25``. Numbers are written without needless digits.

    >>> from recbias.core.dataset.vocabulary import Vocabulary
    >>> ids = Vocabulary.of(["1", "2", "3"])
    >>> table = pd.DataFrame({"gender": ["F", "M", None], "age": [18.0, 30.0, 40.0]})
    >>> found = group_by(Attributes(ids, table, "query"), "gender & age < 25")
    >>> found.names, found.codes.tolist()
    (('gender=F&age < 25', 'gender=M&not age < 25'), [0, 1, -1])

    Args:
        labels: The rows with their columns.
        by: The label, condition, or crossing of several.

    Raises:
        UnknownColumn: There is no such column.
        WrongType: A part is neither a column nor a condition.
        NothingLeft: No row carries the label, or none meets a condition.
    """
    parts = split_crossing(by)
    columns = [_part(labels, each) for each in parts]
    codes = np.zeros(len(labels.frame), dtype=np.int64)
    known = np.ones(codes.size, dtype=bool)
    for values, place in columns:
        known &= place >= 0
        codes = codes * max(len(values), 1) + np.maximum(place, 0)
    if not known.any():
        raise NothingLeft(f"no query carries the label {by!r}", remedy=_having(labels))
    present, dense = np.unique(codes[known], return_inverse=True)
    found = np.full(codes.size, -1, dtype=np.int32)
    found[known] = dense
    crossed = _crossed(present, [each for each, _ in columns])
    names = tuple(_name(parts, each) for each in crossed)
    return Groups(by, names, found, crossed)


def _part(labels: Attributes, part: str) -> tuple[tuple[str, ...], Codes]:
    """Return the values of one part and the place of each row's, -1 where it is missing."""
    if part in labels.frame.columns:
        return _of_column(labels.column(part))
    if part.isidentifier():
        found = f"no query carries the label {part!r}"
        raise UnknownColumn(found, remedy=suggest(part, labels.names))
    list_condition_columns(part)
    place = np.full(len(labels.frame), -1, dtype=np.int32)
    place[match_rows(part, labels)] = 0
    place[match_rows(f"not ({part})", labels)] = 1
    if not (place == 0).any():
        found = f"no query meets {part!r}"
        raise NothingLeft(found, remedy="mend the condition, or leave it out")
    return (part, f"not {part}"), place


def _of_column(column: pd.Series[Any]) -> tuple[tuple[str, ...], Codes]:
    if column.dtype.kind == "f":
        place, numbers = pd.factorize(column, sort=True)
        return tuple(np.format_float_positional(each, trim="-") for each in numbers), place.astype(
            np.int32
        )
    place, values = pd.factorize(column.where(column.notna(), None), sort=False)
    texts = [str(each) for each in values]
    order = np.argsort(np.array(texts, dtype=object), kind="stable")
    rank = np.empty(order.size + 1, dtype=np.int32)
    rank[order], rank[-1] = np.arange(order.size), -1
    return tuple(texts[each] for each in order), rank[place]


def _crossed(present: AnyArray, columns: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    rest, places = present, []
    for values in reversed(columns):
        rest, place = np.divmod(rest, max(len(values), 1))
        places.append([values[each] for each in place])
    return tuple(zip(*reversed(places), strict=True))


def _name(parts: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = zip(parts, values, strict=True)
    return JOIN.join(
        value if value in {part, f"not {part}"} else f"{part}={value}" for part, value in pairs
    )


def _having(labels: Attributes) -> str:
    if not labels.names:
        return "give the dataset a users table, or the queries labels"
    return f"the queries have the labels {', '.join(labels.names)}"
