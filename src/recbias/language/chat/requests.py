"""Requests to chat models, and their replies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit, urlunsplit

from recbias.core.digests import compute_digest

Role: TypeAlias = Literal["system", "user", "assistant"]
"""Who a message is from."""

Outcome: TypeAlias = Literal["complete", "length", "refusal", "empty", "failed"]
"""How a request ended; only a complete reply has text to read."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

RequestKind: TypeAlias = Literal["chat", "likelihood"]
"""What is asked for: a reply to a conversation, or the log-probabilities of a given text."""

REPEAT = -1
"""The number of the sample of a request that is sent once more, see ``select_repeats``."""

BYTES_PER_TOKEN = 3
"""Below the usual 3.5 to 4.5, so that an estimate of the tokens is rarely too low."""

TOKENS_PER_MESSAGE = 8
"""The role and the separators of a message in a chat template."""


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    Args:
        role: Who it is from.
        content: Its text.
    """

    role: Role
    content: str

    def __post_init__(self) -> None:
        content = self.content.encode("utf-8", "replace").decode()  # lone surrogates
        object.__setattr__(self, "content", content)


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How a reply is generated; None leaves a parameter to the default of the server.

    Args:
        temperature: The sampling temperature; 0 is greedy.
        top_p: The probability mass that is sampled from.
        top_k: The number of tokens that are sampled from.
        max_tokens: The maximum number of tokens of a reply.
        seed: The seed of the server's sampling.
        stop: Texts that end the reply.
        response_schema: The JSON Schema that the reply is restricted to.
        extra_body: Further fields of the request, for parameters of one server.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int = 512
    seed: int | None = None
    stop: tuple[str, ...] = ()
    response_schema: Mapping[str, Any] | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p"):  # 0 and 0.0 are one request, with one address
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else float(value))


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """A request for one reply, or for the log-probabilities of one text.

    Args:
        provider: The kind of backend: ``openai``, ``anthropic``.
        base_url: The address of the server; a user name, password and query are removed.
        model: The name of the model.
        revision: The version of the model, where its name does not identify it; may be empty.
        messages: The conversation; for a likelihood, the text before, and the text itself as the
            words of the assistant.
        decoding: How the reply is generated.
        sample: The number of the sample, from 0, where one conversation is asked several times;
            ``REPEAT`` for one that is sent once more.
        kind: What is asked for.
    """

    provider: str
    base_url: str
    model: str
    messages: tuple[Message, ...]
    revision: str = ""
    decoding: Decoding = field(default_factory=Decoding)
    sample: int = 0
    kind: RequestKind = "chat"
    address: str = field(init=False, repr=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", strip_url(self.base_url))
        fields = asdict(self)
        del fields["address"]
        if self.kind == "chat":  # the addresses of stored replies are older than the kinds
            del fields["kind"]
        object.__setattr__(self, "address", compute_digest(fields))

    @property
    def prompt_tokens(self) -> int:
        """An upper estimate of the tokens of the conversation."""
        return estimate_tokens(self.messages)


@dataclass(frozen=True, kw_only=True)
class ChatReply:
    """The reply to one request.

    Args:
        text: What the model wrote, unchanged but for lone surrogates, which no file can hold; of a
            likelihood, the tokens of the text and their log-probabilities, a JSON object.
        outcome: ``complete``; ``length`` if a limit of tokens or time cut it off; ``refusal``
            if the model or a content filter refused; ``empty`` without text; ``failed`` if the
            server rejected this request.
        prompt_tokens: The tokens of the conversation, as the server counted them.
        completion_tokens: The tokens of the reply, as the server counted them.
        served_model: The model that the server says it used.
        fingerprint: The configuration that the server says it used.
        finish_reason: Why the reply ended, as the server put it.
        negotiated: The parameters that the server refused and what was sent in their place.
        time: When the reply arrived, in seconds since 1970.
        cached: Whether it was stored before it was asked for.
    """

    text: str = ""
    outcome: Outcome = "complete"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    served_model: str = ""
    fingerprint: str = ""
    finish_reason: str = ""
    negotiated: tuple[str, ...] = ()
    time: float = 0.0
    cached: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        text = self.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        object.__setattr__(self, "text", text)

    @property
    def answer(self) -> str:
        """The text to read: empty unless the reply is complete."""
        return self.text if self.outcome == "complete" else ""


def select_repeats(requests: Iterable[ChatRequest], share: float | None) -> dict[str, ChatRequest]:
    """Return a share of the first samples to be sent once more, by the address of the first.

    The addresses are digests, so the smallest of them are a random choice, which only the requests
    determine. The seed of the decoding stays as it is: another reply is not reproducible.

    Args:
        requests: The requests.
        share: The share that is repeated, rounded up; None for none.
    """
    first = {request.address: request for request in requests if request.sample == 0}
    chosen = sorted(first)[: math.ceil((share or 0.0) * len(first))]
    return {address: replace(first[address], sample=REPEAT) for address in chosen}


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return an upper estimate of the tokens of a conversation from its length.

    >>> estimate_tokens([Message("user", "Recommend ten movies.")])  # 21 bytes: 7 + 8
    15
    """
    return sum(
        math.ceil(len(message.content.encode()) / BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE
        for message in messages
    )


def strip_url(url: str) -> str:
    """Return a URL without user name, password, query, fragment and final slash.

    >>> strip_url("https://me:secret@example.org/v1/?key=secret")
    'https://example.org/v1'
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
