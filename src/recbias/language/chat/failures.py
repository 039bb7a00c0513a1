"""Failures of requests: their causes, and whether a request is sent again."""

from __future__ import annotations

import email.utils
import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, TypeAlias

from recbias.core.printable import make_printable
from recbias.language.chat.endpoints import as_text

Reaction: TypeAlias = Literal["retry", "resend", "reject", "stop"]
"""What follows a failure: ``retry`` after a delay; ``resend`` at once, with other parameters;
``reject`` this request; ``stop`` all requests."""

BASE_DELAY = 0.5
"""The mean delay before the first repetition is half of this, in seconds."""

MAX_DELAY = 60.0

MAX_RETRY_AFTER = 600.0
"""A server that asks for a longer pause has a limit of hours or days: all requests stop."""

MAX_MESSAGE_LENGTH = 300

RETRIED = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
REJECTED = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}

NO_LIKELIHOOD = "no log-probabilities"
"""The cause of a failure: a server that does not give the log-probabilities of a prompt."""

QUOTA = "insufficient_quota"
"""The only code of an exhausted quota; some servers word a limit per minute as a quota."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a request has no reply.

    Args:
        cause: The cause in a word: ``429``, ``500``, ``timeout``, ``connection``,
            ``invalid JSON``.
        message: What the server or the network reported.
        reaction: What follows.
        retry_after: The seconds that the server asks to wait; 0 if it does not.
    """

    cause: str
    message: str
    reaction: Reaction = "retry"
    retry_after: float = 0.0

    @property
    def is_rate_limit(self) -> bool:
        """Whether requests are sent too fast."""
        return self.cause == str(HTTPStatus.TOO_MANY_REQUESTS.value)


def classify_status(status: int, body: Any, headers: Mapping[str, str]) -> Failure:
    """Return the failure that a server reports by a status code.

    >>> classify_status(503, None, {}).reaction
    'retry'
    >>> classify_status(404, {"error": {"message": "no such model"}}, {}).message
    '404: no such model'

    Args:
        status: The status code.
        body: The JSON of the answer.
        headers: The headers, by lower-case name.
    """
    error = read_error(body)
    message = f"{status}: {as_text(error.get('message')) or 'no reason given'}"
    if as_text(error.get("code")) == QUOTA:
        return Failure(cause=QUOTA, message=message, reaction="stop")
    wait = parse_retry_after(headers)
    is_retried = status in RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if is_retried and wait > MAX_RETRY_AFTER:
        message = f"{message}; the server asks to wait {wait:,.0f} s"
        return Failure(cause=str(status), message=message, reaction="stop")
    if is_retried:
        return Failure(cause=str(status), message=message, retry_after=wait)
    reaction: Reaction = "reject" if status in REJECTED else "stop"
    return Failure(cause=str(status), message=message, reaction=reaction)


def read_error(body: Any) -> Mapping[str, Any]:
    """Return the error object of an answer, in the forms of OpenAI, Anthropic and FastAPI.

    >>> read_error({"detail": [{"loc": ["body", "seed"], "msg": "not permitted"}]})
    {'message': 'body.seed: not permitted'}
    """
    if not isinstance(body, Mapping):
        return {"message": as_text(body)}
    error = body.get("error", body)
    if not isinstance(error, Mapping):
        return {"message": as_text(error)}
    details = error.get("detail")
    if isinstance(details, list):
        return {"message": "; ".join(_describe_detail(detail) for detail in details)}
    return {"message": as_text(details), **error}


def _describe_detail(detail: Any) -> str:
    if not isinstance(detail, Mapping) or not isinstance(detail.get("loc"), list):
        return as_text(detail)
    return f"{'.'.join(map(as_text, detail['loc']))}: {as_text(detail.get('msg'))}"


def shorten_message(text: str) -> str:
    """Return a server's message as one short printable line."""
    return make_printable(text.strip(), MAX_MESSAGE_LENGTH)


def parse_retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait; 0 if it does not, or not readably.

    >>> parse_retry_after({"retry-after": "20"}), parse_retry_after({"retry-after-ms": "500"})
    (20.0, 0.5)
    """
    seconds = _parse_number(headers.get("retry-after-ms", "")) / 1000
    text = headers.get("retry-after", "")
    seconds = seconds or _parse_number(text) or _parse_date(text)
    return max(seconds, 0.0)


def _parse_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _parse_date(text: str) -> float:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0.0


def sample_delay(tries: int, chance: random.Random) -> float:
    """Return the seconds before the next try: between half of a bound that doubles, and all of it.

    Delays near 0 would count several failures of one short overload.

    Args:
        tries: The number of failed tries, from 1.
        chance: The source of the jitter.
    """
    bound = min(MAX_DELAY, BASE_DELAY * 2.0 ** min(tries - 1, 30))
    return chance.uniform(bound / 2, bound)
