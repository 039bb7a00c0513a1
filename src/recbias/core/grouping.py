"""Conditions on the rows of a table, and groups of rows by labels, bins and conditions.

Users write conditions as ``age < 18 and gender == 'F'``. The language consists of names of
columns, numbers, text and lists, comparisons, ``and``, ``or``, ``not`` and ``in``, so a spec
cannot run code. A comparison with a missing cell is unknown, and ``and``, ``or`` and ``not``
follow Kleene's three-valued logic: ``age < 18 or gender == 'F'`` holds for a woman whose age is
missing, but neither ``age < 18`` nor ``not age < 18`` does.

Groups may also be known as probabilities: ``by: probability of p_female``.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.dataset import (
    SEPARATOR,
    AnyArray,
    Attributes,
    BoolArray,
    Codes,
    FloatArray,
    Vocabulary,
    count_distinct,
)
from recbias.core.errors import (
    Contradiction,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UnknownName,
    WrongType,
)
from recbias.core.text import suggest

_Kind: TypeAlias = Literal["number", "text", "missing"]

_MAX_SHOWN = 5
"""The number of different cells that a message names."""

_REMEDY = "write it as: age < 18 and gender == 'F' (also <=, >, >=, !=, in [..], or, not)"


@dataclass(frozen=True, eq=False)
class Operand:
    """One side of a comparison: a column, or one constant for all rows, of size 1.

    ``present`` is False for missing cells, whose value is arbitrary.
    """

    text: str
    kind: _Kind
    values: AnyArray
    present: BoolArray

    def select(self, rows: BoolArray) -> AnyArray:
        """Return the values of some rows, or the constant."""
        return self.values[rows] if self.values.size == rows.size else self.values


def _parse_number(node: ast.expr) -> float | None:
    """Return the number that an expression is, None if it is not one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _parse_number(node.operand)
        return None if value is None else -value
    is_number = isinstance(node, ast.Constant) and type(node.value) in {int, float}
    return float(ast.unparse(node)) if is_number else None


def _reject_mixed_types(a: Operand, b: Operand) -> None:
    """Raise WrongType if one operand is text and the other one is a number."""
    if a.kind != b.kind and "missing" not in {a.kind, b.kind}:
        for column, other in ((a, b), (b, a)):
            if column.kind == "text" and other.kind == "number":
                reject_text_cells(column)
        message = f"{a.text} ({a.kind}) and {b.text} ({b.kind}) cannot be compared"
        raise WrongType(message, remedy="put text in quotes, and numbers without")


def reject_text_cells(column: Operand) -> None:
    """Reject a column of numbers in which some cells are text, with these cells."""
    cells = pd.Series(column.values[column.present], dtype=object)
    texts = cells[pd.to_numeric(cells, errors="coerce").isna()]
    if texts.size == cells.size or texts.empty:
        return
    counts = texts.value_counts()
    shown = ", ".join(f"{text!r} ({n:,})" for text, n in counts.head(_MAX_SHOWN).items())
    more = ", ..." if counts.size > _MAX_SHOWN else ""
    message = f"{texts.size:,} of {cells.size:,} cells of {column.text} are not numbers"
    names = ", ".join(json.dumps(text) for text in counts.index[:_MAX_SHOWN])
    remedy = f"where the table is named, add missing: [{names}], or correct the table"
    raise WrongType(f"{message}: {shown}{more}", remedy=remedy)


def _make_operand(node: ast.expr, table: Attributes) -> Operand:
    """Return a side of a comparison; WrongType if it is not a column, number or text."""
    text = ast.unparse(node)
    present = np.ones(1, dtype=bool)
    if isinstance(node, ast.Name):
        return read_operand(node.id, table)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Operand(text, "text", np.array([node.value], dtype=object), present)
    number = _parse_number(node)
    if number is not None:
        return Operand(text, "number", np.array([number]), present)
    raise WrongType(f"{text!r} is not a column, number or text", remedy=_REMEDY)


