"""LaTeX tables, downloads inside a page, the Jinja environments, and pages of sections."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from recbias.core.measures import Direction
from recbias.reports import svg, wording
from recbias.reports.views import DIRECTION_LABELS
from recbias.reports.wording import format_setting

if TYPE_CHECKING:
    from jinja2 import Environment

_SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "{}&%$#_"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\char34{}",
        "∞": r"$\infty$",
    }
)
_MINUS_SIGN = re.compile(r"(?<![\w.)-])-(?=\d)")
_ARROWS = {"higher": r" $\uparrow$", "lower": r" $\downarrow$", "zero": r" $\to 0$"}


def escape_latex(text: object) -> str:
    r"""Return a text on one line, escaped for LaTeX.

    >>> escape_latex("50% of $x_1$ & more")
    '50\\% of \\$x\\_1\\$ \\& more'
    """
    return wording.to_line(text).translate(_SPECIAL)


MOST_COLUMNS = 8
"""With more columns than this a table is split by families of metrics."""

_MOST_CHARACTERS = 14  # of a line of a heading


def render_latex(table: wording.Table) -> str:
    r"""Return a table environment, or one for each family of metrics if there are many columns.

    It needs ``\usepackage{booktabs}``.
    """
    first = "% needs \\usepackage{booktabs}; labels with emoji need LuaLaTeX or XeLaTeX\n"
    return first + "\n".join(map(_render_environment, _split_table(table)))


def _split_table(table: wording.Table) -> Iterator[wording.Table]:
    """Yield tables of at most ``MOST_COLUMNS`` columns; the columns of a family stay together."""
    n = table.row_headers
    room = max(MOST_COLUMNS - n, 1)
    families: dict[str, list[int]] = {}
    for at, column in enumerate(table.columns[n:], start=n):
        families.setdefault(column.family, []).append(at)
    if len(table.columns) - n <= room:
        yield table
        return
    packs: list[tuple[str, list[int]]] = []
    for family, columns in families.items():
        if packs and len(packs[-1][1]) + len(columns) <= room:
            packs[-1] = f"{packs[-1][0]}, {family}", [*packs[-1][1], *columns]
        else:
            for start in range(0, len(columns), room):
                later = f", part {start // room + 1}" if start and family else ""
                packs.append((family + later, columns[start : start + room]))
    for number, (name, columns) in enumerate(packs, start=1):
        part = table.select_columns([*range(n), *columns])
        title = f"{table.title}: {name or f'part {number}'}"
        yield wording.state_cutoff_once(replace(part, title=title))


def _render_environment(table: wording.Table) -> str:
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    notes = " ".join(map(escape_latex, table.notes))
    footer = (
        rf"\par\smallskip\begin{{minipage}}{{\linewidth}}\footnotesize {notes}\end{{minipage}}"
    )
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\label{{tab:{_name_label(table.title)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        " & ".join(map(_render_heading, table.columns)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_render_cell, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *([footer] if notes else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _render_heading(column: wording.Column) -> str:
    """Return a heading, on several lines if it is long, and which direction is better."""
    title = column.title
    width = _MOST_CHARACTERS if column.numeric else len(title) + 1
    lines = textwrap.wrap(title, width, break_long_words=False)
    text = r"\\".join(map(escape_latex, lines)) + _ARROWS.get(column.direction, "")
    return rf"\shortstack[r]{{{text}}}" if len(lines) > 1 else text


def _name_label(title: str) -> str:
    """Return the label of a table, without the cutoff that its caption states.

    >>> _name_label("Results (@10): accuracy"), _name_label("nDCG@10 by gender")
    ('results-accuracy', 'ndcg-10-by-gender')
    """
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(@\d+\)", "", title).lower()).strip("-")


def _render_cell(cell: wording.Cell) -> str:
    text = _MINUS_SIGN.sub("$-$", escape_latex(cell.text))
    if cell.best:
        text = rf"\textbf{{{text}}}"
    elif cell.second:
        text = rf"\underline{{{text}}}"
    return rf"{text}\textsuperscript{{{escape_latex(cell.mark)}}}" if cell.mark else text


@dataclass(frozen=True)
class _Download:
    """A link that saves a file; ``label`` names the format, and ``subject`` what it holds."""

    label: str
    subject: str
    name: str
    address: str


def list_downloads(table: wording.Table) -> list[_Download]:
    """Return a table as CSV and as LaTeX."""
    stem = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")[:60] or "table"
    return [
        make_download("CSV", table.title, f"{stem}.csv", render_csv(table)),
        make_download("LaTeX", table.title, f"{stem}.tex", render_latex(table)),
    ]


def make_download(label: str, subject: str, name: str, text: str) -> _Download:
    """Return a link to a text."""
    content = base64.b64encode(text.encode("utf-8", errors="backslashreplace")).decode()
    return _Download(label, subject, name, f"data:text/plain;charset=utf-8;base64,{content}")


def render_csv(table: wording.Table) -> str:
    """Return a table as CSV: numbers unrounded, undefined ones as empty cells, marks left out."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(column.title for column in table.columns)
    writer.writerows(map(_write_cell, row) for row in table.rows)
    return stream.getvalue()


