"""The labels that replies state with their probabilities, in JSON or in lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

_EXPONENT = r"(?:e[-+]?\d{1,3})?"
_NUMBER = rf"(?:\d+(?:[.,]\d+)?|[.,]\d+){_EXPONENT}(?:\s*(?:%|per ?cent\b|/\s*\d+|out of \d+))?"
"""The pattern of a number, also with an exponent, as a percentage or fraction."""

_VALUE = rf"(?P<value>-?{_NUMBER}|(?:yes|no|true|false|present|absent)\b)"
"""The pattern of a number or a word for one."""

_Stated: TypeAlias = list[tuple[str, float]]
"""Kinds and their values, in the order of the reply; NaN is a value that cannot be read."""


_Words: TypeAlias = Mapping[str, Iterable[str]]
"""The words by which each kind may be named, in lower case."""

_WORD = re.compile(r"[^\W_]+")
_LEADING = re.compile(rf"[\s|(]*{_VALUE}", re.IGNORECASE)
_BRACKETED = re.compile(rf"[^\d()]{{1,40}}\((?P<value>{_NUMBER})(?=\s*\))", re.IGNORECASE)
_NAMED = re.compile(
    rf".*?\bprobability[\s:=]*(?:(?:is|of)\b[\s:=]*)?(?P<value>-?{_NUMBER})", re.IGNORECASE
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


def _find_kinds(label: str, words: _Words) -> list[str]:
    """Return the kinds of which a label has a word.

    >>> _find_kinds("Sexist gender_roles", {"gender": ["gender"], "race": ["race", "racial"]})
    ['gender']
    """
    text = _pad(label.casefold())
    return [kind for kind, names in words.items() if any(_pad(name) in text for name in names)]


def _pad(text: str) -> str:
    """Return the words of a text, each with a space before and after it."""
    return f" {' '.join(_WORD.findall(text))} "


def _read_value(text: str) -> float:
    """Return the one value that a text states; NaN for several, a range or a comparison.

    The value is at the start, in brackets after a few words, or after ``probability``. Another
    number with a fraction or per cent makes it unreadable, and so does text right after a word.

    >>> [_read_value(text) for text in ("0.8 (women)", "high (0.75)", "weak. Probability: 70 %")]
    [0.8, 0.75, 0.7]
    >>> [_read_value(text) for text in ("0.6-0.8", "less than 0.1", "0.9; rather 0.1", "N/A")]
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
    return _to_number(match["value"]) if is_single else math.nan


def _has_digit(text: str) -> bool:
    """Return whether a text has a digit, so that it may state a value."""
    return any(map(str.isdigit, text))


def _to_number(text: str) -> float:
    """Return a stated value as a number: 0.7 for ``70 %``, ``7/10`` and ``0,7``; 1 for ``yes``.

    >>> [_to_number(text) for text in ("70 %", "7/10", "0,7", "1e-3", "yes", "no", "1/0")]
    [0.7, 0.7, 0.7, 0.001, 1.0, 0.0, nan]
    """
    word = text.casefold()
    if word in {"yes", "true", "present"}:
        return 1.0
    if word in {"no", "false", "absent"}:
        return 0.0
    number, *parts = re.findall(rf"-?(?:\d+(?:\.\d+)?|\.\d+){_EXPONENT}", word.replace(",", "."))
    whole = 100.0 if "%" in word or "cent" in word else float(parts[0]) if parts else 1.0
    return float(number) / whole if whole else math.nan


_PROBABILITY_KEYS = ("probability", "score", "value", "p")
_LABEL_KEYS = ("stereotype", "label", "kind", "type")
_MAX_BROKEN = 500_000
"""The characters of a reply that are read again after a brace that begins no object."""