def read_operand(name: str, table: Attributes) -> Operand:
    """Return a column as numbers or text; raises UnknownColumn, or WrongType of other cells."""
    try:
        column = table.column(name)
    except UnknownColumn as error:
        remedy = f"{error.remedy}; if {name} is text, put it in quotes: '{name}'"
        raise UnknownColumn(error.message, remedy=remedy) from error
    kind = _infer_kind(column)
    if kind == "number":
        values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = column.to_numpy(dtype=object)
    return Operand(name, kind, values, column.notna().to_numpy(dtype=bool))


def _infer_kind(column: pd.Series[Any]) -> _Kind:
    inferred = pd.api.types.infer_dtype(column.astype(object), skipna=True)
    if inferred == "empty":
        return "missing"
    if inferred in {"integer", "floating", "mixed-integer-float", "boolean"}:
        return "number"
    if inferred == "string":
        return "text"
    raise WrongType(f"the column {column.name!r} holds {inferred} cells, not text or numbers")


_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def list_condition_columns(condition: str) -> set[str]:
    """Return the columns that a condition names, after checking it without a table.

    >>> sorted(list_condition_columns("age < 18 and gender in ['F', 'M']"))
    ['age', 'gender']

    Raises:
        WrongType: The text is not a condition.
    """
    tree = parse_condition(condition)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    no_rows = pd.DataFrame(columns=sorted(names), dtype=object)
    match_rows(condition, Attributes(Vocabulary.of([]), no_rows))
    return names


def match_rows(condition: str, table: Attributes) -> BoolArray:
    """Return which rows of the table meet the condition, ``bool[n]``.

    >>> from recbias.core.dataset import Vocabulary
    >>> users = Attributes(Vocabulary.of(["1", "2"]), pd.DataFrame({"age": [1.0, 25.0]}))
    >>> match_rows("age < 18", users).tolist()
    [True, False]

    Raises:
        WrongType: The text is not a condition, or compares text with a number.
        UnknownColumn: The table has no such column.
    """
    truth = _evaluate(parse_condition(condition), table)
    return np.asarray(truth.fillna(value=False), dtype=bool)


