"""The docstring of a class by section: summary, arguments, formula, range and source.

Plug-ins of one family document their common settings, errors and source once.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

EXAMPLE = "Example"
"""The section of lines that begin with ``>>>``, which have no title."""

_TITLE = re.compile(r"(Args|Raises|Range|Source|Returns|Attributes):")
_ARGUMENT = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


def read_summary(cls: type) -> str:
    """Return the first sentence of a docstring on one line.

    >>> from recbias.config.specs import Grouping
    >>> read_summary(Grouping).endswith("queries.")
    True
    """
    paragraph = read_docstring(cls).partition("\n\n")[0]
    text = " ".join(paragraph.split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text)[0]


def read_arguments(cls: type) -> dict[str, str]:
    """Return the description of each argument in the ``Args`` section, on one line.

    >>> from recbias.config.specs import Range
    >>> read_arguments(Range)["low"]
    'The lower bound.'
    """
    descriptions: dict[str, str] = {}
    name = ""
    for line in split_sections(read_docstring(cls)).get("Args", "").splitlines():
        match = None if line.startswith(" ") else _ARGUMENT.match(line)
        if match:
            name = match[1]
            descriptions[name] = match[2]
        elif name:
            descriptions[name] = f"{descriptions[name]} {line.strip()}".strip()
    return descriptions


def read_formula(cls: type) -> str:
    """Return the formula of a docstring: the first indented block above the sections.

    >>> from recbias.metrics.accuracy import HitRate
    >>> read_formula(HitRate)
    'HR@k = 1 if rel(r) = 1 for any r ≤ k, else 0'
    """
    body = split_sections(read_docstring(cls)).get("", "")
    block = re.search(r"(?:^    .*\n?)+", body, re.MULTILINE)
    return textwrap.dedent(block[0]).strip() if block else ""


def read_section(cls: type, title: str) -> str:
    """Return the text of a section of a docstring (``Range``, ``Source``) on one line.

    >>> from recbias.metrics.accuracy import HitRate
    >>> read_section(HitRate, "Range")
    '0 to 1; undefined for a query without test items'
    """
    text = split_sections(read_docstring(cls)).get(title, "")
    return " ".join(text.split()).removesuffix(".")


def split_sections(doc: str) -> dict[str, str]:
    r"""Split a docstring by its sections; text outside of sections has the empty name.

    >>> split_sections("The share.\n\nRange:\n    0 to 1.\n")
    {'': 'The share.', 'Range': '0 to 1.'}
    """
    sections: dict[str, list[str]] = {}
    section = ""
    for line in doc.splitlines():
        if title := _TITLE.fullmatch(line):
            section = title[1]
            continue
        if line.startswith(">>>"):
            section = EXAMPLE
        elif section == EXAMPLE:
            section = EXAMPLE if line else ""
        elif line and not line.startswith(" "):
            section = ""
        sections.setdefault(section, []).append(line)
    return {name: textwrap.dedent("\n".join(text)).strip("\n") for name, text in sections.items()}


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


_TITLES = ("Args", "Raises", "Range", "Source")
_ENTRY = re.compile(r"^(\w+):.*(?:\n +.*)*", re.MULTILINE)


class InheritsSections:
    """A plug-in whose docstring is completed by that of its base class.

    A class gets the entries of its bases' sections on settings and errors that it does not
    describe itself, and the sections on range and source if it has none.
    """

    def __init_subclass__(cls) -> None:
        """Complete the docstring."""
        super().__init_subclass__()
        own = _split(cls)
        for base in cls.__bases__:
            for title, inherited in _split(base).items():
                text = own.get(title, "")
                if title in {"Args", "Raises"}:
                    entries = {
                        match[1]: match[0] for match in _ENTRY.finditer(f"{inherited}\n{text}")
                    }
                    text = "\n".join(entries.values())
                if title in _TITLES:
                    own[title] = text or inherited
        parts = [own[title] for title in ("", EXAMPLE) if title in own]
        parts += [
            f"{title}:\n{textwrap.indent(own[title], '    ')}" for title in _TITLES if title in own
        ]
        cls.__doc__ = "\n\n".join(parts)


def _split(cls: type) -> dict[str, str]:
    return split_sections(inspect.cleandoc(vars(cls).get("__doc__") or ""))
