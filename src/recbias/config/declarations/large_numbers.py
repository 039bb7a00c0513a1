"""Numbers that are too large for the arrays in which they would be stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recbias.formats.yaml.source_map import KeyPath

LARGEST = 2**63 - 1
"""The largest number that fits 64 bits."""


def find_too_large(raw: Any, inner: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield infinite numbers and those beyond 64 bits, with their locations.

    >>> list(find_too_large({"n": [1, 2**63]}))
    [(('n', 1), 9223372036854775808)]
    """
    if isinstance(raw, (list, dict)):
        for key, value in raw.items() if isinstance(raw, dict) else enumerate(raw):
            yield from find_too_large(value, (*inner, key))
    elif isinstance(raw, (int, float)) and abs(raw) > LARGEST:
        yield inner, raw