def parse_condition(condition: str) -> ast.expr:
    """Return the syntax tree of a condition; raises WrongType if it has a wrong syntax."""
    try:
        return ast.parse(condition.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise WrongType(f"{condition!r} is not a condition", remedy=_REMEDY) from error


_Truth: TypeAlias = Any
"""The nullable truth values of the rows (``BooleanArray``), which pandas combines as Kleene."""


def _evaluate(node: ast.expr, table: Attributes) -> _Truth:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_evaluate(node.operand, table)
    if isinstance(node, ast.BoolOp):
        combine = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        return reduce(combine, [_evaluate(term, table) for term in node.values])
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        pairs = zip(node.ops, sides, sides[1:], strict=False)
        return reduce(operator.and_, [_compare(*pair, table) for pair in pairs])
    raise WrongType(f"{ast.unparse(node)!r} is not a condition", remedy=_REMEDY)


def _compare(symbol: ast.cmpop, left: ast.expr, right: ast.expr, table: Attributes) -> _Truth:
    if not any(isinstance(side, ast.Name) for side in (left, right)):
        message = f"neither {ast.unparse(left)} nor {ast.unparse(right)} is a column"
        raise WrongType(message, remedy=_REMEDY)
    if isinstance(symbol, ast.In | ast.NotIn):
        inside = _match_list(_make_operand(left, table), right, table)
        return inside if isinstance(symbol, ast.In) else ~inside
    compare = _COMPARISONS.get(type(symbol))
    if compare is None:
        message = f"{ast.unparse(left)!r} is compared by an unknown operator"
        raise WrongType(message, remedy=_REMEDY)
    a, b = _make_operand(left, table), _make_operand(right, table)
    _reject_mixed_types(a, b)
    for column, other, after in ((a, b, (ast.LtE, ast.Gt)), (b, a, (ast.Lt, ast.GtE))):
        if other.kind == "number" and other.text not in table.names:
            _require_codes(table, column.text, other.values + isinstance(symbol, after))
    present = np.broadcast_to(a.present & b.present, len(table.ids))
    true = np.zeros(present.size, dtype=bool)
    true[present] = compare(a.select(present), b.select(present))
    return pd.arrays.BooleanArray(true, ~present)


def _require_codes(table: Attributes, column: str, edges: Iterable[float] | None) -> None:
    """Raise WrongType if a column of codes is divided where no code begins; None: anywhere."""
    if (named := table.value_labels.get(column)) is None:
        return
    codes = sorted(map(float, named))
    wrong = [edge for edge in edges or () if edge not in codes]
    if wrong or edges is None:
        meanings = ", ".join(f"{code} means {label}" for code, label in named.items())
        problem = f"no code begins at {wrong[0]:g}" if wrong else "codes have no quantiles"
        shown = ", ".join(f"{code:g}" for code in codes[1:])
        remedy = f"write {column} in [{shown}], {column} < {codes[1]:g} or {column} alone"
        raise WrongType(f"{column!r} holds codes, {meanings}: {problem}", remedy=remedy)


def _match_list(column: Operand, choices: ast.expr, table: Attributes) -> _Truth:
    if not isinstance(choices, ast.List | ast.Tuple):
        message = f"{column.text} in {ast.unparse(choices)}: expected a list after in"
        raise WrongType(message, remedy="write it as: gender in ['F', 'M']")
    if any(isinstance(choice, ast.Name) for choice in choices.elts):
        raise WrongType(f"{ast.unparse(choices)} names a column", remedy="put text in quotes")
    constants = [_make_operand(choice, table) for choice in choices.elts]
    for constant in constants:
        _reject_mixed_types(column, constant)
    values = [constant.values[0] for constant in constants]
    _require_codes(table, column.text, values)
    return pd.arrays.BooleanArray(
        pd.Series(column.values).isin(values).to_numpy(), ~column.present
    )


Assumption: TypeAlias = Literal["probability", "weight"]
"""What the metric is independent of: given the group, of its probability (``probability``); given
the probability, of the group (``weight``)."""

_TOLERANCE = 0.01
"""How far a sum of probabilities may be from 1: columns are often rounded to two digits."""

_LEAST_EXPECTED = 2.0
"""The least expected number of queries of a group: one query has no variance."""

_EXAMPLE = "by: probability of p_female, or by: probability of p_f + p_m + p_x"

_NOTATION = re.compile(r"^\s*(probability|weight)\s+of(\s+(?P<columns>.*))?$", re.DOTALL)


class _UncertainLabel(NamedTuple):
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


def parse_uncertain_label(by: str) -> _UncertainLabel | None:
    """Return the columns of ``probability of a + b``, None if the text is another grouping.

    >>> parse_uncertain_label("weight of p_f + p_m")
    _UncertainLabel(assumption='weight', columns=('p_f', 'p_m'))
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
        raise WrongType(f"{by!r} names no probabilities: {fault}", remedy=f"write {_EXAMPLE}")
    if any("&" in column for column in columns):
        message = f"{by!r} crosses probabilities with another label"
        remedy = "give a column for each combination, or select queries by `where`"
        raise WrongType(message, remedy=remedy)
    assumption: Assumption = "weight" if match[1] == "weight" else "probability"
    return _UncertainLabel(assumption, columns)


def read_uncertain_groups(labels: Attributes, by: str) -> UncertainGroups:
    """Return the groups of ``probability of a + b``.

    A single column has the two groups ``a`` and ``not a``. Several columns add up to 1 for each
    query, to two digits; they are divided by their sum.

    >>> import pandas as pd
    >>> from recbias.core.dataset import Vocabulary
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
        raise WrongType(f"{by!r} names no probabilities", remedy=f"write {_EXAMPLE}")
    row, rows = ("item", "items") if labels.kind == "item" else ("query", "queries")
    columns = np.stack([_read_probabilities(labels, row, name) for name in label.columns], axis=1)
    names = label.columns
    if len(names) == 1:
        columns, names = np.hstack([columns, 1.0 - columns]), (names[0], f"not {names[0]}")
    columns[np.isnan(columns).any(axis=1)] = np.nan
    sums = columns.sum(axis=1)
    if not np.isfinite(sums).any():
        remedy = f"give the table of the {rows} probabilities"
        raise NothingLeft(f"no {row} carries the label {by!r}", remedy=remedy)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > _TOLERANCE + 1e-9)
    if wrong.size:
        first = f"{sums[wrong[0]]:.4g} for {labels.kind} {labels.ids.ids[wrong[0]]}"
        message = f"{' + '.join(names)} is not 1 for {wrong.size:,} {rows}, such as {first}"
        raise OutOfRange(message, remedy="add a column for the remaining groups")
    groups = UncertainGroups(by, names, columns / sums[:, None], label.assumption)
    _reject_uninformative(groups, row, rows)
    return groups


