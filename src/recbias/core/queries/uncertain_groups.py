"""Groups of queries that are known as probabilities: ``by: probability of p_female``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import (
    Contradiction,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UnknownName,
    WrongType,
)
from recbias.core.suggestions import suggest

Assumption: TypeAlias = Literal["probability", "weight"]
"""What the metric is independent of: given the group, of its probability (``probability``); given
the probability, of the group (``weight``)."""

TOLERANCE = 0.01
"""How far a sum of probabilities may be from 1: columns are often rounded to two digits."""

LEAST_EXPECTED = 2.0
"""The least expected number of queries of a group: one query has no variance."""

EXAMPLE = "by: probability of p_female, or by: probability of p_f + p_m + p_x"

_NOTATION = re.compile(r"^\s*(probability|weight)\s+of(\s+(?P<columns>.*))?$", re.DOTALL)


class UncertainLabel(NamedTuple):
    """The columns of probabilities that a grouping names, and what it assumes."""

    assumption: Assumption
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class UncertainGroups:
    """The probability of each group for each query.

    Args:
        names: The groups: the columns, or ``p_female`` and ``not p_female`` for a single column.
        probabilities: ``float64[n, g]``, with the sum 1; NaN for a query without a probability.
    """

    by: str
    names: tuple[str, ...]
    probabilities: FloatArray
    assumption: Assumption

    @property
    def missing(self) -> int:
        """The number of queries without a probability."""
        return int(np.count_nonzero(np.isnan(self.probabilities[:, 0])))

    @property
    def known(self) -> FloatArray:
        """The probabilities of the queries that have some, ``float64[m, g]``."""
        return self.probabilities[~np.isnan(self.probabilities[:, 0])]

    @property
    def information(self) -> FloatArray:
        """The share of the variance of each label that its probability explains, ``float64[g]``.

            r_g = Var(p_g) / ( π_g (1 - π_g) ),    π_g the mean of p_g

        It is 1 for certain labels and 0 if all queries have the same probability.
        """
        mean = self.known.mean(axis=0)
        return np.asarray(self.known.var(axis=0) / (mean * (1.0 - mean)))

    def find_code(self, group: str) -> int:
        """Return the position of a group; UnknownName if there is none of this name."""
        if group in self.names:
            return self.names.index(group)
        message = f"no group of {self.by!r} is called {group!r}"
        raise UnknownName(message, remedy=suggest(group, self.names))


def parse_uncertain_label(by: str) -> UncertainLabel | None:
    """Return the columns of ``probability of a + b``, None if the text is another grouping.

    >>> parse_uncertain_label("weight of p_f + p_m")
    UncertainLabel(assumption='weight', columns=('p_f', 'p_m'))
    >>> parse_uncertain_label("age < 25")

    Raises:
        WrongType: A column is blank or named twice, or the groups are crossed with others.
    """
    match = _NOTATION.match(by)
    if match is None:
        return None
    columns = tuple(text.strip() for text in (match["columns"] or "").split("+"))
    if not all(columns) or len({*columns}) < len(columns):
        fault = "two columns are the same" if all(columns) else "a column is blank"
        raise WrongType(f"{by!r} names no probabilities: {fault}", remedy=f"write {EXAMPLE}")
    if any("&" in column for column in columns):
        message = f"{by!r} crosses probabilities with another label"
        remedy = "give a column for each combination, or select queries by `where`"
        raise WrongType(message, remedy=remedy)
    assumption: Assumption = "weight" if match[1] == "weight" else "probability"
    return UncertainLabel(assumption, columns)


def read_uncertain_groups(labels: Attributes, by: str) -> UncertainGroups:
    """Return the groups of ``probability of a + b``.

    A single column has the two groups ``a`` and ``not a``. Several columns add up to 1 for each
    query, to two digits; they are divided by their sum.

    >>> import pandas as pd
    >>> from recbias.core.dataset.vocabulary import Vocabulary
    >>> ids = Vocabulary.of(["1", "2", "3", "4", "5", "6"])
    >>> table = pd.DataFrame({"p": [0.9, 0.8, 0.3, 0.1, 0.2, None]})
    >>> groups = read_uncertain_groups(Attributes(ids, table, "query"), "probability of p")
    >>> groups.names, groups.missing, groups.probabilities.round(1).tolist()[:2]
    (('p', 'not p'), 1, [[0.9, 0.1], [0.8, 0.2]])

    Raises:
        UnknownColumn: A column is absent or not numeric.
        OutOfRange: A value is not within 0 and 1, or columns do not add up to 1.
        NothingLeft: No query has a probability, or the probabilities of all queries are equal.
        Contradiction: The columns do not tell the groups apart.
    """
    label = parse_uncertain_label(by)
    if label is None:
        raise WrongType(f"{by!r} names no probabilities", remedy=f"write {EXAMPLE}")
    columns = np.stack([_read_column(labels, name) for name in label.columns], axis=1)
    names = label.columns
    if len(names) == 1:
        columns, names = np.hstack([columns, 1.0 - columns]), (names[0], f"not {names[0]}")
    columns[np.isnan(columns).any(axis=1)] = np.nan
    groups = UncertainGroups(by, names, columns, label.assumption)
    if not groups.known.size:
        remedy = f"give the table of the {_name_rows(labels, 2)} probabilities"
        raise NothingLeft(f"no {_name_rows(labels, 1)} carries the label {by!r}", remedy=remedy)
    sums = columns.sum(axis=1)
    _reject_wrong_sum(labels, label.columns, sums)
    groups = UncertainGroups(by, names, columns / sums[:, None], label.assumption)
    _reject_uninformative(groups, labels)
    return groups


def _read_column(labels: Attributes, name: str) -> FloatArray:
    if name not in labels.names:
        message = f"no {_name_rows(labels, 1)} carries the label {name!r}"
        raise UnknownColumn(message, remedy=suggest(name, labels.names))
    try:
        values = labels.numbers(name)
    except UnknownColumn as error:
        remedy = error.remedy or "name a column of probabilities, or correct the table"
        raise UnknownColumn(error.message, remedy=remedy) from error
    outside = (values < 0.0) | (values > 1.0)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        n, value = int(np.count_nonzero(outside)), f"{values[row]:g} of {_name_row(labels, row)}"
        message = f"{name!r} has {n:,} of {values.size:,} values outside 0 to 1, such as {value}"
        raise OutOfRange(message, remedy="divide percentages by 100, or correct the table")
    return values


def _reject_wrong_sum(labels: Attributes, names: tuple[str, ...], sums: FloatArray) -> None:
    is_wrong = np.abs(sums - 1.0) > TOLERANCE + 1e-9
    if is_wrong.any():
        row = int(np.flatnonzero(is_wrong)[0])
        text = f"{sums[row]:.4g} for {_name_row(labels, row)}"
        n = int(np.count_nonzero(is_wrong))
        message = f"{' + '.join(names)} is not 1 for {n:,} {_name_rows(labels, 2)}, such as {text}"
        raise OutOfRange(message, remedy="add a column for the remaining groups")


def _name_rows(labels: Attributes, n: int) -> str:
    """Return what has a probability: items, or queries, which may be users."""
    if labels.kind == "item":
        return "item" if n == 1 else "items"
    return "query" if n == 1 else "queries"


def _name_row(labels: Attributes, row: int) -> str:
    return f"{labels.kind} {labels.ids.ids[row]}"


def _reject_uninformative(groups: UncertainGroups, labels: Attributes) -> None:
    known: AnyArray = groups.known
    expected = known.sum(axis=0)
    if np.ptp(known, axis=0).max() < 1e-9:
        message = (
            f"every {_name_rows(labels, 1)} has the same {groups.names[0]}, {known[0, 0]:.4g}"
        )
        remedy = f"give probabilities that differ between {_name_rows(labels, 2)}, or remove by"
        raise NothingLeft(f"{message}, which does not tell the groups apart", remedy=remedy)
    if expected.min() < LEAST_EXPECTED:
        name = groups.names[int(expected.argmin())]
        message = (
            f"{expected.min():.2g} {_name_rows(labels, 2)} are expected in {name}, fewer than two"
        )
        raise NothingLeft(
            message, remedy=f"use more {_name_rows(labels, 2)}, or add its column to another one"
        )
    singular = np.linalg.svd(known, compute_uv=False)
    if groups.assumption == "probability" and singular[-1] < 1e-6 * singular[0]:
        message = f"the columns of {groups.by!r} depend on each other: their means are undefined"
        remedy = f"merge columns, or write weight of {' + '.join(groups.names)}"
        raise Contradiction(message, remedy=remedy)
