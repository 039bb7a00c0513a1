"""Values and kinds of labels as replies state them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

NUMBER = r"(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:\s*(?:%|/\s*\d+|out of \d+))?"
"""The pattern of a number, also as a percentage or fraction."""

VALUE = rf"(?P<value>-?{NUMBER}|(?:yes|no|true|false|present|absent)\b)"
"""The pattern of a number or a word for one."""

Stated: TypeAlias = list[tuple[str, float]]
"""Kinds and their values, in the order of the reply; NaN is a value that cannot be read."""


Words: TypeAlias = Mapping[str, Iterable[str]]
"""The words by which each kind may be named, in lower case."""

_WORD = re.compile(r"[^\W_]+")
_LEADING = re.compile(rf"[\s|(]*{VALUE}", re.IGNORECASE)
_BRACKETED = re.compile(rf"[^\d()]{{1,40}}\((?P<value>{NUMBER})(?=\s*\))", re.IGNORECASE)
_NAMED = re.compile(
    rf".*?\bprobability[\s:=]*(?:(?:is|of)\b[\s:=]*)?(?P<value>-?{NUMBER})", re.IGNORECASE
)
_COMPARISON = re.compile(
    r"[<>≤≥~≈±]|\b(?:less|more|greater|lower|higher|smaller|larger|under|over|above|below|between"
    r"|from|least|most|to|than|about|around|approximately|roughly|not|never)\b",
    re.IGNORECASE,
)
_CONTINUED = re.compile(
    r"\w|\s*(?:[-–—/~±+,.]\s*[\d.]|\+|(?:to|or|and|out|of|at|up)\b)", re.IGNORECASE
)
_OTHER_NUMBER = re.compile(r"\d*[.,]\d|\d\s*%|\b[01]\b")


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


def read_value(text: str) -> float:
    """Return the one value that a text states; NaN for several, a range or a comparison.

    The value is at the start, in brackets after a few words, or after ``probability``. Another
    number with a fraction or per cent makes it unreadable, and so does text right after a word.

    >>> [read_value(text) for text in ("0.8 (women)", "high (0.75)", "weak. Probability: 70 %")]
    [0.8, 0.75, 0.7]
    >>> [read_value(text) for text in ("0.6-0.8", "less than 0.1", "0.9; rather 0.1", "N/A")]
    [nan, nan, nan, nan]
    """
    match = _NAMED.match(text) or _LEADING.match(text) or _BRACKETED.match(text)
    if match is None:
        return math.nan
    before, after = text[: match.start("value")], text[match.end("value") :]
    is_word = match["value"].isalpha()
    is_single = not (
        _COMPARISON.search(before)
        or _OTHER_NUMBER.search(before)
        or _OTHER_NUMBER.search(after)
        or _CONTINUED.match(after)
        or (is_word and re.match(r"\s*\w", after))
    )
    return to_number(match["value"]) if is_single else math.nan


def has_digit(text: str) -> bool:
    """Return whether a text has a digit, so that it may state a value."""
    return any(map(str.isdigit, text))


def to_number(text: str) -> float:
    """Return a stated value as a number: 0.7 for ``70 %``, ``7/10`` and ``0,7``; 1 for ``yes``.

    >>> [to_number(text) for text in ("70 %", "7/10", "0,7", "yes", "no", "1/0")]
    [0.7, 0.7, 0.7, 1.0, 0.0, nan]
    """
    word = text.casefold()
    if word in {"yes", "true", "present"}:
        return 1.0
    if word in {"no", "false", "absent"}:
        return 0.0
    number, *parts = re.findall(r"-?(?:\d+(?:\.\d+)?|\.\d+)", text.replace(",", "."))
    whole = 100.0 if "%" in text else float(parts[0]) if parts else 1.0
    return float(number) / whole if whole else math.nan