def _read_probabilities(labels: Attributes, row: str, name: str) -> FloatArray:
    if name not in labels.names:
        message = f"no {row} carries the label {name!r}"
        raise UnknownColumn(message, remedy=suggest(name, labels.names))
    values = labels.numbers(name)
    outside = np.flatnonzero((values < 0.0) | (values > 1.0))
    if outside.size:
        first = f"{values[outside[0]]:g} of {labels.kind} {labels.ids.ids[outside[0]]}"
        found = f"{outside.size:,} of {values.size:,} values outside 0 to 1, such as {first}"
        remedy = "divide percentages by 100, or correct the table"
        raise OutOfRange(f"{name!r} has {found}", remedy=remedy)
    return values


def _reject_uninformative(groups: UncertainGroups, row: str, rows: str) -> None:
    """Raise if the probabilities do not tell the groups apart."""
    known: AnyArray = groups.known
    expected = known.sum(axis=0)
    if np.ptp(known, axis=0).max() < 1e-9:
        message = f"every {row} has the same {groups.names[0]}, {known[0, 0]:.4g}"
        remedy = f"give probabilities that differ between {rows}, or remove by"
        raise NothingLeft(f"{message}, which does not tell the groups apart", remedy=remedy)
    if expected.min() < _LEAST_EXPECTED:
        name = groups.names[int(expected.argmin())]
        message = f"{expected.min():.2g} {rows} are expected in {name}, fewer than two"
        raise NothingLeft(message, remedy=f"use more {rows}, or add its column to another one")
    singular = np.linalg.svd(known, compute_uv=False)
    if groups.assumption == "probability" and singular[-1] < 1e-6 * singular[0]:
        message = f"the columns of {groups.by!r} depend on each other: their means are undefined"
        remedy = f"merge columns, or write weight of {' + '.join(groups.names)}"
        raise Contradiction(message, remedy=remedy)


JOIN = "&"
"""Joins the parts of a crossing: ``gender&race``."""

_QUANTILES = re.compile(r"(?P<column>.+?)\s+in\s+(?P<n>\d+)\s+quantiles")
"""Matches a label whose values are divided into groups of equal size: ``age in 4 quantiles``."""

NAMED = "named."
"""Begins the fact of a stage that has another name for a part of a group."""

_MOST_QUANTILES = 100

_NUMBER = r"\s*-?\d+(?:\.\d*)?\s*"
_EDGES = re.compile(
    rf"(?P<column>[^\W\d]\w*)\s+in\s*[\[(](?P<edges>{_NUMBER}(?:,{_NUMBER})*),?[\])]"
)
"""Matches a label whose numbers are divided at edges: ``age in [18, 25]``."""

