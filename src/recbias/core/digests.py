"""Content addresses: SHA-256 of canonical JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from recbias.core.input_files import open_input


def to_canonical_json(value: object) -> str:
    """Return the canonical JSON text of a value: keys sorted, no spaces.

    >>> to_canonical_json({"b": 1, "a": (2.0, Path("x"))})
    '{"a":[2.0,"x"],"b":1}'
    """
    return _CANONICAL.encode(value)


def compute_digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hex."""
    return digest_text(to_canonical_json(value))


def digest_text(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex; MissingFile if it cannot be read."""
    with open_input(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _to_plain(value: Any) -> object:
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "item"):
        return value.item()
    message = f"not JSON: {type(value).__name__}"
    raise TypeError(message)


_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_to_plain
)
