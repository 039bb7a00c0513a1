"""Values and kinds of labels as replies state them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

NUMBER = r"(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:\s*(?:%|/\s*\d+|out of \d+))?"
"""The pattern of a number, also as a percentage or fraction."""

VALUE = rf"(?P<value>-?{NUMBER}|(?:yes|no|true|false|present|absent|none)\b)"
"""The pattern of a number or a word for one."""

Stated: TypeAlias = list[tuple[str, float]]
"""Kinds and their values, in the order of the reply."""


Words: TypeAlias = Mapping[str, Iterable[str]]
"""The words by which each kind may be named, in lower case."""

_WORD = re.compile(r"[^\W_]+")


def find_kinds(label: str, words: Words) -> list[str]:
    """Return the kinds of which a label has a word.

    >>> find_kinds("Sexist gender_roles", {"gender": ["gender"], "race": ["race", "racial"]})
    ['gender']
    """
    text = _pad(label.casefold())
    return [kind for kind, names in words.items() if any(_pad(name) in text for name in names)]


def _pad(text: str) -> str:
    """Return the words of a text, each with a space before and after it."""
    return f" {' '.join(_WORD.findall(text))} "


def to_number(text: str) -> float:
    """Return a stated value as a number: 0.7 for ``70 %``, ``7/10`` and ``0,7``; 1 for ``yes``.

    >>> [to_number(text) for text in ("70 %", "7/10", "0,7", "yes", "none", "1/0")]
    [0.7, 0.7, 0.7, 1.0, 0.0, nan]
    """
    word = text.casefold()
    if word in {"yes", "true", "present"}:
        return 1.0
    if word in {"no", "false", "absent", "none"}:
        return 0.0
    number, *parts = re.findall(r"-?(?:\d+(?:\.\d+)?|\.\d+)", text.replace(",", "."))
    whole = 100.0 if "%" in text else float(parts[0]) if parts else 1.0
    return float(number) / whole if whole else math.nan
