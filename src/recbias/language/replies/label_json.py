"""Labels in a reply that is JSON: an object with a value for each kind, or objects with labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from recbias.language.replies.label_values import (
    Stated,
    Words,
    find_kinds,
    has_digit,
    read_value,
)

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


def read_object(text: str, words: Words) -> Stated | None:
    """Return the values of a JSON object whose keys are the kinds; None for anything else."""
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, _Pairs) or sorted(key for key, _ in value) != sorted(words):
        return None
    numbers = [(kind, _to_value(number)) for kind, number in value]
    return None if any(math.isnan(number) for _, number in numbers) else numbers


def read_json(text: str, words: Words) -> tuple[Stated, bool] | None:
    """Return the values of the JSON in a reply, and whether it lists labels; None without any.

    A value is at the key of a kind, or in an object with a label. A key that is there twice has
    two values. Of a reply with too much broken JSON to be read, no kind has a value that can be
    read.
    """
    stated: Stated = []
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
            is_value = not math.isnan(number) or name == label or has_digit(str(value))
            if is_value:
                stated += [(kind, number) for kind in find_kinds(name, words)]
    return (stated, lists_labels) if stated or lists_labels else None


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, also of a key that is there twice."""


def _iterate_objects(text: str) -> Iterator[_Pairs | None]:
    """Yield the JSON objects in a text, and those in lists of them; None if it is not read on.

    After a brace that begins no object, the text is read again from the next one, until
    ``_MAX_BROKEN`` characters have been read in vain: the time grows with the length only.
    """
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
    return read_value(value.strip()) if isinstance(value, str) else math.nan
