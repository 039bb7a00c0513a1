"""The ``llm`` mapping of a spec: chat models, their secrets, their requests and their replies."""

from __future__ import annotations

import base64
import ipaddress
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from annotated_types import Ge, Gt, Le, MinLen

from recbias.core.errors import Contradiction, OutOfRange, RequestRefused
from recbias.core.files import compute_digest
from recbias.core.packages import require_packages
from recbias.core.plugins import EXECUTION, Device, ModelName
from recbias.core.text import make_printable
from recbias.kernels.devices import find_device
from recbias.language.model_files import identify_files, list_model_files

_NAMES = (
    r"(?:(?:ant)?think(?:ing)?|thoughts?|thought_process|reason(?:ing)?|scratch_?pad|analysis"
    r"|reflection|inner_monologue|chain_of_thought|cot)"
)
"""The words that name thought."""

_TAG = re.compile(
    rf"<\|?/?(?:[a-z]{{1,20}}[_:|])*{_NAMES}(?:[_:|][a-z]{{1,20}})*\s*(?:\s\w+=[^<>]{{0,80}})?\|?>"
    r"|\[/?(?:think(?:ing)?|reasoning)\]|◁/?think▷",
    re.IGNORECASE,
)
"""A tag before or after thought: ``<think>``, ``</seed:think>``, ``<|END_THINKING|>``."""

_CLOSING = re.compile(r"/|(?<![a-z])end(?![a-z])", re.IGNORECASE)
"""What a tag after thought has."""

_OPEN = re.compile(
    r"<\|inner_prefix\|>|<unused94>(?:thought)?|\[unused16\]|<ctrl94>(?:thought)?|<\|channel>"
    r"|<\|channel\|>(?:analysis|commentary)|(?-i:\Aanalysis(?=[A-Z]))|<\|im_start\|>think"
    r"|to=self<\|message\|>|\A/think\n|\A\s*thinking\.\.\."
    r"|\A\W*here(?:['’]s| is| are) my (?:thought process|reasoning steps):",
    re.IGNORECASE,
)
"""The other marks before the thought of families of models."""

_CLOSE = re.compile(
    r"<\|inner_suffix\|>|<unused95>|\[unused17\]|<ctrl95>|<channel\|>|<\|content_text\|>"
    r"|<\|channel\|>final[^<]{0,80}(?:<\|constrain\|>\w*)?<\|message\|>"
    r"|(?-i:assistantfinal(?![a-z]))|<\|im_start\|>answer|to=user<\|message\|>"
    r"|here(?:['’]s| is) my response:|\.\.\.done thinking\.?"
    r"|\[BEGIN FINAL RESPONSE\]|(?:<\|end\|>)?<\|begin\|>assistant(?:<\|content\|>)?",
    re.IGNORECASE,
)
"""The other marks after it."""

_ANSWER = re.compile(
    r"<\|?(?:answer|response|solution|conclusion|output|final|final_answer|start_response"
    r"|start_text|begin_of_solution|begin_of_box)\|?>(?=\s*\S)"
    r"|^[^\w\n]{0,9}(?:(?:my|the) )?(?:final )?answer[^\w\n]{0,9}$(?=\s*\S)",
    re.IGNORECASE | re.MULTILINE,
)
"""The marks before an answer."""

_END = re.compile(
    r"<\|?/(?:answer|response|solution|conclusion|output|final|final_answer)\|?>|<\|\w+\|>"
    r"|<turn\|>|\[END FINAL RESPONSE\]|\[unused10\]|\[EO[ST]\]|\[/?INST\]|</s>|<(?:seed:)?eos>"
    r"|<end_of_turn>|<｜end▁of▁sentence｜>",
    re.IGNORECASE,
)
"""The marks after an answer."""

_START = re.compile(r"\A(?:\s|<s>|<bos>|<\|\w+\|>(?:assistant)?|<｜Assistant｜>|thought\n)+")
"""What a server may leave before it."""

_FOLDED = re.compile(
    r"(<details[^<>]*(?:reasoning[^<>]*>|>\s*<summary>[^<>]*(?:think|thought|reason)).*?)</details>",
    re.IGNORECASE | re.DOTALL,
)
"""Thought as Open WebUI and other servers fold it."""

