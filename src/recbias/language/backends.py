"""What sends requests to a model, or answers them in the process: a reply or a failure for each.

The SDK of the provider sends, with its time limits and errors, but without its repetitions: they
would escape the budget, the counts and the pause that all requests share.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from importlib import import_module
from typing import Any, ClassVar, Literal, TypeAlias

from recbias.core.text import make_printable
from recbias.language.endpoints import ChatReply, ChatRequest, LanguageModel, Message, Outcome
from recbias.language.local_models import Generation, LocalModel, load_model
from recbias.language.reply_store import MAX_PAUSE

_Reaction: TypeAlias = Literal["retry", "resend", "reject", "stop"]
"""What follows a failure: ``retry`` after a delay; ``resend`` at once, with other parameters;
``reject`` this request; ``stop`` all requests."""

QUOTA = "insufficient_quota"
"""The only code of an exhausted quota; some servers word a limit per minute as a quota."""

_MALFORMED = "invalid JSON"
"""The cause of a failure: an answer that was cut off, or is in another format."""

_CONTENT_FILTER = "content_filter"
"""The code of a request, and the finish reason of a reply, that a content filter blocked."""

_NO_KEY = "none"  # the key that is sent where none is needed

_MAX_MESSAGE_LENGTH = 300

_RETRIED = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
_REJECTED = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}

_OPTIONAL = ("top_k", "top_p", "seed", "temperature")
"""Parameters that are left out if they are refused; where two exclude each other, the first."""

_REFUSAL = re.compile(
    r"unsupported|not supported|does not support|unrecognized|unknown|unexpected|not permitted"
    r"|not allowed|cannot both|deprecated|extra_forbidden|only the default",
    re.IGNORECASE,
)
"""Matches the message of a server that refuses a parameter, and not its value."""

_COMPLETE = re.compile(
    "((stop(ped)?|eo[sgt]|end)(tokens?|tokenids?|turn|oftext|sequence|word|string|trigger)?"
    "|completed?|done"
    "|toolcalls?|tooluse|functioncall|normal|finish(ed)?|success)?"
)
"""Matches finish reasons of vendors, in small letters without other characters."""

_ENDS: Mapping[Outcome, re.Pattern[str]] = {
    "refusal": re.compile("contentfilter|refusal|safety|prohibited|blocklist|spii|recitation"
                          "|guardrail|sensitive|toxic|moderation|armor"),
    "length": re.compile("length|token|(?<!rate)limit|window|max|truncat|incomplete|notfinished"
                         "|unfinished|timeout|timedout|deadline|pauseturn|budget|cutoff|cutshort"
                         "|partial"),
    "failed": re.compile("error|abort|cancel|overload|unavailable|insufficient|exception|exceeded"
                         "|ratelimit|quota|interrupt"),
}  # fmt: skip
"""Words in the other finish reasons, by what they mean, in the order in which they are tried."""


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
    reaction: _Reaction = "retry"
    retry_after: float = 0.0


class NoReply(Exception):
    """The answer of a server holds no reply; ``failure`` says why."""

    def __init__(self, message: str, *, cause: str = _MALFORMED) -> None:
        super().__init__(message)
        self.failure = Failure(cause=cause, message=message)


class Backend(ABC):
    """Answers requests to one model.

    ``batch_size`` is the number of requests that it answers in one call, ``concurrency`` the
    number of calls at a time, each in a thread of its own.
    """

    batch_size: int
    concurrency: int

    @abstractmethod
    def answer(self, requests: Sequence[ChatRequest]) -> Sequence[ChatReply | Failure]:
        """Return the reply to each request, or why there is none."""

    def close(self) -> None:  # noqa: B027  nothing to close in a model that is an object
        """Close the connections."""


def open_backend(model: LanguageModel) -> Backend:
    """Return the backend of a language model.

    Raises:
        MissingExtra: The package of the provider is not installed.
        RequestRefused: There is no key for the server.
        MissingFile: A model in the process is not found.
    """
    model.check_access()
    if model.is_local:
        name, device = model.model, model.device or "auto"
        causal_model = load_model(name, model.revision or None, kind="causal", device=device)
        return TransformersBackend(causal_model, model.concurrency)
    if model.provider == "anthropic":
        return _AnthropicBackend(model)
    return _OpenAIBackend(model)


class _HttpBackend(Backend):
    """Sends requests one by one; parameters that the server refuses are left out from then on.

    ``path`` is that of the requests below the base URL; ``client`` the name of the client in the
    SDK of the provider; ``parameters`` are those of ``Decoding`` that it has, and ``stop`` its
    name of that one; ``renamed`` has the other names that parameters have on some servers.
    """

    batch_size = 1
    path: ClassVar[str]
    client: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]] = ("max_tokens", "temperature", "top_p", "top_k")
    stop: ClassVar[str]
    renamed: ClassVar[Mapping[str, str]] = {}

    def __init__(self, model: LanguageModel) -> None:
        self.concurrency = model.concurrency
        self._credentials = model.read_credentials()
        self._refused: set[str] = set()
        self._sdk: Any = import_module(model.provider)
        self._client = getattr(self._sdk, self.client)(
            api_key=self._credentials.key or _NO_KEY,
            base_url=model.server,
            default_headers=self._credentials.headers,
            default_query=dict(self._credentials.query),
            timeout=model.timeout_s,
            max_retries=0,
        )

    def answer(self, requests: Sequence[ChatRequest]) -> Sequence[ChatReply | Failure]:
        """Return the reply to each request, or why there is none."""
        return [self._send(request) for request in requests]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @abstractmethod
    def write_messages(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the fields of a request that hold its messages."""

    @abstractmethod
    def write_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the field of a request that restricts the reply to a JSON Schema."""

    @abstractmethod
    def read_reply(self, body: Mapping[str, Any]) -> ChatReply:
        """Return the reply in the JSON of an answer."""

    def _send(self, request: ChatRequest) -> ChatReply | Failure:
        refused, sdk = sorted(self._refused), self._sdk
        payload = self._adapt(self._build_payload(request), refused)
        try:
            text = self._client.post(self.path, body=payload, cast_to=str)
            return self._read(text, payload, refused)
        except NoReply as error:
            return self._clean(error.failure)
        except sdk.APITimeoutError:
            return Failure(cause="timeout", message="the server did not answer in time")
        except sdk.APIConnectionError as error:
            reason = error.__cause__ or error
            message = str(reason) or type(reason).__name__
            return self._clean(Failure(cause="connection", message=message))
        except sdk.APIStatusError as error:
            response = error.response
            body = _parse_json(response.content) or re.sub("<[^<>]*>", " ", response.text)
            return self._react(response.status_code, body, response.headers, payload)

    def _build_payload(self, request: ChatRequest) -> dict[str, Any]:
        """Return the JSON of a request."""
        decoding, schema = request.decoding, request.decoding.response_schema
        parameters = {name: getattr(decoding, name) for name in self.parameters}
        parameters[self.stop] = list(decoding.stop) or None
        return {
            "model": request.model,
            **self.write_messages(request.messages),
            **{name: value for name, value in parameters.items() if value is not None},
            **({} if schema is None else self.write_schema(dict(schema))),
            **decoding.extra_body,
        }

    def _read(
        self, text: str, payload: Mapping[str, Any], refused: Sequence[str]
    ) -> ChatReply | Failure:
        """Return the reply in an answer; some servers report errors by an answer of status 200."""
        body = _parse_json(text)
        if not isinstance(body, Mapping):
            start = text.strip()[:_MAX_MESSAGE_LENGTH] or "it is empty"
            raise NoReply(f"the answer is not a JSON object: {start}")
        choice = _get_choice(body)
        error = body if _has_error(body) else choice if _has_error(choice) else None
        is_reply = choice or "content" in body or "choices" in body
        if error is None and not is_reply and _as_text(_read_error(body).get("message")):
            error = body  # a detail or a message without a reply
        if error is not None:
            code = _as_text(_read_error(error).get("code") or _read_error(error).get("status"))
            is_status = re.fullmatch("[45][0-9][0-9]", code)
            return self._react(int(code) if is_status else 500, error, {}, payload)
        reply, hide = self.read_reply(body), self._credentials.hide_in
        return replace(
            reply,
            text=hide(reply.text),
            prompt_tokens=_read_count(body, "prompt_tokens", "input_tokens"),
            completion_tokens=_read_count(body, "completion_tokens", "output_tokens"),
            served_model=hide(_as_text(body.get("model"))),
            fingerprint=hide(_as_text(body.get("system_fingerprint"))),
            finish_reason=hide(reply.finish_reason),
            negotiated=tuple(
                f"{self.renamed[name]} for {name}" if name in self.renamed else f"no {name}"
                for name in refused
            ),
        )

    def _react(
        self, status: int, body: Any, headers: Mapping[str, str], payload: Mapping[str, Any]
    ) -> ChatReply | Failure:
        """Return what follows an answer that reports an error."""
        failure = self._clean(classify_status(status, body, headers))
        if failure.reaction != "reject":
            return failure
        if _as_text(_read_error(body).get("code")) == _CONTENT_FILTER:
            return ChatReply(outcome="refusal", finish_reason=_CONTENT_FILTER)
        name = _find_refused(payload, body, (*self.renamed, *_OPTIONAL))
        if name is None:
            return failure
        self._refused.add(name)
        return replace(failure, reaction="resend")

    def _adapt(self, payload: Mapping[str, Any], refused: Sequence[str]) -> dict[str, Any]:
        """Return the parameters in the form that the model accepts."""
        return {
            self.renamed.get(name, name) if name in refused else name: value
            for name, value in payload.items()
            if name not in refused or name in self.renamed
        }

    def _clean(self, failure: Failure) -> Failure:
        """Return a failure whose message is one short line without secrets."""
        message = self._credentials.hide_in(failure.message).strip()
        return replace(failure, message=make_printable(message, _MAX_MESSAGE_LENGTH))


class _OpenAIBackend(_HttpBackend):
    """Chat completions of OpenAI and of the servers with its interface."""

    path = "/chat/completions"
    client = "OpenAI"
    parameters = (*_HttpBackend.parameters, "seed")
    stop = "stop"
    renamed: ClassVar[Mapping[str, str]] = {"max_tokens": "max_completion_tokens"}

    def write_messages(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return all messages."""
        return {"messages": [asdict(message) for message in messages]}

    def write_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the format of the response."""
        json_schema = {"name": "reply", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": json_schema}}

    def read_reply(self, body: Mapping[str, Any]) -> ChatReply:
        """Return the reply in the message of the first choice."""
        choice = _get_choice(body)
        message = choice.get("message")
        if not isinstance(message, Mapping):
            said = make_printable(_as_text(_read_error(body).get("message")), _MAX_MESSAGE_LENGTH)
            raise NoReply(f"the answer has no choices with a message{said and f': {said}'}")
        text, refusal = _read_text(message.get("content")), _as_text(message.get("refusal"))
        reason = _as_text(choice.get("finish_reason"))
        outcome: Outcome = "refusal" if refusal else _classify_end(text, reason)
        return ChatReply(text=text or refusal, outcome=outcome, finish_reason=reason)


class _AnthropicBackend(_HttpBackend):
    """The messages interface of Anthropic."""

    path = "/v1/messages"
    client = "Anthropic"
    stop = "stop_sequences"

    def write_messages(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the messages of the system as one text beside the others."""
        system = [message.content for message in messages if message.role == "system"]
        others = [asdict(message) for message in messages if message.role != "system"]
        return {"messages": others} | ({"system": "\n\n".join(system)} if system else {})

    def write_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the configuration of the output."""
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def read_reply(self, body: Mapping[str, Any]) -> ChatReply:
        """Return the text of the content."""
        if not isinstance(body.get("content"), list):
            raise NoReply("the answer has no content")
        text, reason = _read_text(body["content"]), _as_text(body.get("stop_reason"))
        return ChatReply(text=text, outcome=_classify_end(text, reason), finish_reason=reason)


_SEED_DIGITS = 15  # the hexadecimal digits of an address that seed the sampling of its reply


@dataclass(eq=False)
class TransformersBackend(Backend):
    """Answers requests by a causal model in this process.

    Greedy replies are generated in batches. A sampled reply is generated alone, from a generator
    seeded by the address of its request, so that it depends on no other request.

    Args:
        model: The model.
        batch_size: The number of requests in a batch.
    """

    model: LocalModel
    batch_size: int
    concurrency: int = 1

    def answer(self, requests: Sequence[ChatRequest]) -> Sequence[ChatReply | Failure]:
        """Return the reply to each request, or why there is none."""
        texts = [self.model.render_chat([*map(asdict, each.messages)]) for each in requests]
        answers: list[ChatReply | Failure | None] = [
            self._check_length(text, request)
            for text, request in zip(texts, requests, strict=True)
        ]
        waiting = [index for index, answer in enumerate(answers) if answer is None]
        greedy = [index for index in waiting if not requests[index].decoding.temperature]
        sampled = [[index] for index in waiting if requests[index].decoding.temperature]
        for batch in filter(None, [greedy, *sampled]):
            generations = self._generate([texts[index] for index in batch], requests[batch[0]])
            for index, generation in zip(batch, generations, strict=True):
                answers[index] = _make_reply(generation)
        return [answer for answer in answers if answer is not None]

    def _check_length(self, text: str, request: ChatRequest) -> Failure | None:
        """Return why a prompt cannot be answered, None if it can."""
        n_tokens = len(self.model.tokenizer(text, add_special_tokens=False).input_ids)
        if n_tokens + request.decoding.max_tokens <= self.model.n_positions:
            return None
        message = (
            f"a prompt of {n_tokens:,} tokens and a reply of {request.decoding.max_tokens:,} "
            f"exceed the {self.model.n_positions:,} tokens of the model"
        )
        return Failure(cause="too long", message=message, reaction="reject")

    def _generate(self, texts: Sequence[str], request: ChatRequest) -> list[Generation]:
        decoding = request.decoding
        return self.model.generate(
            texts,
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature or 0.0,
            top_p=1.0 if decoding.top_p is None else decoding.top_p,
            top_k=decoding.top_k or 0,
            seed=int(request.address[:_SEED_DIGITS], 16),
        )


def _make_reply(generation: Generation) -> ChatReply:
    reason = "stop" if generation.is_complete else "length"
    return ChatReply(
        text=generation.text,
        outcome=_classify_end(generation.text, reason),
        prompt_tokens=generation.n_prompt,
        completion_tokens=generation.n_generated,
        finish_reason=reason,
    )


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
    error = _read_error(body)
    message = f"{status}: {_as_text(error.get('message')) or 'no reason given'}"
    if _as_text(error.get("code")) == QUOTA:
        return Failure(cause=QUOTA, message=message, reaction="stop")
    wait = _parse_retry_after(headers)
    is_retried = status in _RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if is_retried and wait > MAX_PAUSE:
        message = f"{message}; the server asks to wait {wait:,.0f} s"
        return Failure(cause=str(status), message=message, reaction="stop")
    if is_retried:
        return Failure(cause=str(status), message=message, retry_after=wait)
    reaction: _Reaction = "reject" if status in _REJECTED else "stop"
    return Failure(cause=str(status), message=message, reaction=reaction)


def _read_error(body: Any) -> Mapping[str, Any]:
    """Return the error object of an answer, in the forms of OpenAI, Anthropic and FastAPI.

    >>> _read_error({"detail": [{"loc": ["body", "seed"], "msg": "not permitted"}]})
    {'message': 'body.seed: not permitted'}
    """
    if not isinstance(body, Mapping):
        return {"message": _as_text(body)}
    error = body.get("error", body)
    if not isinstance(error, Mapping):
        return {"message": _as_text(error)}
    details = error.get("detail", error.get("errors", error.get("msg")))
    if isinstance(details, list):
        return {"message": "; ".join(_describe_detail(detail) for detail in details)}
    return {"message": _as_text(details), **error}


def _describe_detail(detail: Any) -> str:
    if not isinstance(detail, Mapping) or not isinstance(detail.get("loc"), list):
        return _as_text(detail.get("message") if isinstance(detail, Mapping) else detail)
    return f"{'.'.join(map(_as_text, detail['loc']))}: {_as_text(detail.get('msg'))}"


def _parse_retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait; 0 if it does not, or not readably.

    >>> _parse_retry_after({"retry-after": "20"}), _parse_retry_after({"retry-after-ms": "500"})
    (20.0, 0.5)
    """
    milliseconds, text = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    readings: tuple[Callable[[], float], ...] = (
        lambda: float(milliseconds) / 1000,
        lambda: float(text),
        lambda: email.utils.parsedate_to_datetime(text).timestamp() - time.time(),
    )
    for read in readings:
        with suppress(ValueError, TypeError, OverflowError):
            if (seconds := read()) and math.isfinite(seconds):
                return max(seconds, 0.0)
    return 0.0


