"""Conditions on a table, as users write them: ``age < 18 and gender == 'F'``.

A condition is parsed to a tree and worked out node by node: names of columns, numbers, text and
lists, compared and joined by ``and``, ``or``, ``not`` and ``in``. There is nothing else in the
language, so a spec cannot run code through it.

A missing cell makes a comparison neither true nor false, and the joins follow Kleene's logic of
three values: ``age < 18 or gender == 'F'`` holds for a woman whose age is missing, and neither
``age < 18`` nor ``not age < 18`` holds for her.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import OutOfRange, UnknownColumn, WrongType

Kind: TypeAlias = Literal["number", "text", "missing"]

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

REMEDY = "write it as: age < 18 and gender == 'F' (also <=, >, >=, !=, in [..], or, not)"


def list_condition_columns(condition: str) -> set[str]:
    """Return the columns that a condition names; what is no condition is refused without a table.

    >>> sorted(list_condition_columns("age < 18 and gender in ['F', 'M']"))
    ['age', 'gender']

    Raises:
        WrongType: It is not a condition.
        OutOfRange: It asks for numbers above one and below a smaller one.
    """
    tree = _parse(condition)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    no_rows = pd.DataFrame(columns=sorted(names), dtype=object)
    match_rows(condition, Attributes(Vocabulary.of([]), no_rows))
    for node in ast.walk(tree):
        _refuse_reversed(node)
    return names


def match_rows(condition: str, table: Attributes) -> BoolArray:
    """Return which rows of the table meet the condition, ``bool[n]``.

    >>> from recbias.core.dataset.vocabulary import Vocabulary
    >>> users = Attributes(Vocabulary.of(["1", "2"]), pd.DataFrame({"age": [1.0, 25.0]}))
    >>> match_rows("age < 18", users).tolist()
    [True, False]

    Raises:
        WrongType: It is not a condition, or compares text with a number.
        UnknownColumn: The table has no such column.
    """
    try:
        return _evaluate(_parse(condition), table).yes
    except RecursionError as error:
        raise WrongType("the condition is nested too deeply", remedy=REMEDY) from error


@dataclass(frozen=True, eq=False)
class _Truth:
    """For which rows a condition holds, and for which it does not; for the others it is open."""

    yes: BoolArray
    no: BoolArray


@dataclass(frozen=True, eq=False)
class _Operand:
    """One side of a comparison: a column, or one constant for all rows.

    ``values`` are ``float64[n or 1]`` or ``object[n or 1]``; what stands at missing cells does
    not matter.
    """

    written: str
    kind: Kind
    values: AnyArray
    known: BoolArray


def _parse(condition: str) -> ast.expr:
    try:
        return ast.parse(condition.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise WrongType(f"{condition!r} is not a condition", remedy=REMEDY) from error


def _evaluate(node: ast.expr, table: Attributes) -> _Truth:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        denied = _evaluate(node.operand, table)
        return _Truth(denied.no, denied.yes)
    if isinstance(node, ast.BoolOp):
        parts = [_evaluate(each, table) for each in node.values]
        return _all(parts) if isinstance(node.op, ast.And) else _any(parts)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        pairs = zip(node.ops, sides, sides[1:], strict=False)
        return _all([_compare(how, left, right, table) for how, left, right in pairs])
    raise WrongType(f"{ast.unparse(node)!r} is not a condition", remedy=REMEDY)


def _refuse_reversed(node: ast.AST) -> None:
    """Refuse a range that holds no number: ``30 < age < 18``, ``age > 30 and age < 18``."""
    if isinstance(node, ast.Compare):
        comparisons = [node]
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        comparisons = [part for part in node.values if isinstance(part, ast.Compare)]
    else:
        return
    ranges: dict[str, tuple[float, float]] = {}
    for column, low, high in (limit for part in comparisons for limit in _limits(part)):
        lowest, highest = ranges.get(column, (-np.inf, np.inf))
        ranges[column] = lowest, highest = max(lowest, low), min(highest, high)
        if lowest > highest:
            found = f"no {column} is above {lowest:g} and below {highest:g}"
            remedy = f"write the smaller number first: {highest:g} < {column} < {lowest:g}"
            raise OutOfRange(found, remedy=remedy)


def _limits(comparison: ast.Compare) -> Iterator[tuple[str, float, float]]:
    """Yield each column that is compared with a number, and the least and greatest it may be."""
    sides = [comparison.left, *comparison.comparators]
    for how, left, right in zip(comparison.ops, sides, sides[1:], strict=False):
        rising, falling = isinstance(how, (ast.Lt, ast.LtE)), isinstance(how, (ast.Gt, ast.GtE))
        for column, number, is_below in ((left, right, rising), (right, left, falling)):
            if (rising or falling) and isinstance(column, ast.Name):
                value = _number(number)
                if value is not None:
                    yield (column.id, -np.inf, value) if is_below else (column.id, value, np.inf)


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(str(node.value)) if not isinstance(node.value, bool) else None
    return None


def _all(parts: list[_Truth]) -> _Truth:
    yes = np.logical_and.reduce([each.yes for each in parts])
    return _Truth(yes, np.logical_or.reduce([each.no for each in parts]))


def _any(parts: list[_Truth]) -> _Truth:
    yes = np.logical_or.reduce([each.yes for each in parts])
    return _Truth(yes, np.logical_and.reduce([each.no for each in parts]))


def _compare(how: ast.cmpop, left: ast.expr, right: ast.expr, table: Attributes) -> _Truth:
    if not any(isinstance(each, ast.Name) for each in (left, right)):
        found = f"neither {ast.unparse(left)} nor {ast.unparse(right)} is a column"
        raise WrongType(found, remedy=REMEDY)
    if isinstance(how, (ast.In, ast.NotIn)):
        inside = _is_in(_operand(left, table), right, table)
        return inside if isinstance(how, ast.In) else _Truth(inside.no, inside.yes)
    compare = _COMPARISONS.get(type(how))
    if compare is None:
        raise WrongType(f"{ast.unparse(left)!r} is compared in no known way", remedy=REMEDY)
    first, second = _operand(left, table), _operand(right, table)
    _refuse_mixed(first, second)
    known = np.broadcast_to(first.known & second.known, len(table.ids))
    met = np.zeros(known.size, dtype=bool)
    met[known] = compare(_at(first, known), _at(second, known))
    return _Truth(met, known & ~met)


def _is_in(column: _Operand, choices: ast.expr, table: Attributes) -> _Truth:
    if not isinstance(choices, (ast.List, ast.Tuple)):
        found = f"{column.written} in {ast.unparse(choices)}: there is no list behind the in"
        raise WrongType(found, remedy="write it as: gender in ['F', 'M']")
    if any(isinstance(each, ast.Name) for each in choices.elts):
        raise WrongType(f"{ast.unparse(choices)} names a column", remedy="put text in quotes")
    listed = [_operand(each, table) for each in choices.elts]
    for each in listed:
        _refuse_mixed(column, each)
    values = [each.values[0] for each in listed]
    met = pd.Series(column.values).isin(values).to_numpy() & column.known
    return _Truth(met, column.known & ~met)


def _at(operand: _Operand, rows: BoolArray) -> AnyArray:
    return operand.values[rows] if operand.values.size == rows.size else operand.values


def _refuse_mixed(first: _Operand, second: _Operand) -> None:
    if first.kind != second.kind and "missing" not in {first.kind, second.kind}:
        sides = f"{first.written} ({first.kind}) and {second.written} ({second.kind})"
        found = f"{sides} cannot be compared"
        raise WrongType(found, remedy="put text in quotes, and numbers without")


def _operand(node: ast.expr, table: Attributes) -> _Operand:
    written = ast.unparse(node)
    if isinstance(node, ast.Name):
        return _column(node.id, table)
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, str):
            return _constant(written, "text", np.array([value], dtype=object))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _constant(written, "number", np.array([float(str(value))]))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        negated = _operand(node.operand, table)
        if negated.kind == "number" and not isinstance(node.operand, ast.Name):
            return _constant(written, "number", -negated.values)
    raise WrongType(f"{written!r} is not a column, number or text", remedy=REMEDY)


def _constant(written: str, kind: Kind, values: AnyArray) -> _Operand:
    return _Operand(written, kind, values, np.ones(1, dtype=bool))


def _column(name: str, table: Attributes) -> _Operand:
    try:
        column = table.column(name)
    except UnknownColumn as error:
        quoted = f"{error.remedy}; if {name} is text, put it in quotes: '{name}'"
        raise UnknownColumn(error.message, remedy=quoted) from error
    known = column.notna().to_numpy(dtype=bool)
    kind = _kind(column)
    if kind == "number":
        values = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = column.to_numpy(dtype=object)
    return _Operand(name, kind, values, known)


def _kind(column: pd.Series[Any]) -> Kind:
    inferred = pd.api.types.infer_dtype(column.astype(object), skipna=True)
    if inferred == "empty":
        return "missing"
    if inferred in {"integer", "floating", "mixed-integer-float", "boolean"}:
        return "number"
    if inferred == "string":
        return "text"
    raise WrongType(f"the column {column.name!r} holds {inferred} cells, not text or numbers")
