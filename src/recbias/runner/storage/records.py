"""``stage.json``, the record of a stored result: sealed by a checksum, parsed against a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictStr, StringConstraints

from recbias.core.digests import compute_digest
from recbias.core.records import Stored
from recbias.runner.storage.serializers import FORMATS

RECORD = "stage.json"
"""The file of a result with its record."""

CHECKSUM = "sha256"
"""The key of ``stage.json`` with the checksum of the other keys."""

ADDRESS = "address"
"""The key with the address of the result: a record of another result is none of this one."""


def _require_known_kind(kind: str) -> str:
    if kind not in FORMATS:
        raise ValueError(f"no stage is of the kind {kind!r}")
    return kind


Amount: TypeAlias = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Sha256: TypeAlias = Annotated[str, StringConstraints(strict=True, pattern=r"\A[0-9a-f]{64}\z")]
FileName: TypeAlias = Annotated[
    str, StringConstraints(strict=True, pattern=r"\A[^./\\\x00-\x1f][^/\\\x00-\x1f]{0,200}\z")
]
"""A name that leads to no other folder."""

Kind: TypeAlias = Annotated[StrictStr, AfterValidator(_require_known_kind)]
Count: TypeAlias = Annotated[int, Field(strict=True, ge=0)]


class Schema(BaseModel):
    """The keys of a record beside its checksum, and their types."""

    model_config = ConfigDict(extra="forbid")

    address: StrictStr
    stage: StrictStr
    kind: Kind
    files: dict[FileName, tuple[Count, Sha256]]
    seconds: Amount = 0.0
    peak_memory_mb: Amount = 0.0
    warnings: tuple[StrictStr, ...] = ()
    facts: dict[str, Any] = {}
    subject: StrictStr = ""
    settings: StrictStr = ""
    cost: dict[str, Amount | None] = {}
    sizes: dict[str, Count] = {}


def render_record(stored: Stored, address: str) -> str:
    """Return the text of ``stage.json``."""
    return seal_record({ADDRESS: address, **asdict(stored)})


def unseal_and_parse(content: bytes, address: str) -> Stored | None:
    """Return the record in the content of ``stage.json``.

    Args:
        content: The bytes of the file.
        address: The address at which the file is.

    Returns:
        The record; None if it is damaged, of another result, or without an address, as those of
        earlier versions of recbias.
    """
    try:
        record = Schema.model_validate(unseal_record(content.decode("utf-8")))
    except (ValueError, RecursionError):
        return None
    if record.address != address:
        return None
    values = {name: getattr(record, name) for name in record.model_fields_set}
    return Stored(**{key.name: values[key.name] for key in fields(Stored) if key.name in values})


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
