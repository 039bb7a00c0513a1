"""LaTeX tables with booktabs, in which everything from data is escaped."""

from __future__ import annotations

import re

from recbias.reports.markup import to_line
from recbias.reports.views.grid import Cell, Table

_SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "{}&%$#_"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
    }
)
_ARROWS = {"higher": r" $\uparrow$", "lower": r" $\downarrow$", "zero": r" $\to 0$"}


def escape_latex(text: object) -> str:
    r"""Return a text on one line, escaped for LaTeX.

    >>> escape_latex("50% of $x_1$ & more")
    '50\\% of \\$x\\_1\\$ \\& more'
    """
    return to_line(text).translate(_SPECIAL)


def render_latex(table: Table) -> str:
    r"""Return a table environment, which needs ``\usepackage{booktabs}``."""
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    headers = (
        escape_latex(column.title) + _ARROWS.get(column.direction, "") for column in table.columns
    )
    lines = [
        r"% needs \usepackage{booktabs}; labels with emoji need LuaLaTeX or XeLaTeX",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\label{{tab:{_name_label(table.title)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        " & ".join(headers) + r" \\",
        r"\midrule",
        *(" & ".join(map(_render_cell, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\\[2pt] \footnotesize {escape_latex(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _name_label(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _render_cell(cell: Cell) -> str:
    text = escape_latex(cell.text)
    if cell.value < 0 and text.startswith("-"):
        text = f"${text}$"
    if cell.best:
        text = rf"\textbf{{{text}}}"
    return rf"{text}\textsuperscript{{{escape_latex(cell.mark)}}}" if cell.mark else text
