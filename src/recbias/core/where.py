"""Conditions on a table, as users write them: ``age < 18 and gender == 'F'``.

A condition is parsed to a tree and worked out node by node: names of columns, numbers, text and
lists, compared and joined by ``and``, ``or``, ``not`` and ``in``. There is nothing else in the
language, so a spec cannot run code through it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import BoolArray
from recbias.core.attributes import Attributes
from recbias.core.errors import WrongType

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

REMEDY = "write it as: age < 18 and gender == 'F' (also <=, >, >=, !=, in [..], or, not)"


def columns_of(condition: str) -> set[str]:
    """Return the columns that a condition names.

    >>> sorted(columns_of("age < 18 and gender in ['F', 'M']"))
    ['age', 'gender']

    Raises:
        WrongType: It is not a condition.
    """
    return {node.id for node in ast.walk(_parse(condition)) if isinstance(node, ast.Name)}


def matches(condition: str, table: Attributes) -> BoolArray:
    """Return which rows of the table meet the condition; a missing cell meets none.

    >>> from recbias.core.vocabulary import Vocabulary
    >>> users = Attributes(Vocabulary.of(["1", "2"]), pd.DataFrame({"age": [1.0, 25.0]}))
    >>> matches("age < 18", users).tolist()
    [True, False]

    Raises:
        WrongType: It is not a condition, or compares text with a number.
        UnknownColumn: The table has no such column.
    """
    value = _evaluate(_parse(condition), table)
    return np.asarray(value, dtype=bool)


def _parse(condition: str) -> ast.expr:
    try:
        return ast.parse(condition.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise WrongType(f"{condition!r} is not a condition", remedy=REMEDY) from error


def _evaluate(node: ast.expr, table: Attributes) -> BoolArray:
    if isinstance(node, ast.BoolOp):
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return join.reduce([_evaluate(each, table) for each in node.values])  # type: ignore[no-any-return]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_evaluate(node.operand, table) & _known(node.operand, table)
    if isinstance(node, ast.Compare):
        return _compare(node, table)
    raise WrongType(f"{ast.unparse(node)!r} is not a condition", remedy=REMEDY)


def _known(node: ast.expr, table: Attributes) -> BoolArray:
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    known = [table.column(name).notna().to_numpy() for name in names]
    return np.logical_and.reduce(known) if known else np.ones(len(table.ids), dtype=bool)


def _compare(node: ast.Compare, table: Attributes) -> BoolArray:
    met = np.ones(len(table.ids), dtype=bool)
    left = node.left
    for comparison, right in zip(node.ops, node.comparators, strict=True):
        met &= _one(comparison, left, right, table)
        left = right
    return met & _known(node, table)


def _one(comparison: ast.cmpop, left: ast.expr, right: ast.expr, table: Attributes) -> BoolArray:
    first, second = _operand(left, table), _operand(right, table)
    if isinstance(comparison, (ast.In, ast.NotIn)):
        if not isinstance(first, pd.Series) or not isinstance(second, list):
            raise WrongType(f"{ast.unparse(left)} in ... needs a list", remedy=REMEDY)
        inside = first.isin(second).to_numpy()
        return inside if isinstance(comparison, ast.In) else ~inside
    compare = _COMPARISONS.get(type(comparison))
    if compare is None:
        raise WrongType(f"{ast.unparse(left)!r} is compared in no known way", remedy=REMEDY)
    try:
        return np.asarray(compare(_comparable(first), _comparable(second)), dtype=bool)
    except TypeError as error:
        found = f"{ast.unparse(left)} and {ast.unparse(right)} cannot be compared"
        raise WrongType(found, remedy="put text in quotes, and numbers without") from error


def _comparable(value: object) -> object:
    if isinstance(value, pd.Series) and value.dtype.kind == "O":
        return value.fillna("")
    return value


def _operand(node: ast.expr, table: Attributes) -> object:
    if isinstance(node, ast.Name):
        return table.column(node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _operand(node.operand, table)
        if isinstance(value, (int, float)):
            return -value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_operand(each, table) for each in node.elts]
    raise WrongType(f"{ast.unparse(node)!r} is not a column, number, text or list", remedy=REMEDY)