_ESCAPED = re.compile(rf"&lt;(/?{_NAMES})&gt;", re.IGNORECASE)
_SPLIT_TAG = re.compile(r"<\|(?:open|(close))\|>(\w+)<\|sep\|>")
"""A tag of Kimi K3: ``<|open|>think<|sep|>``."""

_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")


def find_answer(text: str) -> str | None:
    r"""Return a text without the thought of the model; None if it ends within its thought.

    Thought stands between two marks; before a closing mark without an opening one; and after an
    opening mark without a closing one, where the answer is missing.

    >>> find_answer("<think>Heat? No.</think>1. Alien"), find_answer("Heat? No.</think>1. Alien")
    ('1. Alien', '1. Alien')
    >>> find_answer("<think>Heat? No") is None
    True
    """
    text = _SPLIT_TAG.sub(lambda tag: f"<{'/' if tag[1] else ''}{tag[2]}>", text)
    text = _FOLDED.sub(r"<think>\1</think>", _ESCAPED.sub(r"<\1>", text))
    marks = [(*mark.span(), not _CLOSING.search(mark[0])) for mark in _TAG.finditer(text)]
    marks += [(*mark.span(), False) for mark in _CLOSE.finditer(text)]
    marks += [(*mark.span(), True) for mark in _OPEN.finditer(text)]
    parts: list[str] = []
    start, is_thought = 0, False
    for first, end, is_open in sorted(marks):
        if is_open and not is_thought:
            parts.append(text[start:first])
        elif not is_open and not is_thought:
            parts.clear()
        start, is_thought = end, is_open
    if is_thought:
        return None
    answer = _START.sub("", "\n".join([*parts, text[start:]]))
    if marked := [*_ANSWER.finditer(answer)]:
        answer = answer[marked[-1].end() :]
    return _BOXED.sub(r"\1", _END.split(answer, maxsplit=1)[0])


_Role: TypeAlias = Literal["system", "user", "assistant"]  # who a message is from