def _find_refused(
    payload: Mapping[str, Any], body: Any, candidates: Sequence[str] = _OPTIONAL
) -> str | None:
    """Return the parameter of a request that an answer calls unsupported, None if there is none.

    >>> _find_refused({"temperature": 0.0}, {"error": {"message": "'temperature' is unsupported"}})
    'temperature'
    >>> _find_refused({"temperature": 9.0}, {"error": {"message": "temperature is above 2"}})

    Args:
        payload: The parameters that were sent.
        body: The JSON of the answer.
        candidates: The parameters that can be left out or renamed, in order.
    """
    error = _read_error(body)
    message = _as_text(error.get("message"))
    if not _REFUSAL.search(f"{_as_text(error.get('code'))} {message}"):
        return None
    named = {_as_text(error.get("param")), *re.findall(r"\w+", message)}
    return next((name for name in candidates if name in named and name in payload), None)


def is_known_end(reason: str) -> bool:
    """Return whether it is known what a finish reason means.

    >>> is_known_end("MAX_TOKENS"), is_known_end("banana")
    (True, False)
    """
    name = _spell_end(reason)
    ends = _ENDS.values()
    return bool(_COMPLETE.fullmatch(name)) or any(end.search(name) for end in ends)


def _spell_end(reason: str) -> str:
    return re.sub("[^a-z]|^finish_?reason_?", "", reason.lower())