def make_label_schema(kinds: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of a reply: an object with a number for each kind."""
    properties = {kind: {"type": "number"} for kind in kinds}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _read_object(text: str, words: _Words) -> _Stated | None:
    """Return the values of a JSON object whose keys are the kinds; None for anything else."""
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, _Pairs) or sorted(key for key, _ in value) != sorted(words):
        return None
    numbers = [(kind, _to_value(number)) for kind, number in value]
    return None if any(math.isnan(number) for _, number in numbers) else numbers


def _read_json(text: str, words: _Words) -> tuple[_Stated, bool] | None:
    """Return the values of the JSON in a reply, and whether it lists labels; None without any.

    A value is at the key of a kind, or in an object with a label. A key that is there twice has
    two values. Of a reply with too much broken JSON to be read, no kind has a value that can be
    read.
    """
    stated: _Stated = []
    lists_labels = False
    for entry in _iterate_objects(text):
        if entry is None:
            return [(kind, math.nan) for kind in words], False
        label = _get(entry, _LABEL_KEYS)
        pairs: list[tuple[str, Any]] = []
        if isinstance(label, str):
            lists_labels = True
            pairs.append((label, _get(entry, _PROBABILITY_KEYS)))
        pairs += [
            (key, _get(child, _PROBABILITY_KEYS) if isinstance(child, _Pairs) else child)
            for key, child in entry
        ]
        for name, value in pairs:
            number = _to_value(value)
            is_value = not math.isnan(number) or name == label or _has_digit(str(value))
            if is_value:
                stated += [(kind, number) for kind in _find_kinds(name, words)]
    return (stated, lists_labels) if stated or lists_labels else None


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, also of a key that is there twice."""


def _iterate_objects(text: str) -> Iterator[_Pairs | None]:
    """Yield the JSON objects in a text, and those in lists of them; None if it is not read on."""
    decoder, position, n_broken = json.JSONDecoder(object_pairs_hook=_Pairs), 0, 0
    while (start := text.find("{", position)) >= 0:
        if n_broken >= _MAX_BROKEN:
            yield None
            return
        try:
            value, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            n_broken += getattr(error, "pos", len(text)) - start
            position = start + 1
            continue
        yield value
        for _, child in value:
            if isinstance(child, list) and not isinstance(child, _Pairs):
                yield from (entry for entry in child if isinstance(entry, _Pairs))


def _get(entry: _Pairs, keys: Iterable[str]) -> Any:
    values = {key.casefold(): value for key, value in entry}
    return next((values[key] for key in keys if key in values), None)


def _to_value(value: Any) -> float:
    """Return a JSON value as a number; NaN if it is none."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    return _read_value(value.strip()) if isinstance(value, str) else math.nan


Form: TypeAlias = Literal["strict", "lenient"]
"""What is read: replies in a form that was asked for only, or also similar ones."""

_Reading: TypeAlias = Literal[
    "strict", "lenient", "format", "range", "unclear", "refusal", "prose"
]
"""How a reply was read, or why it was not: in a form that only ``lenient`` reads, a number that is
no probability, no kind with one value, a refusal, or text in which no label is stated."""

READ: tuple[_Reading, ...] = ("strict", "lenient")
"""The readings of replies with probabilities."""

_STRICT_NUMBER = rf"(?:\d*\.\d+|\d+){_EXPONENT}"
_STRICT_VALUE = rf"(?P<value>{_STRICT_NUMBER}|yes|no)"
_STRICT_LINE = re.compile(rf"(?P<label>[^:]+?)\s*:\s*{_STRICT_VALUE}", re.IGNORECASE)
_ASKED_LINE = re.compile(
    rf"(?P<label>[^:]+?)\s*:\s*(?P<value>{_STRICT_NUMBER}(?: ?%)?|yes|no)", re.IGNORECASE
)
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
    rf"(?P<label>[^:=|;,.\n\d]{{1,60}}?)\s*[:=|][\s|(]*(?P<value>{_NUMBER})(?![\w.])",
    re.IGNORECASE,
)
_NO_LABEL = re.compile(
    r"0(?:\.0*)?|(?:there\s+(?:is|are)\s+)?no\s+stereotypes?(?:\s+(?:is|are))?(?:\s+(?:present|found))?"
    r"(?:\s+in\s+(?:this|the)\s+(?:text|description))?[.!]?",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\W*(?:unfortunately\W+)?"
    r"(?:(?:i['’]?m|i am)\s+(?:very\s+)?(?:sorry|unable|not able)|sorry\b|i\s+apologi[sz]e"
    r"|as an ai\b|i\s+(?:can(?:no|['’])?t|can not|won['’]?t|will not|must decline|decline))",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[*`#\"\[\]]+|^\s*(?:>\s*)*(?:(?:[-•+]|\d+[.)])\s+|\|)?", re.MULTILINE)
_BLANKS = re.compile(r"\s+")
_NEXT_LABEL = re.compile(
    r"(?:[,;|]\s?|(?<=[\d%]) ?/ ?|(?<=[\d%])(?:\]+\s*\[*|\.? ))"
    r"(?=(?P<label>[^:=|;,.\n\d]{1,60})[:=])"
)
_ASCII_SIGNS = str.maketrans("：，；％（）＝｜", ":,;%()=|")
"""Signs as they are written with Chinese characters, and as the patterns have them."""

_ALONE = re.compile(_VALUE, re.IGNORECASE)
"""A value alone, where one kind was asked for."""

_RATING = re.compile(
    rf"(?:\[\[|^\W*(?:final |my )?(?:rating|score|probability|verdict|answer)\W+){_VALUE}\W*$",
    re.IGNORECASE | re.MULTILINE,
)
"""The same in double brackets, or behind a word for it, at the end of a line."""

_CONTRAST = re.compile(
    r"\b(?:no|not|non|never|without|but|except|rather|less|more|than)\b", re.IGNORECASE
)
_MAX_WORDS = 4  # the longest label that begins a line; what is longer is a sentence


@dataclass(frozen=True)
class LabelProbabilities:
    """What a reply says about each kind of label.

    Args:
        reading: How it was read, or why not.
        probabilities: The probability of each kind, NaN where the reply does not state one value
            that can be read; empty if the reply was not read.
    """

    reading: _Reading
    probabilities: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        """Whether there are probabilities."""
        return self.reading in READ


def is_refusal(answer: str) -> bool:
    """Return whether an answer begins with a refusal or an apology in English.

    >>> is_refusal("I'm sorry, I can't help with that."), is_refusal("I am Legend (2007)")
    (True, False)
    """
    return _REFUSAL.match(answer) is not None


def read_labels(answer: str, words: _Words, form: Form = "lenient") -> LabelProbabilities:
    r"""Return the probability of each kind that a reply states.

    ``strict`` reads a reply that is nothing but one line ``kind: probability`` for each kind, a
    JSON object with these keys, lines ``Stereotype: label, Probability: probability``, or ``0``
    for none; the value may be ``yes`` or ``no``. ``lenient`` also reads such lines and values
    between other text, in markup, with words of a kind for its name, as percentages and
    fractions, and the sentence ``No stereotypes are present``; and XML, ``[[0.8]]``, and a number
    alone where one kind was asked for. What is stated in JSON or on a line ``kind: probability``
    outranks all else that the reply says of this kind.

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
        return LabelProbabilities("refusal" if is_refusal(answer) else "prose")
    return (
        LabelProbabilities("format") if form == "strict" else _conclude("lenient", lenient, words)
    )


def _conclude(reading: _Reading, stated: _Stated, words: _Words) -> LabelProbabilities:
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


def _read_strict(text: str, words: _Words) -> _Stated | None:
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    if lines == ["0"]:
        return [(kind, 0.0) for kind in words]
    if text.startswith("{"):
        return _read_object(text, words)
    pairs = [_STRICT_PAIR.fullmatch(line) for line in lines]
    if lines and all(pairs):
        return _complete([row for pair in pairs if pair for row in _name(pair, words)], "", words)
    matches = [match for line in lines if (match := _STRICT_LINE.fullmatch(line))]
    kinds = {kind.casefold(): kind for kind in words}
    named = [kinds.get(match["label"].casefold(), "") for match in matches]
    if len(matches) < len(lines) or sorted(named) != sorted(words):
        return None
    return [(kind, _to_number(match["value"])) for kind, match in zip(named, matches, strict=True)]


def _read_lenient(text: str, words: _Words) -> _Stated | None:
    """Return what a reply states anywhere; None if it states nothing, not even that none is."""
    lines = _MARKUP.sub("", _divide_elements(text.translate(_ASCII_SIGNS), words))
    lines = _join_blanks(lines)
    plain = _divide_lists(lines, words)
    asked, lists_labels = _read_json(text, words) or ([], False)
    if lists_labels:
        return _complete(asked, "", words)
    pairs = [] if asked else [*_PAIR.finditer(plain)]
    if pairs:
        stated = [row for pair in pairs for row in _name(pair, words)]
        return _complete(stated, _PAIR.sub("", plain), words)
    asked = asked + _read_asked(lines, words)
    others = _read_lines(plain, words)
    if asked or others:
        named = {kind for kind, _ in asked}
        others += _find(plain, words)
        return asked + [(kind, value) for kind, value in others if kind not in named]
    if len(words) == 1:
        ratings = [
            *filter(None, [_ALONE.fullmatch(plain.strip().removesuffix("."))]),
            *_RATING.finditer(text),
        ]
        if ratings:
            return [(kind, _to_number(rating["value"])) for kind in words for rating in ratings]
    first, _, rest = plain.strip().partition("\n")
    is_none = _NO_LABEL.fullmatch(first.strip()) and not _has_digit(rest)
    return [(kind, 0.0) for kind in words] if is_none and not _find_kinds(rest, words) else None


def _read_asked(text: str, words: _Words) -> _Stated:
    """Return the values of lines in the form that was asked for, also as percentages."""
    kinds = {kind.casefold(): kind for kind in words}
    matches = [_ASKED_LINE.fullmatch(line.strip()) for line in text.splitlines()]
    named = [(kinds.get(match["label"].casefold()), match) for match in matches if match]
    return [(kind, _to_number(match["value"])) for kind, match in named if kind]


def _divide_elements(text: str, words: _Words) -> str:
    """Return a text with a line ``kind: probability`` for ``<kind>probability</kind>``."""
    names = "|".join(re.escape(name) for names in words.values() for name in names)
    element = re.compile(rf"<({names})\b[^<>]{{0,80}}>([^<]{{0,80}})</\1>", re.IGNORECASE)
    return element.sub(r"\n\1: \2\n", text)


def _join_blanks(text: str) -> str:
    """Return a text with one blank, or one line break, for each run of them."""
    return _BLANKS.sub(lambda run: "\n" if "\n" in run[0] else " ", text)


def _divide_lists(text: str, words: _Words) -> str:
    """Return a text with a line for each kind of a list: ``gender: 0.8, race: 0``."""

    def divide(match: re.Match[str]) -> str:
        label = match["label"]
        is_kind = _find_kinds(label, words) and not _CONTRAST.search(label)
        return "\n" if is_kind else match[0]

    return _NEXT_LABEL.sub(divide, text)


def _complete(stated: _Stated, others: str, words: _Words) -> _Stated:
    """Return the largest value of each kind in a list of labels, 0 if it is not mentioned."""
    values = {kind: [value for name, value in stated if name == kind] for kind in words}
    for kind in _find_kinds(others, words):
        values[kind] = values[kind] or [math.nan]
    return [(kind, float(np.max(listed, initial=0.0))) for kind, listed in values.items()]


def _read_lines(text: str, words: _Words) -> _Stated:
    """Return the values of lines that begin with a kind; NaN for a number that is no value."""
    stated: _Stated = []
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match and len(match["label"].split()) <= _MAX_WORDS:
            rows = _name(match, words)
            stated += [row for row in rows if _has_digit(line) or not math.isnan(row[1])]
    return stated


def _find(text: str, words: _Words) -> _Stated:
    """Return the numbers after words of a kind anywhere in a text."""
    stated = [row for match in _ANYWHERE.finditer(text) for row in _name(match, words)]
    return [(kind, value if 0 <= value <= 1 else math.nan) for kind, value in stated]


def _name(match: re.Match[str], words: _Words) -> _Stated:
    """Return the value of a match for each kind that its label names."""
    value = math.nan if _CONTRAST.search(match["label"]) else _read_value(match["value"])
    return [(kind, value) for kind in _find_kinds(match["label"], words)]
