"""Grouping of queries by a label, a condition, or a crossing of several."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn, UnknownName, WrongType
from recbias.core.queries.conditions import list_condition_columns, match_rows
from recbias.core.queries.uncertain_groups import parse_uncertain_label
from recbias.core.suggestions import suggest

JOIN = "&"
"""Joins the parts of a crossing: ``gender&race``."""

MAX_COMBINATIONS = 2**62

_Factor: TypeAlias = tuple[tuple[str, ...], Codes]
"""The values of a part of a crossing, and the codes of the rows."""

_COMPARISON = re.compile(r"(^|\s)([<>]=?|[=!]=)(\s|$)|\sin\s*[\[(]")
"""Matches a part that must be a condition, because hardly any column has such a name."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row.

    Args:
        names: The groups that occur, ``gender=F&age < 25``, in the natural order of their labels.
        codes: The group of each row, ``int32[n]``; -1 if a label is missing. If a row may be in
            several groups, the group of each membership, ``int32[m]``.
        values: The label of each part of each group: ``("F", "age < 25")``.
        rows: The row of each membership, ``int64[m]``; None if each row has one code.
    """

    by: str
    names: tuple[str, ...]
    codes: Codes
    values: tuple[tuple[str, ...], ...]
    rows: AnyArray | None = None

    @property
    def counts(self) -> AnyArray:
        """The number of rows in each group, ``int64[g]``."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    @property
    def missing(self) -> int:
        """The number of rows that are in no group."""
        return int(np.count_nonzero(self.codes < 0))

    @property
    def overlap(self) -> bool:
        """Whether a row is in several groups."""
        return self.rows is not None and len(np.unique(self.rows)) < len(self.rows)

    def find_rows(self, code: int) -> AnyArray:
        """Return the rows of a group, in order."""
        members = np.flatnonzero(self.codes == code)
        return members if self.rows is None else self.rows[members]

    def select(self, kept: AnyArray) -> Groups:
        """Return some of the groups, by code, in their order; the others' rows are in no group."""
        recode = np.full(len(self.names) + 1, -1, dtype=np.int32)
        recode[kept] = np.arange(len(kept))
        names = tuple(self.names[code] for code in kept)
        values = tuple(self.values[code] for code in kept)
        return replace(self, names=names, codes=recode[self.codes], values=values)

    def find_code(self, group: str) -> int:
        """Return the code of a group, by its name or its labels joined by ``&``.

        Raises:
            UnknownName: There is no such group.
        """
        labels = [JOIN.join(parts) for parts in self.values]
        for texts in (self.names, labels):
            if group in texts:
                return texts.index(group)
        message = f"no group of {self.by!r} is called {group!r}"
        raise UnknownName(message, remedy=suggest(group, labels))


def split_crossing(by: str) -> tuple[str, ...]:
    """Return the parts of a crossing; WrongType if one is blank.

    >>> split_crossing("gender & age < 25")
    ('gender', 'age < 25')
    """
    parts = tuple(text.strip() for text in by.split(JOIN))
    if not all(parts):
        message = f"{by!r} is not a label: a part of it is blank"
        raise WrongType(message, remedy="write a label, or several joined by &: gender&race")
    return parts


def validate_grouping(by: str) -> None:
    """Raise WrongType if a part of a crossing is neither a condition nor can be a column.

    Probabilities of groups, ``probability of p_female``, are not crossed.
    """
    if parse_uncertain_label(by) is not None:
        return
    for part in split_crossing(by):
        if _COMPARISON.search(part):
            list_condition_columns(part)


def list_part_columns(part: str, labels: Attributes) -> list[str]:
    """Return the columns that a part of a crossing names: itself, or those of its condition."""
    if (label := parse_uncertain_label(part)) is not None:
        return list(label.columns)
    if part in labels.names or part.isidentifier():
        return [part]
    return sorted(list_condition_columns(part))


