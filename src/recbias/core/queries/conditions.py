"""Conditions on the rows of a table, as users write them: ``age < 18 and gender == 'F'``.

The language consists of names of columns, numbers, text and lists, comparisons, ``and``, ``or``,
``not`` and ``in``, so a spec cannot run code. A comparison with a missing cell is unknown, and
``and``, ``or`` and ``not`` follow Kleene's three-valued logic: ``age < 18 or gender == 'F'`` holds
for a woman whose age is missing, but neither ``age < 18`` nor ``not age < 18`` does.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import BoolArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import OutOfRange, WrongType
from recbias.core.queries.operands import (
    REMEDY,
    Operand,
    make_operand,
    parse_number,
    reject_mixed_types,
)

MAX_COMPARISONS = 1000
"""Comparisons of one condition; each is computed on the whole table."""

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
        OutOfRange: It has too many comparisons, or requires a number above one limit and below
            a smaller one.
    """
    tree = _parse(condition)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    no_rows = pd.DataFrame(columns=sorted(names), dtype=object)
    match_rows(condition, Attributes(Vocabulary.of([]), no_rows))
    for node in ast.walk(tree):
        _reject_empty_range(node)
    return names


def match_rows(condition: str, table: Attributes) -> BoolArray:
    """Return which rows of the table meet the condition, ``bool[n]``.

    >>> from recbias.core.dataset.vocabulary import Vocabulary
    >>> users = Attributes(Vocabulary.of(["1", "2"]), pd.DataFrame({"age": [1.0, 25.0]}))
    >>> match_rows("age < 18", users).tolist()
    [True, False]

    Raises:
        WrongType: The text is not a condition, or compares text with a number.
        UnknownColumn: The table has no such column.
    """
    try:
        return _evaluate(_parse(condition), table).true
    except RecursionError as error:
        raise WrongType("the condition is nested too deeply", remedy=REMEDY) from error


@dataclass(frozen=True, eq=False)
class _Truth:
    """The rows for which a condition is true and those for which it is false."""

    true: BoolArray
    false: BoolArray

    def negate(self) -> _Truth:
        return _Truth(self.false, self.true)


def _parse(condition: str) -> ast.expr:
    try:
        tree = ast.parse(condition.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise WrongType(f"{condition!r} is not a condition", remedy=REMEDY) from error
    n = sum(isinstance(node, ast.Compare) for node in ast.walk(tree))
    if n > MAX_COMPARISONS:
        message = f"the condition has {n:,} comparisons, more than {MAX_COMPARISONS:,}"
        raise OutOfRange(message, remedy="list values with in, or write the result into a column")
    return tree


def _evaluate(node: ast.expr, table: Attributes) -> _Truth:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _evaluate(node.operand, table).negate()
    if isinstance(node, ast.BoolOp):
        terms = [_evaluate(term, table) for term in node.values]
        if isinstance(node.op, ast.And):
            return _conjoin(terms)
        return _conjoin([term.negate() for term in terms]).negate()
    if isinstance(node, ast.Compare):
        return _conjoin([_compare(*pair, table) for pair in _list_pairs(node)])
    raise WrongType(f"{ast.unparse(node)!r} is not a condition", remedy=REMEDY)


def _conjoin(terms: list[_Truth]) -> _Truth:
    true = np.logical_and.reduce([term.true for term in terms])
    return _Truth(true, np.logical_or.reduce([term.false for term in terms]))


def _reject_empty_range(node: ast.AST) -> None:
    """Reject a range that contains no number: ``30 < age < 18``, ``age > 30 and age < 18``."""
    if isinstance(node, ast.Compare):
        comparisons = [node]
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        comparisons = [term for term in node.values if isinstance(term, ast.Compare)]
    else:
        return
    ranges: dict[str, tuple[float, float]] = {}
    for column, low, high in (limit for term in comparisons for limit in _list_limits(term)):
        lowest, highest = ranges.get(column, (-np.inf, np.inf))
        ranges[column] = lowest, highest = max(lowest, low), min(highest, high)
        if lowest > highest:
            message = f"no {column} is above {lowest:g} and below {highest:g}"
            remedy = f"write the smaller number first: {highest:g} < {column} < {lowest:g}"
            raise OutOfRange(message, remedy=remedy)


def _list_limits(comparison: ast.Compare) -> Iterator[tuple[str, float, float]]:
    """Yield each column that is compared with a number, and its lower and upper limit."""
    for symbol, left, right in _list_pairs(comparison):
        rising = isinstance(symbol, ast.Lt | ast.LtE)
        falling = isinstance(symbol, ast.Gt | ast.GtE)
        for column, limit, is_upper in ((left, right, rising), (right, left, falling)):
            if (rising or falling) and isinstance(column, ast.Name):
                value = parse_number(limit)
                if value is not None:
                    yield (column.id, -np.inf, value) if is_upper else (column.id, value, np.inf)


def _list_pairs(comparison: ast.Compare) -> Iterator[tuple[ast.cmpop, ast.expr, ast.expr]]:
    sides = [comparison.left, *comparison.comparators]
    return zip(comparison.ops, sides, sides[1:], strict=False)


def _compare(symbol: ast.cmpop, left: ast.expr, right: ast.expr, table: Attributes) -> _Truth:
    if not any(isinstance(side, ast.Name) for side in (left, right)):
        message = f"neither {ast.unparse(left)} nor {ast.unparse(right)} is a column"
        raise WrongType(message, remedy=REMEDY)
    if isinstance(symbol, ast.In | ast.NotIn):
        inside = _match_list(make_operand(left, table), right, table)
        return inside if isinstance(symbol, ast.In) else inside.negate()
    compare = _COMPARISONS.get(type(symbol))
    if compare is None:
        message = f"{ast.unparse(left)!r} is compared by an unknown operator"
        raise WrongType(message, remedy=REMEDY)
    a, b = make_operand(left, table), make_operand(right, table)
    reject_mixed_types(a, b)
    present = np.broadcast_to(a.present & b.present, len(table.ids))
    true = np.zeros(present.size, dtype=bool)
    true[present] = compare(a.select(present), b.select(present))
    return _Truth(true, present & ~true)


def _match_list(column: Operand, choices: ast.expr, table: Attributes) -> _Truth:
    if not isinstance(choices, ast.List | ast.Tuple):
        message = f"{column.text} in {ast.unparse(choices)}: expected a list after in"
        raise WrongType(message, remedy="write it as: gender in ['F', 'M']")
    if any(isinstance(choice, ast.Name) for choice in choices.elts):
        raise WrongType(f"{ast.unparse(choices)} names a column", remedy="put text in quotes")
    constants = [make_operand(choice, table) for choice in choices.elts]
    for constant in constants:
        reject_mixed_types(column, constant)
    values = [constant.values[0] for constant in constants]
    true = pd.Series(column.values).isin(values).to_numpy() & column.present
    return _Truth(true, column.present & ~true)
