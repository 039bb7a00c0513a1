"""``stage.json``, the record of a stored result, sealed by a checksum."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recbias.core.digests import compute_digest
from recbias.core.records import Stored
from recbias.runner.storage.serializers import FORMATS

RECORD = "stage.json"
"""The file of a result with its record."""

CHECKSUM = "sha256"
"""The key of ``stage.json`` with the checksum of the other keys."""

ADDRESS = "address"
"""The key with the address of the result: a record of another result is none of this one."""


def render_record(stored: Stored, address: str) -> str:
    """Return the text of ``stage.json``."""
    return seal_record({ADDRESS: address, **asdict(stored)})


def unseal_and_parse(content: bytes, address: str) -> Stored | None:
    """Return the record in the content of ``stage.json``.

    Args:
        content: The bytes of the file.
        address: The address at which the file is.

    Returns:
        The record; None if it is damaged, of another result or of an unknown kind, or names files
        in other folders: a store may come from somebody else.
    """
    try:
        record = unseal_record(content.decode("utf-8"))
        is_of_address = record.pop(ADDRESS, None) == address
        stored = Stored(**{**record, "warnings": tuple(record["warnings"])})
    except (ValueError, KeyError, TypeError):
        return None
    is_inside = all(name == Path(name).name != "" for name in stored.files)
    if not is_of_address or stored.kind not in FORMATS or not is_inside:
        return None
    return stored


def seal_record(record: Mapping[str, Any]) -> str:
    """Return the text of a record with its checksum."""
    plain = json.loads(json.dumps(record, default=str))
    return json.dumps({**plain, CHECKSUM: compute_digest(plain)}, ensure_ascii=False)


def unseal_record(text: str) -> dict[str, Any]:
    """Return the record in a text.

    Raises:
        ValueError: It is no record, or does not match its checksum.
    """
    record = json.loads(text)
    if not isinstance(record, dict) or record.pop(CHECKSUM, "") != compute_digest(record):
        raise ValueError(f"{RECORD} does not match its checksum")
    return record
