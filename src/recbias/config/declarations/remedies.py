"""What to write instead of a rejected value."""

from __future__ import annotations

from typing import Any

from recbias.config.declarations.type_text import render_yaml, suggest_spelling
from recbias.config.settings import is_valid
from recbias.core.errors import UserError
from recbias.formats.yaml.source_map import KeyPath, Mark
from recbias.formats.yaml.tree import read_text

_SWEPT = ("models", "seed")
"""The sections whose settings a sweep may vary within one run."""

_MAX_VALUES = 12
"""The largest number of values that are repeated in the help line."""


def suggest_remedy(hint: Any, raw: Any, location: KeyPath) -> str:
    """Return how a rejected value, or several values in one, should be written; else blank.

    >>> suggest_remedy(int, "10,20", ("models", 1, "neighbors"))
    'one value at a time; several values: sweep: {models.1.neighbors: [10, 20]}'
    >>> suggest_remedy(int, "40", ("models", 1, "neighbors"))
    'write it without quotes: 40'
    """
    values = _split_values(raw)
    is_swept = location[0] in _SWEPT and all(isinstance(step, str) for step in location[2:])
    if (
        is_swept
        and 1 < len(values) <= _MAX_VALUES
        and all(is_valid(hint, item) for item in values)
    ):
        path, written = ".".join(map(str, location)), ", ".join(map(render_yaml, values))
        return f"one value at a time; several values: sweep: {{{path}: [{written}]}}"
    return suggest_spelling(hint, raw)


def _split_values(raw: Any) -> list[Any]:
    """Return the values of a list, or of a text such as ``10,20``; none of a text without YAML."""
    if not isinstance(raw, str):
        return raw if isinstance(raw, list) else []
    try:
        values = read_text(f"[{raw}]", Mark()).data
    except UserError:
        return []
    return values if isinstance(values, list) else []
