"""Labels in a reply that is JSON: an object with a value for each kind, or objects with labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recbias.language.replies.label_values import VALUE, Stated, Words, find_kinds, to_number

_PROBABILITY_KEYS = ("probability", "score", "value", "p")
_LABEL_KEYS = ("stereotype", "label", "kind", "type")


def make_label_schema(kinds: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of a reply: an object with a number for each kind."""
    properties = {kind: {"type": "number"} for kind in kinds}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_object(text: str, words: Words) -> Stated | None:
    """Return the values of a JSON object whose keys are the kinds; None for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.keys() != set(words):
        return None
    numbers = [(kind, number) for kind in words if (number := _to_value(value[kind])) is not None]
    return numbers if len(numbers) == len(words) else None


def read_json(text: str, words: Words) -> Stated | None:
    """Return the values of the JSON in a reply, by keys or as objects with a label."""
    stated: Stated | None = None
    for entry in _iterate_objects(text):
        label = _get(entry, _LABEL_KEYS)
        number = _to_value(_get(entry, _PROBABILITY_KEYS))
        pairs = [(str(label), number)] if isinstance(label, str) else []
        pairs += [
            (key, _to_value(_get(child, _PROBABILITY_KEYS) if isinstance(child, dict) else child))
            for key, child in entry.items()
        ]
        for name, value in pairs:
            if value is not None and (kinds := find_kinds(name, words)):
                stated = [*(stated or []), *((kind, value) for kind in kinds)]
    return stated


def _iterate_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, and those in lists of them."""
    decoder, position = json.JSONDecoder(), 0
    while (start := text.find("{", position)) >= 0:
        try:
            value, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        yield value
        for child in value.values():
            if isinstance(child, list):
                yield from (entry for entry in child if isinstance(entry, dict))


def _get(entry: Mapping[str, Any], keys: Iterable[str]) -> Any:
    values = {str(key).casefold(): value for key, value in entry.items()}
    return next((values[key] for key in keys if key in values), None)


def _to_value(value: Any) -> float | None:
    """Return a JSON value as a number; None if it is none."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, str) and (match := re.fullmatch(VALUE, value.strip(), re.IGNORECASE)):
        return to_number(match["value"])
    return None
