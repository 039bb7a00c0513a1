"""The scalars of YAML 1.2's core schema, for reading and for writing.

Only ``true`` and ``false`` are truth values (``yes``, ``no``, ``on`` and ``off`` are text),
``1e-5`` is a number, ``010`` is ten, and dates are text. There is no NaN.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

TAG = "tag:yaml.org,2002:"
"""What the tags of YAML begin with."""

SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)",
        list("-+.0123456789"),
    ),
}
"""The types of plain scalars besides text: how each is written, and how it may begin."""


MOST_DIGITS = 400
"""No setting is a longer whole number."""


class Loader(yaml.SafeLoader):
    """PyYAML's reader with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's


class Dumper(yaml.SafeDumper):
    """PyYAML's writer, which also quotes text that YAML 1.2 would read as a number."""


for _name, (_pattern, _first) in SCALARS.items():
    for _class in (Loader, Dumper):
        _class.add_implicit_resolver(TAG + _name, re.compile(f"^(?:{_pattern})$"), _first)


def _text_node(dumper: Dumper, text: str) -> yaml.Node:
    """Return the node of a text; one with unusual characters is quoted so that they survive."""
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar(f"{TAG}str", text, style=style)


Dumper.add_representer(str, _text_node)


def scalar(kind: str, text: str) -> Any:
    """Return the value of a scalar.

    >>> scalar("float", "1e-5"), scalar("bool", "True"), scalar("int", "010")
    (1e-05, True, 10)

    Raises:
        ValueError: The text is not of the kind, or too large for a number.
    """
    if kind == "str":
        return text
    if not re.fullmatch(SCALARS[kind][0], text):
        raise ValueError(f"{text!r} is not of its tag, !!{kind}")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    return _whole(text) if kind == "int" else _real(text)


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"{text[:20]}... is too large for a number")
    return int(text, 8 if "o" in text else 16 if "x" in text else 10)


def _real(text: str) -> float:
    if text.lower().endswith("inf"):
        return -math.inf if text.startswith("-") else math.inf
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number