def group_by(labels: Attributes, by: str, *, split_cells: bool = False) -> Groups:
    """Return the groups of rows by a label, a condition, or a crossing of several.

    A part is a column, which gives one group for each value, or a condition such as ``age < 25``,
    which gives two: ``age < 25`` and ``not age < 25``.

    >>> from recbias.core.dataset.vocabulary import Vocabulary
    >>> ids = Vocabulary.of(["1", "2", "3"])
    >>> table = pd.DataFrame({"gender": ["F", "M", None], "age": [18.0, 30.0, 40.0]})
    >>> groups = group_by(Attributes(ids, table, "query"), "gender & age < 25")
    >>> groups.names, groups.codes.tolist()
    (('gender=F&age < 25', 'gender=M&not age < 25'), [0, 1, -1])

    With ``split_cells``, a row whose cell is ``en|de`` is in the group of each of the two values.

    >>> table = pd.DataFrame({"language": ["en|de", "de", None]})
    >>> groups = group_by(Attributes(ids, table, "query"), "language", split_cells=True)
    >>> groups.names, groups.codes.tolist(), groups.rows.tolist()
    (('language=de', 'language=en'), [0, 1, 0, -1], [0, 0, 1, 2])

    Raises:
        UnknownColumn: The table has no such column.
        WrongType: A part is neither a column nor a condition.
        NothingLeft: No row has the label, or none meets a condition.
        OutOfRange: The labels have more combinations than can be numbered.
    """
    parts = split_crossing(by)
    rows = None
    factors = [_factorize_part(labels, part) for part in parts]
    if split_cells and any(_has_several_values(labels, part) for part in parts):
        rows, factors = _split_cells(labels, parts, factors)
    crossed = np.zeros(len(factors[0][1]), dtype=np.int64)
    complete = np.ones(crossed.size, dtype=bool)
    for values, codes in factors:
        complete &= codes >= 0
        crossed = crossed * max(len(values), 1) + np.maximum(codes, 0)
    if math.prod(max(len(values), 1) for values, _ in factors) > MAX_COMBINATIONS:
        message = f"the labels of {by!r} have too many combinations"
        raise OutOfRange(message, remedy="name fewer labels, or labels with fewer values")
    if not complete.any():
        remedy = "give the dataset a users table, or the queries labels"
        if labels.names:
            remedy = f"the queries have the labels {', '.join(labels.names)}"
        raise NothingLeft(f"no query carries the label {by!r}", remedy=remedy)
    present, dense = np.unique(crossed[complete], return_inverse=True)
    groups = np.full(crossed.size, -1, dtype=np.int32)
    groups[complete] = dense
    group_values = _decode_groups(present, [values for values, _ in factors])
    names = tuple(_name_group(parts, values) for values in group_values)
    return Groups(by, names, groups, group_values, rows)


def _has_several_values(labels: Attributes, part: str) -> bool:
    """Return whether a part of a crossing is a column in which a cell holds several values."""
    if part not in labels.frame.columns or labels.column(part).dtype.kind == "f":
        return False
    cells = labels.column(part).dropna().astype(str)
    return bool(cells.str.contains(SEPARATOR, regex=False).any())


def _split_cells(
    labels: Attributes, parts: tuple[str, ...], factors: list[_Factor]
) -> tuple[AnyArray, list[_Factor]]:
    """Return the row of each membership, and the factors with a code for each membership."""
    memberships = pd.DataFrame({"row": np.arange(len(labels.frame))})
    part_values = [values for values, _ in factors]
    for at, (part, (_, codes)) in enumerate(zip(parts, factors, strict=True)):
        members = pd.DataFrame({"row": np.arange(codes.size), at: codes})
        if _has_several_values(labels, part):
            membership = labels.membership(part)
            part_values[at], cells = membership.values, membership.matrix.nonzero()
            members = pd.DataFrame(dict(zip(("row", at), cells, strict=True)))
        memberships = memberships.merge(members, how="left", on="row")
    codes = memberships[[*range(len(parts))]].fillna(-1).to_numpy(dtype=np.int32)
    return memberships["row"].to_numpy(), [*zip(part_values, codes.T, strict=True)]


def _factorize_part(labels: Attributes, part: str) -> _Factor:
    if part in labels.frame.columns:
        return _factorize_column(labels.column(part))
    if part.isidentifier():
        message = f"no query carries the label {part!r}"
        raise UnknownColumn(message, remedy=suggest(part, labels.names))
    list_condition_columns(part)
    codes = np.full(len(labels.frame), -1, dtype=np.int32)
    codes[match_rows(part, labels)] = 0
    codes[match_rows(f"not ({part})", labels)] = 1
    if not (codes == 0).any():
        raise NothingLeft(f"no query meets {part!r}", remedy="correct or remove the condition")
    return (part, f"not {part}"), codes


def _factorize_column(column: pd.Series[Any]) -> _Factor:
    if column.dtype.kind == "f":
        codes, numbers = pd.factorize(column, sort=True)
        texts = [np.format_float_positional(number, trim="-") for number in numbers]
        return tuple(texts), codes.astype(np.int32)
    codes, values = pd.factorize(column.where(column.notna(), None), sort=False)
    texts = [str(value) for value in values]
    order = np.argsort(np.array(texts, dtype=object), kind="stable")
    rank = np.empty(order.size + 1, dtype=np.int32)
    rank[order], rank[-1] = np.arange(order.size), -1
    return tuple(texts[code] for code in order), rank[codes]


def _decode_groups(
    crossed: AnyArray, values: list[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    sizes = [max(len(part_values), 1) for part_values in values]
    columns = zip(values, np.unravel_index(crossed, sizes), strict=True)
    texts = [[part_values[code] for code in codes] for part_values, codes in columns]
    return tuple(zip(*texts, strict=True))


def _name_group(parts: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = zip(parts, values, strict=True)
    return JOIN.join(
        value if value in {part, f"not {part}"} else f"{part}={value}" for part, value in pairs
    )
