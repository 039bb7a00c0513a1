"""Addresses of servers without the secrets in them, and the removal of secrets from texts."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from recbias.core.errors import OutOfRange
from recbias.core.printable import make_printable

HIDDEN = "[hidden]"
"""What a secret in a text is replaced by."""

MIN_SECRET_LENGTH = 8
"""Shorter secrets, and shorter parts of one, are words that may occur in any text (``EMPTY``)."""

FIXED_FIELDS = {"messages", "model", "n", "stream"}
"""Fields of a request that ``extra_body`` may not replace."""

_SECRET_NAME = re.compile(
    r"(^|\.)(key|token)$|(api|access|auth|secret|private|bearer)[_-]?(key|token)$"
    r"|(secret|password|authorization|credentials?)$",
    re.IGNORECASE,
)
"""The name of a field that holds a secret, such as ``api_key``; not ``prompt_cache_key``."""

_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9a-fA-F.]*:[0-9a-fA-F:.]*")
"""A host name or an IP address, as ``urlsplit`` returns it."""


@dataclass(frozen=True)
class Credentials:
    """The secrets that a request is sent with; they are neither stored nor shown.

    Args:
        key: The key of the user's account; may be empty.
        userinfo: ``user:password`` of the base URL; may be empty.
        query: The query of the base URL.
    """

    key: str = field(default="", repr=False)
    userinfo: str = field(default="", repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The header of HTTP Basic authentication, if the base URL has a password."""
        return {"Authorization": f"Basic {self._basic}"} if self.userinfo else {}

    def hide_in(self, text: str) -> str:
        """Return a text without the secrets, and without parts of them.

        >>> Credentials(key="sk-1234567890").hide_in("Incorrect API key: sk-12345678..")
        'Incorrect API key: [hidden]..'
        """
        password = self.userinfo.partition(":")[2]
        secrets = {self.key, self.userinfo, self._basic, password, *self.query.values()}
        secrets |= {quote(secret, safe="") for secret in secrets}
        n = MIN_SECRET_LENGTH
        parts = {secret[i : i + n] for secret in secrets for i in range(len(secret) - n + 1)}
        hidden = bytearray(len(text))
        for part in parts:
            start = text.find(part)
            while start >= 0:
                hidden[start : start + n] = b"x" * n
                start = text.find(part, start + 1)
        if not any(hidden):
            return text
        return "".join(
            HIDDEN if run[0].startswith(b"x") else text[run.start() : run.end()]
            for run in re.finditer(b"x+|\0+", hidden)
        )

    @property
    def _basic(self) -> str:
        return base64.b64encode(self.userinfo.encode()).decode()


def strip_url(url: str) -> str:
    """Return a URL without user name, password, query, fragment and final slash.

    >>> strip_url("https://me:secret@example.org/v1/?key=secret")
    'https://example.org/v1'
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def read_credentials(url: str) -> Credentials:
    """Return the secrets in a URL."""
    parts = urlsplit(url)
    userinfo = parts.netloc.rpartition("@")[0]
    return Credentials(userinfo=unquote(userinfo), query=dict(parse_qsl(parts.query)))


def validate_url(url: str) -> None:
    """Raise OutOfRange unless a text is the ``http`` or ``https`` address of a server."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and parts.port != 0
        is_valid = is_valid and bool(_HOST.fullmatch(parts.hostname or ""))
    except ValueError:
        is_valid = False
    if not is_valid or " " in url or make_printable(url, None) != url:
        message = "must be the address of a server, http://host:port/path or https://host/path"
        raise OutOfRange(message, where="base_url", remedy="such as http://127.0.0.1:8000/v1")


def validate_extra_body(body: Mapping[str, Any]) -> None:
    """Raise OutOfRange if a field of every request belongs to others, or is called as a secret.

    Args:
        body: The fields, which are stored with the settings.
    """
    fixed = sorted(FIXED_FIELDS & set(body))
    if fixed:
        message = f"{', '.join(fixed)} cannot be set here"
        raise OutOfRange(message, where="extra_body", remedy=f"leave {fixed[0]} out")
    for name, value in body.items():
        if _SECRET_NAME.search(str(name)):
            message = f"{name} seems to be a secret, and a spec is stored and shared"
            remedy = "name the environment variable of the key by api_key_env"
            raise OutOfRange(message, where="extra_body", remedy=remedy)
        if isinstance(value, Mapping):
            validate_extra_body({f"{name}.{field}": cell for field, cell in value.items()})


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine.

    >>> is_loopback("http://localhost:11434/v1"), is_loopback("https://example.org")
    (True, False)
    """
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def as_text(value: Any) -> str:
    """Return a field of a server's JSON as text; empty if it is null or not a plain value."""
    return str(value) if isinstance(value, (str, int, float)) else ""
