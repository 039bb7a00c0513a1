"""A plug-in in words, from its dataclass and docstring: for ``recbias show`` and the docs."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from recbias.config.settings import plain, settings
from recbias.config.words import in_yaml, range_in_words, type_in_words

_ARGUMENT = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


@dataclass(frozen=True)
class Parameter:
    """One setting of a plug-in in words.

    Args:
        name: As it is written in a spec.
        type: Its type in words.
        default: As it is written in YAML; blank where there is none, so that it must be given.
        range: Its range in words, blank where it has none.
        doc: What it is, from the docstring.
        needed: Whether it must be given.
    """

    name: str
    type: str
    default: str
    range: str
    doc: str
    needed: bool


def parameters(cls: type) -> list[Parameter]:
    """Return the settings of a plug-in's class, in order."""
    docs = arguments(cls)
    return [
        Parameter(
            name=each.name,
            type=type_in_words(each.hint),
            default="" if each.needed else in_yaml(plain(each.default)),
            range=range_in_words(each.hint),
            doc=docs.get(each.field.name, ""),
            needed=each.needed,
        )
        for each in settings(cls).values()
    ]


def summary(cls: type) -> str:
    """Return the first sentence of a docstring, on one line.

    >>> summary(Parameter)
    'One setting of a plug-in in words.'
    """
    paragraph = _doc(cls).partition("\n\n")[0]
    text = " ".join(paragraph.split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text)[0]


def arguments(cls: type) -> dict[str, str]:
    """Return what the ``Args`` section of a docstring says of each argument, on one line.

    >>> arguments(Parameter)["default"]
    'As it is written in YAML; blank where there is none, so that it must be given.'
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
