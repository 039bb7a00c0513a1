"""The scalars of YAML 1.2's core schema, for reading and for writing.

Only ``true`` and ``false`` are truth values (``yes``, ``no``, ``on`` and ``off`` are text),
``1e-5`` is a number, ``010`` is ten, and dates are text. There is no NaN.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from recbias.formats.yaml.limited_loader import LimitedLoader

TAG = "tag:yaml.org,2002:"
"""The prefix of YAML's own tags."""

SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)",
        list("-+.0123456789"),
    ),
}
"""The types of plain scalars other than text: a pattern, and the possible first characters."""

_PATTERNS = {kind: re.compile(pattern) for kind, (pattern, _) in SCALARS.items()}

MAX_DIGITS = 400
"""The longest whole number that is accepted."""


class Loader(LimitedLoader, yaml.SafeLoader):
    """PyYAML's reader with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's


LOADERS: list[Any] = [Loader]
"""The readers, the fastest last; that of libyaml takes a seventh of the time."""

if yaml.__with_libyaml__:

    class CompiledLoader(LimitedLoader, yaml.CSafeLoader):
        """The reader of libyaml with the scalars of YAML 1.2."""

        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's

    LOADERS.append(CompiledLoader)


class Dumper(yaml.SafeDumper):
    """PyYAML's writer, which also quotes text that YAML 1.2 would read as a number."""


for _name, (_pattern, _initials) in SCALARS.items():
    for _class in (*LOADERS, Dumper):
        _class.add_implicit_resolver(TAG + _name, re.compile(f"^(?:{_pattern})$"), _initials)


def _represent_text(dumper: Dumper, text: str) -> yaml.Node:
    """Return the node of a text; unusual characters survive only inside quotes."""
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar(f"{TAG}str", text, style=style)


Dumper.add_representer(str, _represent_text)


def parse_scalar(kind: str, text: str) -> Any:
    """Return the value of a scalar.

    >>> parse_scalar("float", "1e-5"), parse_scalar("bool", "True"), parse_scalar("int", "010")
    (1e-05, True, 10)

    Raises:
        ValueError: The text is not of this kind, or too large for a number.
    """
    if kind == "str":
        return text
    if not _PATTERNS[kind].fullmatch(text):
        raise ValueError(f"{text!r} is not of its tag, !!{kind}")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        if len(text) > MAX_DIGITS:
            raise ValueError(f"{text[:20]}... is too large for a number")
        return int(text, 8 if "o" in text else 16 if "x" in text else 10)
    return _parse_float(text)


def _parse_float(text: str) -> float:
    if text.lower().endswith("inf"):
        return -math.inf if text.startswith("-") else math.inf
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number
