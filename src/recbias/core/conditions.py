"""Conditions on the rows of a table, as users write them: ``age < 18 and gender == 'F'``.

The language consists of names of columns, numbers, text and lists, comparisons, ``and``, ``or``,
``not`` and ``in``, so a spec cannot run code. A comparison with a missing cell is unknown, and
``and``, ``or`` and ``not`` follow Kleene's three-valued logic: ``age < 18 or gender == 'F'`` holds
for a woman whose age is missing, but neither ``age < 18`` nor ``not age < 18`` does.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.dataset import AnyArray, Attributes, BoolArray, Vocabulary
from recbias.core.errors import UnknownColumn, WrongType

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
    present = np.broadcast_to(a.present & b.present, len(table.ids))
    true = np.zeros(present.size, dtype=bool)
    true[present] = compare(a.select(present), b.select(present))
    return pd.arrays.BooleanArray(true, ~present)


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
    return pd.arrays.BooleanArray(
        pd.Series(column.values).isin(values).to_numpy(), ~column.present
    )