Outcome: TypeAlias = Literal["complete", "length", "refusal", "empty", "failed"]
"""How a request ended; only a complete reply has text to read."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

REPEAT = -1
"""The number of the sample of a request that is sent once more, see ``select_repeats``."""

_BYTES_PER_TOKEN = 3
"""Below the usual 3.5 to 4.5, so that an estimate of the tokens is rarely too low."""

_TOKENS_PER_MESSAGE = 8  # the role and the separators of a message in a chat template


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    Args:
        role: Who it is from.
        content: Its text.
    """

    role: _Role
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
    """A request for one reply.

    Args:
        provider: The kind of backend: ``openai``, ``anthropic``.
        base_url: The address of the server; a user name, password and query are removed.
        model: The name of the model.
        revision: The version of the model, where its name does not identify it; may be empty.
        messages: The conversation.
        decoding: How the reply is generated.
        sample: The number of the sample, from 0, where one conversation is asked several times;
            ``REPEAT`` for one that is sent once more.
    """

    provider: str
    base_url: str
    model: str
    messages: tuple[Message, ...]
    revision: str = ""
    decoding: Decoding = field(default_factory=Decoding)
    sample: int = 0
    address: str = field(init=False, repr=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", strip_url(self.base_url))
        fields = asdict(self)
        del fields["address"]
        object.__setattr__(self, "address", compute_digest(fields))

    @property
    def prompt_tokens(self) -> int:
        """An upper estimate of the tokens of the conversation."""
        return _estimate_tokens(self.messages)


@dataclass(frozen=True, kw_only=True)
class ChatReply:
    """The reply to one request.

    Args:
        text: What the model wrote, unchanged but for lone surrogates, which no file can hold.
        outcome: ``complete``; ``length`` if a limit of tokens or time cut it off, or it ends
            within the thought of the model; ``refusal`` if the model or a content filter refused;
            ``empty`` without an answer; ``failed`` if the server rejected this request.
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
        answer = find_answer(text)
        if self.outcome == "complete" and text and not (answer and answer.strip()):
            object.__setattr__(self, "outcome", "length" if answer is None else "empty")

    @property
    def answer(self) -> str:
        """The text to read, without the thought of the model; empty unless it is complete."""
        return find_answer(self.text) or "" if self.outcome == "complete" else ""


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


def _estimate_tokens(messages: Iterable[Message]) -> int:
    """Return an upper estimate of the tokens of a conversation from its length.

    >>> _estimate_tokens([Message("user", "Recommend ten movies.")])  # 21 bytes: 7 + 8
    15
    """
    return sum(
        math.ceil(len(message.content.encode()) / _BYTES_PER_TOKEN) + _TOKENS_PER_MESSAGE
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


Provider: TypeAlias = Literal["openai", "anthropic", "transformers"]
"""The kinds of backend."""


@dataclass(frozen=True)
class _ProviderDefaults:
    """What a provider uses where the settings leave it out.

    Args:
        package: The package that it needs.
        base_url: The address of its server.
        api_key_env: The environment variable of its key.
        max_temperature: The highest temperature that it accepts.
    """

    package: str
    base_url: str
    api_key_env: str
    max_temperature: float


PROVIDERS: Mapping[str, _ProviderDefaults] = {
    "openai": _ProviderDefaults("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", 2.0),
    "anthropic": _ProviderDefaults(
        "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", 1.0
    ),
    "transformers": _ProviderDefaults("transformers", "", "", 2.0),
}

_SERVER_SETTINGS = ("base_url", "api_key_env", "extra_body", "structured_output", "prices")
"""Settings that a model in the process does not have."""

HIDDEN = "[hidden]"
"""What a secret in a text is replaced by."""

_MIN_SECRET_LENGTH = 8
"""Shorter secrets, and shorter parts of one, are words that may occur in any text (``EMPTY``)."""

_FIXED_FIELDS = {"messages", "model", "n", "stream"}
"""Fields of a request that ``extra_body`` may not replace."""

SECRET_NAME = re.compile(
    r"(^|\.)(key|token)$|(api|access|auth|secret|private|bearer)[_-]?(key|token)$"
    r"|(secret|password|authorization|credentials?)$",
    re.IGNORECASE,
)
"""The name of a field that holds a secret, such as ``api_key``; not ``prompt_cache_key``."""

_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9a-fA-F.]*:[0-9a-fA-F:.]*")
"""A host name or an IP address, as ``urlsplit`` returns it."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What tokens cost, in any currency.

    Args:
        input: The price of a million tokens of the prompt.
        output: The price of a million tokens of the reply.
    """

    input: Annotated[float, Ge(0)]
    output: Annotated[float, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that a run may spend on a model; None is no limit.

    Args:
        requests: The number of requests, repeated ones included.
        tokens: The number of tokens of prompts and replies.
        money: The cost by ``prices``.
    """

    requests: Annotated[int, Ge(0)] | None = None
    tokens: Annotated[int, Ge(0)] | None = None
    money: Annotated[float, Ge(0)] | None = None


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
        n = _MIN_SECRET_LENGTH
        hidden = bytearray(len(text))
        for part in self._parts:
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

    @cached_property
    def _parts(self) -> set[str]:
        password, n = self.userinfo.partition(":")[2], _MIN_SECRET_LENGTH
        secrets = {self.key, self.userinfo, self._basic, password, *self.query.values()}
        secrets |= {quote(secret, safe="") for secret in secrets}
        return {secret[i : i + n] for secret in secrets for i in range(len(secret) - n + 1)}


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """A language model behind a chat interface.

    A user name, password or query of ``base_url`` is used for requests, but neither stored nor
    shown: the field holds the address without them.

    Args:
        provider: ``openai`` is any server with the interface of OpenAI (vLLM, Ollama, llama.cpp,
            TGI: give ``base_url``); ``anthropic`` that of Anthropic; ``transformers`` runs a
            model in the process.
        model: The name of the model, as the server knows it. For ``transformers``: a folder, a
            ``.gguf`` file, an installed package that contains either, or a model of the hub.
        base_url: The address of the server; None is that of the provider.
        api_key_env: The environment variable with the key; None is ``OPENAI_API_KEY`` or
            ``ANTHROPIC_API_KEY``. A server on this machine needs no key. With a user name in
            ``base_url``, its password is sent in place of the key.
        revision: The version of the model, where its name does not identify it; another revision
            asks again.
        temperature: The sampling temperature; None is the server's default.
        top_p: The probability mass that is sampled from; None is the server's default.
        top_k: The number of tokens that are sampled from; None is the server's default.
        max_tokens: The maximum number of tokens of a reply.
        seed: The seed of the server's sampling; ``anthropic`` has none.
        extra_body: Further fields of every request, for parameters of one server.
        repeatability: The share of the requests that are sent once more, to count how many replies
            come back the same; None for none.
        structured_output: Whether replies are restricted to a JSON Schema where one is given.
        device: Where a model in the process computes; None for the device of the spec.
        concurrency: The maximum number of requests at a time; for ``transformers``, in a batch.
        retries: How often a failed request is sent again.
        timeout_s: The seconds after which a server that sends nothing is given up.
        requests_per_minute: The maximum rate of all processes of this machine together.
        tokens_per_minute: Likewise, of prompts and replies.
        prices: The prices of a million tokens, ``{input, output}``.
        budget: The most that a run may spend, ``{requests, tokens, money}``.

    Raises:
        OutOfRange: The base URL is not the address of a server.
        Contradiction: A budget of money without prices, or a parameter that the provider lacks.
    """

    provider: Provider = "openai"
    model: Annotated[ModelName, MinLen(1)]
    base_url: str | None = None
    api_key_env: Annotated[str, MinLen(1)] | None = None
    revision: str = ""
    temperature: Annotated[float, Ge(0), Le(2)] | None = 0.0
    top_p: Annotated[float, Gt(0), Le(1)] | None = None
    top_k: Annotated[int, Ge(1)] | None = None
    max_tokens: Annotated[int, Ge(1)] = 512
    seed: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict, hash=False)
    repeatability: Annotated[float, Gt(0), Le(1)] | None = None
    structured_output: bool = False
    device: Annotated[Device | None, EXECUTION] = None
    concurrency: Annotated[int, Ge(1), Le(1000), EXECUTION] = 32
    retries: Annotated[int, Ge(0), Le(100), EXECUTION] = 6
    timeout_s: Annotated[float, Gt(0), EXECUTION] = 60.0
    requests_per_minute: Annotated[Annotated[float, Gt(0)] | None, EXECUTION] = None
    tokens_per_minute: Annotated[Annotated[float, Gt(0)] | None, EXECUTION] = None
    prices: Annotated[Prices | None, EXECUTION] = None
    budget: Annotated[Budget | None, EXECUTION] = None
    _url_credentials: Credentials = field(
        init=False, repr=False, compare=False, default_factory=Credentials
    )

    def __post_init__(self) -> None:
        if self.base_url is not None:
            _check_url(self.base_url)
            object.__setattr__(self, "_url_credentials", _split_secrets(self.base_url))
            object.__setattr__(self, "base_url", strip_url(self.base_url))
        if self.budget is not None and self.budget.money is not None and self.prices is None:
            remedy = "add prices: {input: ..., output: ...}, for a million tokens each"
            raise Contradiction("a budget of money needs prices", where="budget", remedy=remedy)
        self._validate_parameters()

    def _validate_parameters(self) -> None:
        for name in _SERVER_SETTINGS if self.is_local else ("device",):
            if getattr(self, name):
                message = (
                    f"a model {'in the process' if self.is_local else 'on a server'} has no {name}"
                )
                raise Contradiction(message, where=name, remedy=f"leave {name} out")
        _check_extra_body(self.extra_body)
        highest = PROVIDERS[self.provider].max_temperature
        if self.temperature is not None and self.temperature > highest:
            message = f"{self.provider} accepts a temperature of at most {highest}"
            raise Contradiction(message, where="temperature", remedy=f"give at most {highest}")
        if self.provider == "anthropic" and self.seed is not None:
            message = "the interface of anthropic has no seed"
            raise Contradiction(message, where="seed", remedy="leave seed out")

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the device of a model in the process; nothing for one on a server."""
        return {"device": find_device(self.device or default)} if self.is_local else {}

    @property
    def is_local(self) -> bool:
        """Whether the model runs in this process."""
        return self.provider == "transformers"

    def list_files(self) -> tuple[Path, ...]:
        """Return the files of a model in the process; none of one on a server."""
        return list_model_files(self.model) if self.is_local else ()

    @property
    def server(self) -> str:
        """The address of the server, without secrets."""
        return self.base_url or PROVIDERS[self.provider].base_url

    @property
    def key_variable(self) -> str:
        """The environment variable with the key."""
        return self.api_key_env or PROVIDERS[self.provider].api_key_env

    def build_request(
        self,
        messages: Sequence[Message],
        *,
        sample: int = 0,
        response_schema: Mapping[str, Any] | None = None,
    ) -> ChatRequest:
        """Return the request for the reply to a conversation.

        Args:
            messages: The conversation.
            sample: The number of the sample, where one conversation is asked several times; it is
                added to the seed, so that samples are independent.
            response_schema: The JSON Schema of replies; used if ``structured_output`` is set.
        """
        decoding = Decoding(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            max_tokens=self.max_tokens,
            seed=None if self.seed is None else self.seed + sample,
            response_schema=response_schema if self.structured_output else None,
            extra_body=self.extra_body,
        )
        return ChatRequest(
            provider=self.provider,
            base_url=self.server,
            model=self.model,
            revision=self._identify_revision(),
            messages=tuple(messages),
            decoding=decoding,
            sample=sample,
        )

    def _identify_revision(self) -> str:
        """Return the version of the model; of a local one that of its files, and its GPU."""
        if not self.is_local:
            return self.revision
        device = (self.device or "auto").partition(":")[0]
        suffix = "" if device in {"auto", "cpu"} else f" on {device}"
        return (self.revision or identify_files(self.model)) + suffix

    def check_access(self) -> None:
        """Raise the error that sending a request would raise on this machine.

        It is called where a reply is missing only. MissingExtra if the package of the provider is
        absent, RequestRefused if the key is not set.
        """
        package = PROVIDERS[self.provider].package
        require_packages(f"the provider {self.provider}", package, where="llm")
        if self.is_local:
            return
        credentials = self.read_credentials()
        remedy = f"export {self.key_variable}=..., or name another one by api_key_env"
        if not re.fullmatch("[!-~]*", credentials.key):
            message = f"the environment variable {self.key_variable} does not hold a key"
            raise RequestRefused(message, where="llm", remedy=remedy)
        is_open = self.api_key_env is None and _is_loopback(self.server)
        if not (credentials.key or credentials.userinfo or credentials.query or is_open):
            message = f"the environment variable {self.key_variable} with the key is not set"
            raise RequestRefused(message, where="llm", remedy=remedy)

    def read_credentials(self) -> Credentials:
        """Return the key from the environment, and the secrets of the base URL."""
        return replace(self._url_credentials, key=os.environ.get(self.key_variable, "").strip())


def _split_secrets(url: str) -> Credentials:
    """Return the secrets in a URL."""
    parts = urlsplit(url)
    userinfo = parts.netloc.rpartition("@")[0]
    return Credentials(userinfo=unquote(userinfo), query=dict(parse_qsl(parts.query)))


def _check_url(url: str) -> None:
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


def _check_extra_body(body: Mapping[str, Any]) -> None:
    """Raise OutOfRange if a field of every request belongs to others, or is called as a secret."""
    fixed = sorted(_FIXED_FIELDS & set(body))
    if fixed:
        message = f"{', '.join(fixed)} cannot be set here"
        raise OutOfRange(message, where="extra_body", remedy=f"leave {fixed[0]} out")
    for name, value in body.items():
        if SECRET_NAME.search(str(name)):
            message = f"{name} seems to be a secret, and a spec is stored and shared"
            remedy = "name the environment variable of the key by api_key_env"
            raise OutOfRange(message, where="extra_body", remedy=remedy)
        if isinstance(value, Mapping):
            _check_extra_body({f"{name}.{field}": cell for field, cell in value.items()})


def _is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
