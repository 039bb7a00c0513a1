"""Tables for papers: booktabs, the best in bold, everything from data escaped."""

from __future__ import annotations

from recbias.reports.markup import one_line
from recbias.reports.views.grid import Cell, Column, Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}


def latex_text(said: object) -> str:
    r"""Return a text in which LaTeX sees letters only.

    >>> latex_text("50% of $x_1$ & more")
    '50\\% of \\$x\\_1\\$ \\& more'
    """
    return "".join(_SPECIAL.get(each, each) for each in one_line(said))


def latex_table(table: Table) -> str:
    r"""Return a table environment; it needs ``\usepackage{booktabs}``."""
    spread = "".join("r" if column.numeric else "l" for column in table.columns)
    head = " & ".join(map(_head, table.columns))
    rows = [" & ".join(map(_cell, row)) + r" \\" for row in table.rows]
    notes = [rf"\\[2pt] \footnotesize {latex_text(note)}" for note in table.notes]
    lines = [
        r"% needs \usepackage{booktabs}; labels with emoji need LuaLaTeX or XeLaTeX",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(table.title)}}}",
        rf"\begin{{tabular}}{{{spread}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        *notes,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _head(column: Column) -> str:
    arrow = {"higher": r" $\uparrow$", "lower": r" $\downarrow$", "zero": r" $\to 0$"}
    return latex_text(column.title) + arrow.get(column.direction, "")


def _cell(cell: Cell) -> str:
    said = latex_text(cell.text)
    if cell.value < 0 and said.startswith("-"):
        said = f"${said}$"
    if cell.best:
        said = rf"\textbf{{{said}}}"
    return rf"{said}\textsuperscript{{{latex_text(cell.mark)}}}" if cell.mark else said