def _write_cell(cell: wording.Cell) -> str:
    """Return the value of a cell; an interval, which is sorted by its lower end, stays text."""
    if math.isnan(cell.value) or " to " in cell.text:
        return "" if cell.text == wording.UNDEFINED else cell.text
    return f"{cell.value:.15g}"


_MINUS = "\N{MINUS SIGN}"

_MARKDOWN = re.compile(r"([\\`*_{}\[\]|~$#!])")
_HYPHEN = re.compile(r"(?<![^\s([])-(?=\d)")


def render(name: str, **context: object) -> str:
    """Render a template of this package.

    Text from the context is put on one line and escaped, unless a filter says otherwise.
    """
    return load_environment(name.split(".")[1]).get_template(name).render(context)


@cache
def load_environment(kind: str) -> Environment:
    """Return the environment of the templates of a format: ``html`` or ``md``."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(read_resource),
        autoescape=True,
        finalize=partial(_convert, escape_markdown if kind == "md" else wording.to_line),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    environment.globals |= {
        "direction_labels": DIRECTION_LABELS,
        "sort_first": {"higher": "descending", "lower": "ascending"},
    }
    environment.filters |= {
        "dict": dict,
        "downloads": list_downloads,
        "block": wording.escape,
        "code": _indent_code,
        "minus": _typeset_minus,
        "setting": format_setting,
        "sort_value": _get_sort_value,
        "zip": partial(zip, strict=False),
    }
    return environment


@cache
def read_resource(name: str) -> str:
    """Return a text file that is packaged beside this module."""
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def escape_markdown(text: object) -> wording.Safe:
    r"""Return a text on one line, escaped for Markdown and HTML.

    >>> print(escape_markdown("a|b <i>_x_</i>"))
    a\|b &lt;i&gt;\_x\_&lt;/i&gt;
    """
    line = wording.to_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return wording.Safe(_MARKDOWN.sub(r"\\\1", line))


def _typeset_minus(text: object) -> str:
    """Return a text with minus signs instead of hyphens before numbers.

    >>> _typeset_minus("-0.5 to -0.1, ml-1m")
    '−0.5 to −0.1, ml-1m'
    """
    return _HYPHEN.sub(_MINUS, wording.to_line(text))


def _convert(convert: Callable[[str], str], value: Any) -> Any:
    return convert(value) if type(value) is str else value


def _indent_code(text: str) -> wording.Safe:
    """Return an indented block, in which Markdown has no markup."""
    return wording.Safe("\n".join(f"    {line}" for line in text.splitlines()))


def _get_sort_value(value: float, direction: Direction) -> str:
    return f"{abs(value) if direction == 'zero' else value:.7g}"


# ---- pages of sections ----


@dataclass(frozen=True, eq=False)
class Section:
    """A table under a title, below a sentence and a plot if there are any."""

    title: str
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    note: str = ""
    plot: svg.Plot | None = None

    @property
    def grid(self) -> wording.Table:
        """The table as it is shown."""
        return wording.tabulate_frame(self.title, self.table)


def write_sections(
    folder: Path, sentences: Sequence[str], notes: Sequence[str], sections: Sequence[Section]
) -> None:
    """Write ``report.html``, ``report.md`` and the plots into a folder, which is made.

    Args:
        folder: The folder.
        sentences: What the report says; the first one is its title.
        notes: What was left out.
        sections: The sections; those without a row and a plot are left out.
    """
    shown = [each for each in sections if len(each.table) or each.plot]
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for plot in (each.plot for each in shown if each.plot):
        path = folder / "figures" / f"{plot.name}.svg"
        path.write_text(plot.document(), encoding="utf-8")
    styles = {"style": wording.Safe(read_resource("page.css"))}
    styles["plot_style"] = wording.Safe(read_resource("plot.css"))
    content = {
        "answer": sentences[0],
        "sentences": sentences[1:],
        "notes": notes,
        "sections": shown,
    }
    for kind, extra in (("md", {}), ("html", styles)):
        text = render(f"sections.{kind}.jinja", **content, **extra)
        (folder / f"report.{kind}").write_text(text, encoding="utf-8")
