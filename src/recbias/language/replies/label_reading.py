"""Probabilities of labels in a reply: of each kind the one that the reply states."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from recbias.language.replies.label_json import read_json, read_object
from recbias.language.replies.label_values import (
    NUMBER,
    Stated,
    Words,
    find_kinds,
    has_digit,
    read_value,
    to_number,
)

Form: TypeAlias = Literal["strict", "lenient"]
"""What is read: replies in a form that was asked for only, or also similar ones."""

Reading: TypeAlias = Literal["strict", "lenient", "format", "range", "unclear", "refusal", "prose"]
"""How a reply was read, or why it was not: in a form that only ``lenient`` reads, a number that is
no probability, no kind with one value, a refusal, or text in which no label is stated."""

READ: tuple[Reading, ...] = ("strict", "lenient")
"""The readings of replies with probabilities."""

_STRICT_VALUE = r"(?P<value>\d*\.\d+|\d+|yes|no)"
_STRICT_LINE = re.compile(rf"(?P<label>[^:]+?)\s*:\s*{_STRICT_VALUE}", re.IGNORECASE)
_STRICT_PAIR = re.compile(
    rf"stereotype\s*:\s*(?P<label>[^,:]+?)\s*,\s*probability\s*:\s*{_STRICT_VALUE}", re.IGNORECASE
)
_PAIR = re.compile(
    r"stereotypes?(?:\s+(?:label|type))?[\s(]*[:=]\s*(?P<label>[^,;:=|\n]{1,80}?)[\s,;.|()-]+"
    r"(?:the\s+)?(?P<value>probability\b.*?)(?=\bstereotypes?[^\n]*[:=]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_LINE = re.compile(r"(?P<label>[^:=|]{1,60}?)\s*(?:[:=|]|\s[-–—])(?P<value>.*)")
_ANYWHERE = re.compile(
    rf"(?P<label>[^:=|;,.\n\d]{{1,60}}?)\s*[:=|][\s|(]*(?P<value>{NUMBER})(?![\w.])", re.IGNORECASE
)
_NO_LABEL = re.compile(
    r"0(?:\.0*)?|(?:there\s+(?:is|are)\s+)?no\s+stereotypes?(?:\s+(?:is|are))?(?:\s+(?:present|found))?"
    r"(?:\s+in\s+(?:this|the)\s+(?:text|description))?[.!]?",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]?m|i am)\s+(?:very\s+)?(?:sorry|unable|not able)|sorry\b|i\s+apologi[sz]e"
    r"|as an ai\b|i\s+(?:can(?:no|['’])?t|can not|won['’]?t|will not|must decline|decline))",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[*`#\"]+|^\s*(?:>\s*)*(?:(?:[-•+]|\d+[.)])\s+|\|)?", re.MULTILINE)
_BLANKS = re.compile(r"\s+")
_NEXT_LABEL = re.compile(r"[,;]\s?(?=(?P<label>[^:=|;,.\n\d]{1,60}):)")
_ASCII_SIGNS = str.maketrans("：，；％（）＝｜", ":,;%()=|")
"""Signs as they are written with Chinese characters, and as the patterns have them."""

_CONTRAST = re.compile(
    r"\b(?:no|not|non|never|without|but|except|rather|less|more|than)\b", re.IGNORECASE
)
_MAX_WORDS = 4
"""The longest label that begins a line; what is longer is a sentence."""


@dataclass(frozen=True)
class LabelProbabilities:
    """What a reply says about each kind of label.

    Args:
        reading: How it was read, or why not.
        probabilities: The probability of each kind, NaN where the reply does not state one value
            that can be read; empty if the reply was not read.
    """

    reading: Reading
    probabilities: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        """Whether there are probabilities."""
        return self.reading in READ


def read_labels(answer: str, words: Words, form: Form = "lenient") -> LabelProbabilities:
    r"""Return the probability of each kind that a reply states.

    ``strict`` reads a reply that is nothing but one line ``kind: probability`` for each kind, a
    JSON object with these keys, lines ``Stereotype: label, Probability: probability``, or ``0``
    for none; the value may be ``yes`` or ``no``. ``lenient`` also reads such lines and values
    between other text, in markup, with words of a kind for its name, as percentages and
    fractions, and the sentence ``No stereotypes are present``.

    A kind has the value NaN if the reply does not state it, states two different values, a range,
    a comparison (``less than 0.1``) or no number (``high``, ``none``, ``N/A``). Lines
    ``Stereotype: label, ...`` list what a text has: of several labels of a kind the largest value
    counts, and a kind that the reply does not mention is 0.

    Args:
        answer: The text of the reply.
        words: The words by which each kind may be named, in lower case.
        form: What is read.

    >>> words = {"gender": ["gender", "women"], "race": ["race", "racial"]}
    >>> read_labels("gender: 0.8\nrace: 0", words)
    LabelProbabilities(reading='strict', probabilities={'gender': 0.8, 'race': 0.0})
    >>> read_labels("**Racial stereotype** - 70 % (a villain)\\nGender: low", words).probabilities
    {'gender': nan, 'race': 0.7}
    >>> read_labels("It is a warm story about a dog.", words).reading
    'prose'
    """
    strict = _read_strict(answer.strip(), words)
    if strict is not None:
        return _conclude("strict", strict, words)
    lenient = _read_lenient(answer, words)
    if not lenient:
        return LabelProbabilities("refusal" if _REFUSAL.match(answer) else "prose")
    return (
        LabelProbabilities("format") if form == "strict" else _conclude("lenient", lenient, words)
    )


def _conclude(reading: Reading, stated: Stated, words: Words) -> LabelProbabilities:
    """Return the value of each kind, NaN unless it is one; none if one is no probability."""
    if any(math.isinf(value) or not (math.isnan(value) or 0 <= value <= 1) for _, value in stated):
        return LabelProbabilities("range")
    values = {kind: {value for name, value in stated if name == kind} for kind in words}
    probabilities = {
        kind: next(iter(found)) if len(found) == 1 else math.nan for kind, found in values.items()
    }
    if all(map(math.isnan, probabilities.values())):
        return LabelProbabilities("unclear")
    return LabelProbabilities(reading, probabilities)


def _read_strict(text: str, words: Words) -> Stated | None:
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    if lines == ["0"]:
        return [(kind, 0.0) for kind in words]
    if text.startswith("{"):
        return read_object(text, words)
    pairs = [_STRICT_PAIR.fullmatch(line) for line in lines]
    if lines and all(pairs):
        return _complete([row for pair in pairs if pair for row in _name(pair, words)], "", words)
    matches = [match for line in lines if (match := _STRICT_LINE.fullmatch(line))]
    kinds = {kind.casefold(): kind for kind in words}
    named = [kinds.get(match["label"].casefold(), "") for match in matches]
    if len(matches) < len(lines) or sorted(named) != sorted(words):
        return None
    return [(kind, to_number(match["value"])) for kind, match in zip(named, matches, strict=True)]


def _read_lenient(text: str, words: Words) -> Stated | None:
    """Return what a reply states anywhere; None if it states nothing, not even that none is."""
    plain = _divide_lists(_join_blanks(_MARKUP.sub("", text.translate(_ASCII_SIGNS))), words)
    if (found := read_json(text, words)) is not None:
        stated, lists_labels = found
        return _complete(stated, "", words) if lists_labels else stated + _find(plain, words)
    if pairs := [*_PAIR.finditer(plain)]:
        stated = [row for pair in pairs for row in _name(pair, words)]
        return _complete(stated, _PAIR.sub("", plain), words)
    if stated := _read_lines(plain, words):
        return stated + _find(plain, words)
    first, _, others = plain.strip().partition("\n")
    is_none = _NO_LABEL.fullmatch(first.strip()) and not has_digit(others)
    return [(kind, 0.0) for kind in words] if is_none and not find_kinds(others, words) else None


def _join_blanks(text: str) -> str:
    """Return a text with one blank, or one line break, for each run of them.

    The patterns would read a long run in a time that grows with the square of its length.
    """
    return _BLANKS.sub(lambda run: "\n" if "\n" in run[0] else " ", text)


def _divide_lists(text: str, words: Words) -> str:
    """Return a text with a line for each kind of a list: ``gender: 0.8, race: 0``."""

    def divide(match: re.Match[str]) -> str:
        label = match["label"]
        is_kind = find_kinds(label, words) and not _CONTRAST.search(label)
        return "\n" if is_kind else match[0]

    return _NEXT_LABEL.sub(divide, text)


def _complete(stated: Stated, others: str, words: Words) -> Stated:
    """Return the largest value of each kind in a list of labels, 0 if it is not mentioned."""
    values = {kind: [value for name, value in stated if name == kind] for kind in words}
    for kind in find_kinds(others, words):
        values[kind] = values[kind] or [math.nan]
    return [(kind, float(np.max(listed, initial=0.0))) for kind, listed in values.items()]


def _read_lines(text: str, words: Words) -> Stated:
    """Return the values of lines that begin with a kind; NaN for a number that is no value."""
    stated: Stated = []
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match and len(match["label"].split()) <= _MAX_WORDS:
            rows = _name(match, words)
            stated += [row for row in rows if has_digit(line) or not math.isnan(row[1])]
    return stated


def _find(text: str, words: Words) -> Stated:
    """Return the numbers after words of a kind anywhere in a text."""
    stated = [row for match in _ANYWHERE.finditer(text) for row in _name(match, words)]
    return [(kind, value if 0 <= value <= 1 else math.nan) for kind, value in stated]


def _name(match: re.Match[str], words: Words) -> Stated:
    """Return the value of a match for each kind that its label names."""
    value = math.nan if _CONTRAST.search(match["label"]) else read_value(match["value"])
    return [(kind, value) for kind in find_kinds(match["label"], words)]
