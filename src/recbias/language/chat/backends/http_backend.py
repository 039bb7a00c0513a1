"""Requests over HTTP through the SDK of a provider; the wire format is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recbias.language.chat.backends.limited_client import EndlessAnswer, make_limited_client
from recbias.language.chat.backends.negotiation import Negotiation
from recbias.language.chat.endpoints import Credentials, as_text
from recbias.language.chat.failures import (
    Failure,
    Reaction,
    classify_status,
    read_error,
    shorten_message,
)
from recbias.language.chat.requests import ChatReply, ChatRequest
from recbias.language.chat.settings import LanguageModel

CONTENT_FILTER = "content_filter"
"""The code of a request, and the finish reason of a reply, that a content filter blocked."""

MALFORMED = "invalid JSON"
"""The cause of a failure: an answer that was cut off, or is in another format."""

MOST_TOKENS = 10**9
"""The most tokens of a request or reply; a server that states more counts something else."""

NO_KEY = "none"
"""The key that is sent where none is needed."""


class MalformedReply(Exception):
    """The answer of a server does not have the wire format.

    ``cause`` is that of a failure after which the request is not sent again; blank to repeat it.
    """

    def __init__(self, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True)
class WireFormat:
    """The interface of a provider.

    Args:
        sdk: The module of the SDK, for its errors.
        create: Sends a request; takes ``required`` as arguments and the rest as ``extra_body``.
        required: The parameters that ``create`` takes as arguments.
        build_payload: Returns the JSON of a request.
        read_reply: Returns the reply in the JSON of the answer to a request; raises
            MalformedReply.
        close: Closes the connections.
        renamed: The other names that parameters have on some servers.
        judge: Returns a failure with the cause and the reaction that it has for these requests.
    """

    sdk: Any
    create: Callable[..., Any]
    required: tuple[str, ...]
    build_payload: Callable[[ChatRequest], dict[str, Any]]
    read_reply: Callable[[Mapping[str, Any], ChatRequest], ChatReply]
    close: Callable[[], None]
    renamed: Mapping[str, str] = field(default_factory=dict)
    judge: Callable[[Failure], Failure] = lambda failure: failure


class HttpBackend:
    """Sends requests one by one; parameters that the server refuses are negotiated."""

    batch_size = 1

    def __init__(self, wire: WireFormat, credentials: Credentials, concurrency: int) -> None:
        self.concurrency = concurrency
        self._wire = wire
        self._credentials = credentials
        self._negotiation = Negotiation(wire.renamed)

    def answer(self, requests: Sequence[ChatRequest]) -> Sequence[ChatReply | Failure]:
        """Return the reply to each request, or why there is none."""
        return [self._send(request) for request in requests]

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _send(self, request: ChatRequest) -> ChatReply | Failure:
        sdk = self._wire.sdk
        negotiated = self._negotiation.describe()
        payload = self._negotiation.adapt(self._wire.build_payload(request))
        try:
            body = self._exchange(payload)
        except sdk.APITimeoutError:
            return Failure(cause="timeout", message="the server did not answer in time")
        except sdk.APIConnectionError as error:
            return self._clean(_describe_connection(error.__cause__ or error))
        except sdk.APIStatusError as error:
            response = error.response
            answer = _parse_json(response.content)
            return self._judge(response.status_code, answer, response.headers, payload)
        except (MalformedReply, EndlessAnswer) as error:
            return self._clean(Failure(cause=MALFORMED, message=str(error)))
        if isinstance(body.get("error"), Mapping) and not body.get("choices"):
            code = as_text(body["error"].get("code"))
            return self._judge(int(code) if code.isdecimal() else 500, body, {}, payload)
        return self._read(body, request, negotiated)

    def _exchange(self, payload: dict[str, Any]) -> Mapping[str, Any]:
        required = {name: payload[name] for name in self._wire.required}
        rest = {name: value for name, value in payload.items() if name not in required}
        response = self._wire.create(**required, extra_body=rest).http_response
        body = _parse_json(response.content)
        if not isinstance(body, Mapping):
            message = f"the answer is not a JSON object: {response.text.strip() or 'it is empty'}"
            raise MalformedReply(message)
        return body

    def _read(
        self, body: Mapping[str, Any], request: ChatRequest, negotiated: tuple[str, ...]
    ) -> ChatReply | Failure:
        try:
            reply = self._wire.read_reply(body, request)
        except MalformedReply as error:
            reaction: Reaction = "stop" if error.cause else "retry"
            cause = error.cause or MALFORMED
            return self._clean(Failure(cause=cause, message=str(error), reaction=reaction))
        return replace(
            reply,
            text=self._credentials.hide_in(reply.text),
            served_model=self._credentials.hide_in(reply.served_model),
            fingerprint=self._credentials.hide_in(reply.fingerprint),
            finish_reason=self._credentials.hide_in(reply.finish_reason),
            negotiated=negotiated,
        )

    def _judge(
        self, status: int, body: Any, headers: Mapping[str, str], payload: Mapping[str, Any]
    ) -> ChatReply | Failure:
        """Return what follows an answer that reports an error."""
        failure = self._wire.judge(self._clean(classify_status(status, body, headers)))
        if failure.reaction != "reject":
            return failure
        if as_text(read_error(body).get("code")) == CONTENT_FILTER:
            return ChatReply(outcome="refusal", finish_reason=CONTENT_FILTER)
        if self._negotiation.learn(payload, body):
            return replace(failure, reaction="resend")
        return failure

    def _clean(self, failure: Failure) -> Failure:
        """Return a failure whose message has no secrets and is short."""
        message = shorten_message(self._credentials.hide_in(failure.message))
        return replace(failure, message=message)


def make_client_options(
    sdk: Any, model: LanguageModel, credentials: Credentials
) -> dict[str, Any]:
    """Return the arguments of the client of an SDK, without repetitions of its own."""
    return {
        "api_key": credentials.key or NO_KEY,
        "base_url": model.server,
        "default_headers": credentials.headers,
        "default_query": dict(credentials.query),
        "timeout": model.timeout_s,
        "http_client": make_limited_client(sdk, model.timeout_s),
        "max_retries": 0,
    }


def read_count(usage: Any, name: str) -> int:
    """Return a number of tokens of an answer; 0 if it has none, or no plausible one.

    >>> read_count({"prompt_tokens": 12}, "prompt_tokens"), read_count(None, "prompt_tokens")
    (12, 0)
    """
    count = usage.get(name) if isinstance(usage, Mapping) else 0
    if not isinstance(count, int) or isinstance(count, bool):
        return 0
    return count if 0 <= count <= MOST_TOKENS else 0


def _parse_json(content: bytes) -> Any:
    """Return the JSON of an answer; None if it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _describe_connection(error: BaseException) -> Failure:
    """Return the failure of a connection that was refused, closed or cut."""
    return Failure(cause="connection", message=str(error) or type(error).__name__)
