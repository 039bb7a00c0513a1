"""Probabilities of labels in a reply: of each kind the largest that the reply states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from recbias.language.replies.label_json import read_json, read_object
from recbias.language.replies.label_values import (
    NUMBER,
    VALUE,
    Stated,
    Words,
    find_kinds,
    to_number,
)

Form: TypeAlias = Literal["strict", "lenient"]
"""What is read: replies in a form that was asked for only, or also similar ones."""

Reading: TypeAlias = Literal["strict", "lenient", "format", "range", "refusal", "prose"]
"""How a reply was read, or why it was not: in a form that only ``lenient`` reads, a number that is
no probability, a refusal, or text in which no label is stated."""

READ: tuple[Reading, ...] = ("strict", "lenient")
"""The readings of replies with probabilities."""

_STRICT_VALUE = r"(?P<value>\d*\.\d+|\d+|yes|no)"
_STRICT_LINE = re.compile(rf"(?P<label>[^:]+?)\s*:\s*{_STRICT_VALUE}", re.IGNORECASE)
_STRICT_PAIR = re.compile(
    rf"stereotype\s*:\s*(?P<label>[^,:]+?)\s*,\s*probability\s*:\s*{_STRICT_VALUE}", re.IGNORECASE
)
_PAIR = re.compile(
    r"stereotypes?(?:\s+(?:label|type))?\W*[:=]\W*(?P<label>[^,;:=|\n]{1,80}?)"
    rf"\W+(?:the\s+)?probability\W*(?:(?:is|of)\W*)?{VALUE}",
    re.IGNORECASE,
)
_LINE = re.compile(rf"(?P<label>[^:=|]{{1,60}}?)\s*(?:[:=|]|\s[-–—])[\s|(]*{VALUE}", re.IGNORECASE)
_STATED = re.compile(
    r"(?P<label>[^:=|]{1,60}?)\s*(?:[:=|]|\s[-–—]).*?"
    rf"\bprobability\W*(?:(?:is|of)\W*)?(?P<value>-?{NUMBER})",
    re.IGNORECASE,
)
_ZERO = re.compile(
    r"(?:0(?:\.0+)?(?![\d.,%/]*\d)|none\b|(?:there\s+(?:is|are)\s+)?no\s+(?:\w+\s+)?stereotypes?\b"
    r"|stereotypes?\s*:\s*(?:0|none|no)\b)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]?m|i am)\s+(?:very\s+)?(?:sorry|unable|not able)|sorry\b|i\s+apologi[sz]e"
    r"|as an ai\b|i\s+(?:can(?:no|['’])?t|can not|won['’]?t|will not|must decline|decline))",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[*`#>\"]+|^\s*(?:[-•+]|\d+[.)])\s+|^\s*\|", re.MULTILINE)
_MAX_WORDS = 4
"""The longest label that begins a line; what is longer is a sentence."""


@dataclass(frozen=True)
class LabelProbabilities:
    """What a reply says about each kind of label.

    Args:
        reading: How it was read, or why not.
        probabilities: The probability of each kind; empty if it was not read.
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
    fractions, and sentences that begin with ``No stereotype``. A kind that is not named has
    probability 0, and the largest probability of a kind counts.

    Args:
        answer: The text of the reply.
        words: The words by which each kind may be named, in lower case.
        form: What is read.

    >>> words = {"gender": ["gender", "women"], "race": ["race", "racial"]}
    >>> read_labels("gender: 0.8\nrace: 0", words)
    LabelProbabilities(reading='strict', probabilities={'gender': 0.8, 'race': 0.0})
    >>> read_labels("**Racial stereotype** - 70 % (the villain)", words).probabilities
    {'gender': 0.0, 'race': 0.7}
    >>> read_labels("It is a warm story about a dog.", words).reading
    'prose'
    """
    strict = _read_strict(answer.strip(), words)
    if strict is not None:
        return _conclude("strict", strict, words)
    lenient = _read_lenient(answer, words)
    if lenient is None:
        return LabelProbabilities("refusal" if _REFUSAL.match(answer) else "prose")
    return (
        LabelProbabilities("format") if form == "strict" else _conclude("lenient", lenient, words)
    )


def _conclude(reading: Reading, stated: Stated, words: Words) -> LabelProbabilities:
    """Return the largest probability of each kind; none if a value is not a probability."""
    if any(not 0 <= value <= 1 for _, value in stated):
        return LabelProbabilities("range")
    largest = dict.fromkeys(words, 0.0)
    for kind, value in stated:
        largest[kind] = max(largest[kind], value)
    return LabelProbabilities(reading, largest)


def _read_strict(text: str, words: Words) -> Stated | None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines == ["0"]:
        return []
    if text.startswith("{"):
        return read_object(text, words)
    pairs = [_STRICT_PAIR.fullmatch(line) for line in lines]
    if lines and all(pairs):
        return [row for pair in pairs if pair for row in _name(pair, words)]
    matches = [match for line in lines if (match := _STRICT_LINE.fullmatch(line))]
    kinds = {kind.casefold(): kind for kind in words}
    named = [kinds.get(match["label"].casefold(), "") for match in matches]
    if len(matches) < len(lines) or sorted(named) != sorted(words):
        return None
    return [(kind, to_number(match["value"])) for kind, match in zip(named, matches, strict=True)]


def _read_lenient(text: str, words: Words) -> Stated | None:
    """Return what a reply states anywhere; None if it states nothing, not even that none is."""
    for stated in (read_json(text, words), _read_pairs(text, words), _read_lines(text, words)):
        if stated is not None:
            return stated
    first = next((line.strip() for line in _MARKUP.sub("", text).splitlines() if line.strip()), "")
    return [] if _ZERO.match(first) else None


def _read_pairs(text: str, words: Words) -> Stated | None:
    """Return the values of ``Stereotype: label, Probability: value`` anywhere in a reply."""
    pairs = [*_PAIR.finditer(_MARKUP.sub("", text))]
    return [row for pair in pairs for row in _name(pair, words)] if pairs else None


def _read_lines(text: str, words: Words) -> Stated | None:
    """Return the values of lines that begin with a kind; None if there is no such line."""
    stated: Stated = []
    for line in _MARKUP.sub("", text).splitlines():
        match = _STATED.match(line.strip()) or _LINE.match(line.strip())
        if match and len(match["label"].split()) <= _MAX_WORDS:
            stated += _name(match, words)
    return stated or None


def _name(match: re.Match[str], words: Words) -> Stated:
    """Return the value of a match for each kind that its label names."""
    value = to_number(match["value"])
    return [(kind, value) for kind in find_kinds(match["label"], words)]
