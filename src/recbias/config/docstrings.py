"""The docstring of a plug-in: its summary, arguments, formula, range and source."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

_ARGUMENT = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


def summary(cls: type) -> str:
    """Return the first sentence of a docstring, on one line.

    >>> from recbias.formats.yaml.source_map import Mark
    >>> summary(Mark)
    'A position in what the user wrote.'
    """
    paragraph = _doc(cls).partition("\n\n")[0]
    text = " ".join(paragraph.split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text)[0]


def arguments(cls: type) -> dict[str, str]:
    """Return what the ``Args`` section of a docstring says of each argument, on one line.

    >>> from recbias.formats.yaml.source_map import Mark
    >>> arguments(Mark)["line"]
    'From 1; 0 where there are no lines.'
    """
    found: dict[str, str] = {}
    name = ""
    for line in _section(_doc(cls), "Args"):
        match = _ARGUMENT.match(line[4:]) if not line.startswith(" " * 5) else None
        if match:
            name = match[1]
            found[name] = match[2]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def formula(cls: type) -> str:
    """Return the formula of a docstring: the first indented block above the sections.

    >>> from recbias.metrics.accuracy.ranking import HitRate
    >>> formula(HitRate)
    'HR@k = 1 if rel(r) = 1 for any r ≤ k, else 0'
    """
    body = re.split(r"^\w+:$", _doc(cls), maxsplit=1, flags=re.MULTILINE)[0]
    block = re.search(r"(?:^    .*\n?)+", body, re.MULTILINE)
    return textwrap.dedent(block[0]).strip() if block else ""


def section(cls: type, title: str) -> str:
    """Return the text of a section of a docstring (``Range``, ``Source``), on one line.

    >>> from recbias.metrics.accuracy.ranking import HitRate
    >>> section(HitRate, "Range")
    '0 to 1; undefined for a query without test items'
    """
    return " ".join(" ".join(_section(_doc(cls), title)).split()).removesuffix(".")


def _doc(cls: Any) -> str:
    doc = inspect.getdoc(cls) or ""
    is_made_up = doc.startswith(f"{cls.__name__}(")
    return "" if is_made_up else doc


def _section(doc: str, title: str) -> list[str]:
    """Return the indented lines below ``title:``, without those of the next section."""
    lines = doc.splitlines()
    if f"{title}:" not in lines:
        return []
    found: list[str] = []
    for line in lines[lines.index(f"{title}:") + 1 :]:
        if line and not line.startswith(" "):
            break
        found.append(line)
    return found
