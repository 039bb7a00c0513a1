"""The docstring of a plug-in by section: summary, arguments, formula, range and source."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

_ARGUMENT = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


def read_summary(cls: type) -> str:
    """Return the first sentence of a docstring on one line.

    >>> from recbias.config.plugin_spec import Grouping
    >>> read_summary(Grouping).endswith("queries.")
    True
    """
    paragraph = read_docstring(cls).partition("\n\n")[0]
    text = " ".join(paragraph.split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text)[0]


def read_arguments(cls: type) -> dict[str, str]:
    """Return the description of each argument in the ``Args`` section, on one line.

    >>> from recbias.config.plugin_spec import Range
    >>> read_arguments(Range)["low"]
    'The lower bound.'
    """
    descriptions: dict[str, str] = {}
    name = ""
    for line in _read_section_lines(read_docstring(cls), "Args"):
        match = _ARGUMENT.match(line[4:]) if not line.startswith(" " * 5) else None
        if match:
            name = match[1]
            descriptions[name] = match[2]
        elif name:
            descriptions[name] = f"{descriptions[name]} {line.strip()}".strip()
    return descriptions


def read_formula(cls: type) -> str:
    """Return the formula of a docstring: the first indented block above the sections.

    >>> from recbias.metrics.accuracy.ranking import HitRate
    >>> read_formula(HitRate)
    'HR@k = 1 if rel(r) = 1 for any r ≤ k, else 0'
    """
    body = re.split(r"^\w+:$", read_docstring(cls), maxsplit=1, flags=re.MULTILINE)[0]
    block = re.search(r"(?:^    .*\n?)+", body, re.MULTILINE)
    return textwrap.dedent(block[0]).strip() if block else ""


def read_section(cls: type, title: str) -> str:
    """Return the text of a section of a docstring (``Range``, ``Source``) on one line.

    >>> from recbias.metrics.accuracy.ranking import HitRate
    >>> read_section(HitRate, "Range")
    '0 to 1; undefined for a query without test items'
    """
    lines = _read_section_lines(read_docstring(cls), title)
    return " ".join(" ".join(lines).split()).removesuffix(".")


def read_docstring(cls: Any) -> str:
    """Return the docstring of a class, blank for the signature that ``dataclass`` generates.

    Where all of it but the summary is indented, as a formula alone is, ``inspect`` removes the
    indentation; the source of the class still has it.
    """
    doc = inspect.getdoc(cls) or ""
    if doc.startswith(f"{cls.__name__}("):
        return ""
    is_flush = "\n" in doc and not re.search(r"^[ \t]+\S", doc, re.MULTILINE)
    return (is_flush and _read_from_source(cls)) or doc


def _read_from_source(cls: type) -> str:
    """Return the docstring in the source of a class, as indented there; blank without source."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError):
        return ""
    if not isinstance(definition, ast.ClassDef):
        return ""
    doc = ast.get_docstring(definition, clean=False)
    if not doc:
        return ""
    summary, *lines = doc.splitlines()
    margin = " " * definition.body[0].col_offset
    return "\n".join([summary, *(line.removeprefix(margin) for line in lines)]).rstrip()


def _read_section_lines(doc: str, title: str) -> list[str]:
    lines = doc.splitlines()
    if f"{title}:" not in lines:
        return []
    section: list[str] = []
    for line in lines[lines.index(f"{title}:") + 1 :]:
        if line and not line.startswith(" "):
            break
        section.append(line)
    return section
