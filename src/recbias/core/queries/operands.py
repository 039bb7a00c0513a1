"""The operands of a condition: columns, numbers and text."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import UnknownColumn, WrongType

Kind: TypeAlias = Literal["number", "text", "missing"]

MAX_SHOWN = 5
"""The number of different cells that a message names."""

REMEDY = "write it as: age < 18 and gender == 'F' (also <=, >, >=, !=, in [..], or, not)"


@dataclass(frozen=True, eq=False)
class Operand:
    """One side of a comparison: a column, or one constant for all rows, of size 1.

    ``present`` is False for missing cells, whose value is arbitrary.
    """

    text: str
    kind: Kind
    values: AnyArray
    present: BoolArray

    def select(self, rows: BoolArray) -> AnyArray:
        """Return the values of some rows, or the constant."""
        return self.values[rows] if self.values.size == rows.size else self.values


def parse_number(node: ast.expr) -> float | None:
    """Return the number that an expression is, None if it is not one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = parse_number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(str(node.value)) if not isinstance(node.value, bool) else None
    return None


def reject_mixed_types(a: Operand, b: Operand) -> None:
    """Raise WrongType if one operand is text and the other one is a number."""
    if a.kind != b.kind and "missing" not in {a.kind, b.kind}:
        for column, other in ((a, b), (b, a)):
            if column.kind == "text" and other.kind == "number":
                _reject_text_cells(column)
        message = f"{a.text} ({a.kind}) and {b.text} ({b.kind}) cannot be compared"
        raise WrongType(message, remedy="put text in quotes, and numbers without")


def _reject_text_cells(column: Operand) -> None:
    """Reject a column of numbers in which some cells are text, with these cells."""
    cells = pd.Series(column.values[column.present], dtype=object)
    texts = cells[pd.to_numeric(cells, errors="coerce").isna()]
    if texts.size == cells.size or texts.empty:
        return
    counts = texts.value_counts()
    shown = ", ".join(f"{text!r} ({n:,})" for text, n in counts.head(MAX_SHOWN).items())
    more = ", ..." if counts.size > MAX_SHOWN else ""
    message = f"{texts.size:,} of {cells.size:,} cells of {column.text} are not numbers"
    names = ", ".join(json.dumps(text) for text in counts.index[:MAX_SHOWN])
    remedy = f"where the table is named, add missing: [{names}], or correct the table"
    raise WrongType(f"{message}: {shown}{more}", remedy=remedy)


def make_operand(node: ast.expr, table: Attributes) -> Operand:
    """Return a side of a comparison; WrongType if it is not a column, number or text."""
    text = ast.unparse(node)
    present = np.ones(1, dtype=bool)
    if isinstance(node, ast.Name):
        return _read_column(node.id, table)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Operand(text, "text", np.array([node.value], dtype=object), present)
    number = parse_number(node)
    if number is not None:
        return Operand(text, "number", np.array([number]), present)
    raise WrongType(f"{text!r} is not a column, number or text", remedy=REMEDY)


def _read_column(name: str, table: Attributes) -> Operand:
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


def _infer_kind(column: pd.Series[Any]) -> Kind:
    inferred = pd.api.types.infer_dtype(column.astype(object), skipna=True)
    if inferred == "empty":
        return "missing"
    if inferred in {"integer", "floating", "mixed-integer-float", "boolean"}:
        return "number"
    if inferred == "string":
        return "text"
    raise WrongType(f"the column {column.name!r} holds {inferred} cells, not text or numbers")