_RANGE = re.compile(
    r"(quantile (?P<rank>\d+) of \d+|(?P<under>under |<)?(?P<low>-?\d+(\.\d+)?)"
    r"(-\d+(\.\d+)?| to (under )?-?\d+(\.\d+)?|\+)?)"
)
"""Matches a number or a range, as bins are named: ``under 18``, ``18-24``, ``50+``."""

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
        value_labels: What codes mean, by column and code.
    """

    by: str
    names: tuple[str, ...]
    codes: Codes
    values: tuple[tuple[str, ...], ...]
    rows: AnyArray | None = None
    value_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

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
        return self.rows is not None and count_distinct(self.rows) < len(self.rows)

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

        Codes may be written as what they mean.

        Raises:
            UnknownName: There is no such group.
        """
        parts = split_crossing(self.by)
        shown = [
            [
                self.value_labels.get(part, {}).get(value, value)
                for part, value in zip(parts, each, strict=True)
            ]
            for each in self.values
        ]
        labels = [JOIN.join(each) for each in shown]
        plain, full = map(JOIN.join, self.values), (_name_group(parts, each) for each in shown)
        for texts in (self.names, [*plain], labels, [*full]):
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

    Raises:
        OutOfRange: The edges of bins do not increase, or the number of quantiles is not 2 to 100.
    """
    if parse_uncertain_label(by) is not None:
        return
    for part in split_crossing(by):
        if _parse_bins(part) is None and _COMPARISON.search(part):
            list_condition_columns(part)


class _Bins(NamedTuple):
    """A label whose numbers are divided, at the given edges or into so many quantiles."""

    column: str
    edges: tuple[float, ...]
    n_quantiles: int = 0


def _parse_bins(part: str) -> _Bins | None:
    """Return the bins of ``age in [18, 25]`` and ``age in 4 quantiles``, None for other parts."""
    if match := _QUANTILES.fullmatch(part):
        column, n = match["column"], int(match["n"][:9])
        if not 2 <= n <= _MOST_QUANTILES:
            message = f"{part!r} must have 2 to {_MOST_QUANTILES} quantiles"
            raise OutOfRange(message, remedy=f"write {column} in 4 quantiles")
        return _Bins(column, (), n)
    if (match := _EDGES.fullmatch(part)) is None:
        return None
    column, edges = match["column"], [float(text) for text in match["edges"].split(",")]
    if any(high <= low for low, high in pairwise(edges)):
        message = f"the edges of the bins of {column!r} do not increase: [{match['edges']}]"
        remedy = (
            f"write them in order: {column} in [18, 25, 50]; for one group of some values, "
            f"{column} == 18 or {column} == 25"
        )
        raise OutOfRange(message, remedy=remedy)
    return _Bins(column, tuple(edges))


def order_labels(labels: Sequence[str]) -> list[int] | None:
    """Return the positions of labels that are numbers or ranges in their order, else None.

    >>> order_labels(["50+", "18-24", "under 18"]), order_labels(["F", "M"])
    ([2, 1, 0], None)
    """
    matches = [_RANGE.fullmatch(label) for label in labels]
    keys = [(float(m["rank"] or m["low"]), not m["under"]) for m in matches if m is not None]
    if len(keys) < len(labels):
        return None
    return sorted(range(len(labels)), key=keys.__getitem__)


def list_part_columns(part: str, labels: Attributes) -> list[str]:
    """Return the columns that a part of a crossing names: itself, or those of its condition."""
    if (label := parse_uncertain_label(part)) is not None:
        return list(label.columns)
    if part in labels.names or part.isidentifier():
        return [part]
    if (bins := _parse_bins(part)) is not None:
        return [bins.column]
    return sorted(list_condition_columns(part))


def group_by(labels: Attributes, by: str, *, split_cells: bool = False) -> Groups:
    """Return the groups of rows by a label, its bins, a condition, or a crossing of several.

    A part is a column, which gives one group for each value, or a condition such as ``age < 25``,
    which gives two: ``age < 25`` and ``not age < 25``. ``age in [18, 25]`` gives the bins of a
    column of numbers, x < 18, 18 ≤ x < 25 and 25 ≤ x, and ``age in 4 quantiles`` as many groups of
    about the same size; equal numbers are in one group, so that some quantiles may be empty. A
    list of text, ``country in ['FR', 'DE']``, is a condition.

    >>> from recbias.core.dataset import Vocabulary
    >>> ids = Vocabulary.of(["1", "2", "3"])
    >>> table = pd.DataFrame({"gender": ["F", "M", None], "age": [18.0, 30.0, 40.0]})
    >>> groups = group_by(Attributes(ids, table, "query"), "gender & age < 25")
    >>> groups.names, groups.codes.tolist()
    (('gender=F&age < 25', 'gender=M&not age < 25'), [0, 1, -1])
    >>> group_by(Attributes(ids, table, "query"), "age in [18, 25, 35]").names
    ('age=18-24', 'age=25-34', 'age=35+')

    With ``split_cells``, a row whose cell is ``en|de`` is in the group of each of the two values.

    >>> table = pd.DataFrame({"language": ["en|de", "de", None]})
    >>> groups = group_by(Attributes(ids, table, "query"), "language", split_cells=True)
    >>> groups.names, groups.codes.tolist(), groups.rows.tolist()
    (('language=de', 'language=en'), [0, 1, 0, -1], [0, 0, 1, 2])

    Raises:
        UnknownColumn: The table has no such column.
        WrongType: A part is neither a column nor a condition.
        NothingLeft: No row has the label, or none meets a condition.
    """
    parts = split_crossing(by)
    rows = None
    factors = [_factorize_part(labels, part) for part in parts]
    if split_cells and any(_has_several_values(labels, part) for part in parts):
        rows, factors = _split_cells(labels, parts, factors)
    crossed = pd.DataFrame({at: codes for at, (_, codes) in enumerate(factors)})
    present = crossed[(crossed >= 0).all(axis=1)]
    if present.empty:
        remedy = "give the dataset a users table, or the queries labels"
        if labels.names:
            remedy = f"the queries have the labels {', '.join(labels.names)}"
        raise NothingLeft(f"no query carries the label {by!r}", remedy=remedy)
    codes = np.full(len(crossed), -1, dtype=np.int32)
    keys = [*range(len(parts))]
    codes[present.index] = present.groupby(keys).ngroup()
    groups = present.drop_duplicates().sort_values(keys).to_numpy()
    texts = [
        [values[code] for code in of_part]
        for (values, _), of_part in zip(factors, groups.T, strict=True)
    ]
    values = tuple(zip(*texts, strict=True))
    bins = [None if part in labels.names else _parse_bins(part) for part in parts]
    shown = [part if each is None else each.column for part, each in zip(parts, bins, strict=True)]
    names = tuple(_name_group(shown, labels_of_group) for labels_of_group in values)
    return Groups(by, names, codes, values, rows, labels.value_labels)


def describe_quantiles(labels: Attributes, by: str) -> dict[str, str]:
    """Return each quantile of a crossing with its ends in the data, by the part of a name.

    >>> from recbias.core.dataset import Vocabulary
    >>> table = pd.DataFrame({"age": [18.0, 24.0, 30.0, 30.0]})
    >>> ids = Vocabulary.of(["1", "2", "3", "4"])
    >>> describe_quantiles(Attributes(ids, table, "query"), "age in 2 quantiles")
    {'age=quantile 1 of 2': 'age=18 to 24 (1 of 2)', 'age=quantile 2 of 2': 'age=30 (2 of 2)'}
    """
    described = {}
    for part in split_crossing(by):
        bins = None if part in labels.names else _parse_bins(part)
        if bins is None or not bins.n_quantiles:
            continue
        names, codes = _factorize_bins(labels, bins)
        numbers = np.asarray(read_operand(bins.column, labels).values, dtype=np.float64)
        form = ".0f" if (numbers[codes >= 0] % 1 == 0).all() else ".4g"
        for code in np.unique(codes[codes >= 0]).tolist():
            own = numbers[codes == code]
            ends = dict.fromkeys(f"{end:{form}}" for end in (own.min(), own.max()))
            text = f"{' to '.join(ends)} ({code + 1} of {len(names)})"
            described[f"{bins.column}={names[code]}"] = f"{bins.column}={text}"
    return described


def _has_several_values(labels: Attributes, part: str) -> bool:
    """Return whether a part of a crossing is a column in which a cell holds several values."""
    if part not in labels.frame.columns or labels.column(part).dtype.kind == "f":
        return False
    return any(SEPARATOR in str(cell) for cell in labels.column(part).dropna().unique())


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
    if (bins := _parse_bins(part)) is not None:
        return _factorize_bins(labels, bins)
    list_condition_columns(part)
    codes = np.full(len(labels.frame), -1, dtype=np.int32)
    codes[match_rows(part, labels)] = 0
    codes[match_rows(f"not ({part})", labels)] = 1
    if not (codes == 0).any():
        raise NothingLeft(f"no query meets {part!r}", remedy="correct or remove the condition")
    return (part, f"not {part}"), codes


def _factorize_bins(labels: Attributes, bins: _Bins) -> _Factor:
    operand = read_operand(bins.column, labels)
    _require_codes(labels, bins.column, bins.edges or None)
    if operand.kind == "text":
        reject_text_cells(operand)
        message = f"{bins.column!r} holds text, and only numbers have bins and quantiles"
        remedy = f"group by its values, by: {bins.column}, or put text in quotes: ['F', 'M']"
        raise WrongType(message, remedy=remedy)
    known, n = np.flatnonzero(operand.present), bins.n_quantiles
    codes, values = np.full(operand.present.size, -1, np.int32), operand.values[known]
    edges = np.array(bins.edges)
    if n and known.size:
        edges = np.quantile(values.astype(np.float64), np.arange(1, n) / n, method="lower")
    codes[known] = np.searchsorted(edges, values, side="left" if n else "right")
    is_whole = bool((np.concatenate([edges, values]) % 1 == 0).all())
    names = [f"quantile {at} of {n}" for at in range(1, n + 1)]
    return tuple(names or _name_bins(edges, is_whole)), codes


def _name_bins(edges: AnyArray, is_whole: bool) -> Iterator[str]:  # noqa: FBT001
    """Yield ``under 18``, ``18-24``, ``25+``; of other than whole numbers ``2 to under 2.5``."""
    texts = [np.format_float_positional(edge, trim="-") for edge in edges]
    yield f"under {texts[0]}"
    for (low, high), (first, end) in zip(pairwise(edges), pairwise(texts), strict=True):
        joint = "-" if low >= 0 else " to "
        last = f"{first}{joint}{high - 1:.0f}" if high - low > 1 else first
        yield last if is_whole else f"{first} to under {end}"
    yield f"{texts[-1]}+"


def _factorize_column(column: pd.Series[Any]) -> _Factor:
    if column.dtype.kind == "f":
        codes, numbers = pd.factorize(column, sort=True)
        texts = [np.format_float_positional(number, trim="-") for number in numbers]
        return tuple(texts), codes.astype(np.int32)
    codes, values = pd.factorize(column.where(column.notna(), None), sort=False)
    texts = [str(value) for value in values]
    order = np.array(order_labels(texts) or sorted(range(len(texts)), key=texts.__getitem__), int)
    rank = np.empty(order.size + 1, dtype=np.int32)
    rank[order], rank[-1] = np.arange(order.size), -1
    return tuple(texts[code] for code in order), rank[codes]


def _name_group(parts: Sequence[str], values: Sequence[str]) -> str:
    pairs = zip(parts, values, strict=True)
    return JOIN.join(
        value if value in {part, f"not {part}"} else f"{part}={value}" for part, value in pairs
    )
