"""JSON text with the line of each error, and JSON objects ``{query: {item: number}}``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from recbias.core.errors import MalformedLine
from recbias.formats.text_files import read_text

Pairs: TypeAlias = tuple[tuple[str, Any], ...]
"""A JSON object as (key, value) pairs in file order; repeated keys are kept."""

_MAX_DEPTH = 100
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""A JSON escape; ``half`` is an unpaired surrogate."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(?P<colon>\s*:)?|[{}\[\]]|[^\s{}\[\]",:]+', re.DOTALL)
"""A string, with the colon that makes it a key; a bracket; a number or word."""


def parse_json(
    text: str, path: Path, *, line: int = 1, pairs: Callable[[Any], Any] | None = None
) -> Any:
    """Return the value of a JSON text, which starts on a line of a file.

    ``pairs`` converts the key-value pairs of an object; ``dict`` by default.

    Raises:
        MalformedLine: The text is not JSON, is nested too deeply, or contains a number with too
            many digits or an unpaired surrogate.
    """
    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        location = f"{path}:{line + error.lineno - 1}"
        raise MalformedLine(f"is not JSON: {error.msg}", where=location) from error
    except RecursionError as error:
        starts = (token.start() for token, depth in _walk_tokens(text) if depth > _MAX_DEPTH)
        location = f"{path}:{line + text.count(chr(10), 0, next(starts, 0))}"
        raise MalformedLine("is not JSON: it is nested too deeply", where=location) from error
    except ValueError as error:
        max_digits = sys.get_int_max_str_digits()
        number = re.search(rf"\d{{{max_digits + 1}}}", text)
        location = f"{path}:{line + text.count(chr(10), 0, number.start() if number else 0)}"
        message = f"is not JSON: a number has more than {max_digits:,} digits"
        raise MalformedLine(message, where=location) from error
    _validate_surrogates(text, path, line)
    return value


def read_pairs(path: Path, shape: str) -> Pairs:
    """Return the keys and values of the JSON object in a file.

    Raises:
        MalformedLine: The file is not JSON, or not an object; the message names its ``shape``.
    """
    value = parse_json(read_text(path).decode(), path, pairs=tuple)
    if not isinstance(value, tuple):
        raise MalformedLine(f"is not an object of the form {shape}", where=f"{path}:1")
    return value


def locate_value(path: Path, number: int, *, depth: int, key: bool) -> str:
    """Return ``file:line`` of a key, or of a value in a list, in a JSON file.

    ``number`` counts the keys or values that ``depth`` brackets enclose, from 0.
    """
    text = read_text(path).decode()
    starts = (
        token.start()
        for token, token_depth in _walk_tokens(text)
        if token_depth == depth and token[0] not in "[]{}" and bool(token["colon"]) == key
    )
    start = next(islice(starts, number, None), 0)
    return f"{path}:{text.count(chr(10), 0, start) + 1}"


def _walk_tokens(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield each token with its depth; a bracket counts itself."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += token[0] in {"[", "{"}
        yield token, depth
        depth -= token[0] in {"]", "}"}


def _validate_surrogates(text: str, path: Path, line: int) -> None:
    """Raise MalformedLine if a JSON text has an unpaired surrogate: UTF-8 cannot encode it."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    if half := next((escape for escape in _ESCAPE.finditer(text) if escape["half"]), None):
        message = f"the escape {half[0]} is half a character"
        location = f"{path}:{line + text.count(chr(10), 0, half.start())}"
        remedy = "write the character itself, or both escapes of the surrogate pair"
        raise MalformedLine(message, where=location, remedy=remedy)
