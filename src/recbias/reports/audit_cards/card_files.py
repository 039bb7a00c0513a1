"""``card.json``: written with its digest, signed with a key, and read as untrusted data."""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from recbias.core.digests import compute_digest
from recbias.core.errors import DataError, MalformedLine, MissingFile, OutOfRange
from recbias.core.input_files import open_input
from recbias.formats.json_files import parse_json
from recbias.reports.audit_cards.card import Card, Signature

MOST_BYTES = 64 * 2**20
"""The size above which a card is refused."""

LEAST_KEY_BYTES = 16
"""The length below which a key is refused."""

REMEDY = "give a card.json that `recbias report RUN --format card` wrote"

SignatureState: TypeAlias = Literal["valid", "wrong", "absent", "not checked", "none"]
"""``absent`` with a key, ``not checked`` without one, ``none`` where there is neither."""


def seal_card(card: Card, key: bytes | None = None) -> Card:
    """Return a card with its digest, and with a key also its signature.

        digest = SHA-256( canonical JSON of the card without digest and signature )
        signature = HMAC-SHA256( key, digest )

    The digest shows that the card was not changed by accident: whoever changes it can compute it
    again. The signature shows that somebody who has the key wrote it.

    Source:
        Krawczyk, Bellare and Canetti, "HMAC: keyed-hashing for message authentication", RFC 2104.
    """
    digest = compute_card_digest(card)
    signature = None
    if key is not None:
        signature = Signature(algorithm="HMAC-SHA256", value=_compute_code(digest, key))
    return card.model_copy(update={"digest": digest, "signature": signature})


def compute_card_digest(card: Card) -> str:
    """Return the digest that a card must have."""
    return compute_digest(card.model_dump(exclude={"digest", "signature"}))


def check_signature(card: Card, key: bytes | None) -> SignatureState:
    """Return whether the signature of a card is that of a key."""
    if card.signature is None:
        return "none" if key is None else "absent"
    if key is None:
        return "not checked"
    code = _compute_code(compute_card_digest(card), key)
    return "valid" if hmac.compare_digest(code, card.signature.value) else "wrong"


def _compute_code(digest: str, key: bytes) -> str:
    return hmac.new(key, digest.encode(), "sha256").hexdigest()


def read_key(variable: str | None) -> bytes | None:
    """Return the key in an environment variable; None without a name.

    Raises:
        OutOfRange: The variable is not set, or its text is too short for a key.
    """
    if variable is None:
        return None
    key = os.environ.get(variable, "").encode("utf-8", "surrogateescape")
    if len(key) < LEAST_KEY_BYTES:
        message = f"the environment variable {variable} " + (
            f"holds {len(key)} bytes, which is too short for a key" if key else "is not set"
        )
        remedy = f"set it to a secret of at least {LEAST_KEY_BYTES} bytes: openssl rand -hex 32"
        raise OutOfRange(message, where="--key-env", remedy=remedy)
    return key


def render_card(card: Card) -> str:
    """Return a card as JSON with one line for each estimate and comparison."""
    parts = [f"{_render(name)}: {_render_part(part)}" for name, part in card.model_dump().items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _render_part(part: Any) -> str:
    if not isinstance(part, list) or not part:
        return _render(part)
    return "[\n" + ",\n".join(map(_render, part)) + "\n]"


def _render(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_card(path: Path) -> Card:
    """Read a card, which may come from anybody.

    Raises:
        MissingFile: The file cannot be read.
        MalformedLine: It is not JSON.
        DataError: It is too large, or its content is not that of a card; the place is that of the
            first fault.
    """
    try:
        with open_input(path) as stream:
            data = stream.read(MOST_BYTES + 1)
    except MissingFile as error:
        error.remedy = REMEDY
        raise
    if len(data) > MOST_BYTES:
        message = f"has more than {MOST_BYTES:,} bytes: it is not a card"
        raise DataError(message, where=str(path), remedy=REMEDY)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DataError("is not UTF-8: it is no card", where=str(path), remedy=REMEDY) from error
    try:
        content = parse_json(text, path, pairs=lambda pairs: _refuse_repetition(pairs, path))
    except MalformedLine as error:
        error.remedy = REMEDY
        raise
    try:
        return Card.model_validate(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        more = f" ({error.error_count() - 1:,} more)" if error.error_count() > 1 else ""
        message = f"is not that of a card: {fault['msg']}{more}"
        location = f"{path}: {_format_place(fault['loc'])}"
        raise DataError(message, where=location, remedy=REMEDY) from error


def _refuse_repetition(pairs: Sequence[tuple[str, Any]], path: Path) -> dict[str, Any]:
    """Return an object; two readers may take different ones of two values of one key."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        name = next(name for name in names if names.count(name) > 1)
        raise DataError(f"has the key {name!r} twice", where=str(path), remedy=REMEDY)
    return content


def _format_place(location: Sequence[int | str]) -> str:
    return ".".join(map(str, location)) or "the file"