def _classify_end(text: str, reason: str) -> Outcome:
    """Return the outcome of a reply that arrived, by its finish reason and its text."""
    name = _spell_end(reason)
    found = (outcome for outcome, end in _ENDS.items() if end.search(name))
    outcome = None if _COMPLETE.fullmatch(name) else next(found, None)
    if outcome == "failed":
        raise NoReply(f"the reply ended by {reason}", cause="500")
    return outcome or ("complete" if text.strip() else "empty")


def _read_text(content: Any) -> str:
    """Return the text of a message: content may be a text, or a list of parts."""
    if not isinstance(content, list):
        return _as_text(content)
    return "".join(
        _as_text(part.get("text")) if isinstance(part, Mapping) else _as_text(part)
        for part in content
        if not isinstance(part, Mapping) or part.get("type", "text") in {"text", "output_text"}
    )


def _get_choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of an answer; an empty one if there is none."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, Mapping) else {}


def _has_error(value: Mapping[str, Any]) -> bool:
    """Return whether an answer or a choice holds an error, and not the place of one."""
    error = value.get("error")
    return any(error.values()) if isinstance(error, Mapping) else bool(error)


def _read_count(body: Mapping[str, Any], *names: str) -> int:
    """Return a number of tokens of an answer; 0 if it has none, or no plausible one."""
    usage = body.get("usage")
    counts = [usage.get(name) for name in names] if isinstance(usage, Mapping) else []
    return next((count for count in counts if type(count) is int and count > 0), 0)


def _parse_json(content: bytes | str) -> Any:
    """Return the JSON of an answer; None if it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _as_text(value: Any) -> str:
    """Return a field of a server's JSON as text; empty if it is null or not a plain value."""
    return str(value) if isinstance(value, (str, int, float)) else ""
