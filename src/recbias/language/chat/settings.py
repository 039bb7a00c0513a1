"""The settings of a language model behind a chat interface: the ``llm`` mapping of a spec."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, MinLen

from recbias.core.errors import Contradiction, RequestRefused
from recbias.core.models.devices import Device
from recbias.core.packages import require_packages
from recbias.core.protocols import ModelName
from recbias.language.causal_model_files import identify_files
from recbias.language.chat.budget import Budget, Prices
from recbias.language.chat.endpoints import (
    Credentials,
    is_loopback,
    read_credentials,
    strip_url,
    validate_extra_body,
    validate_url,
)
from recbias.language.chat.providers import PROVIDERS, Provider
from recbias.language.chat.requests import ChatRequest, Decoding, Message
from recbias.numerics.devices import find_device

SERVER_SETTINGS = ("base_url", "api_key_env", "extra_body", "structured_output", "prices")
"""Settings that a model in the process does not have."""


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
    device: Device | None = None
    concurrency: Annotated[int, Ge(1), Le(1000)] = 32
    retries: Annotated[int, Ge(0), Le(100)] = 6
    timeout_s: Annotated[float, Gt(0)] = 60.0
    requests_per_minute: Annotated[float, Gt(0)] | None = None
    tokens_per_minute: Annotated[float, Gt(0)] | None = None
    prices: Prices | None = None
    budget: Budget | None = None
    _url_credentials: Credentials = field(
        init=False, repr=False, compare=False, default_factory=Credentials
    )

    def __post_init__(self) -> None:
        if self.base_url is not None:
            validate_url(self.base_url)
            object.__setattr__(self, "_url_credentials", read_credentials(self.base_url))
            object.__setattr__(self, "base_url", strip_url(self.base_url))
        if self.budget is not None and self.budget.money is not None and self.prices is None:
            remedy = "add prices: {input: ..., output: ...}, for a million tokens each"
            raise Contradiction("a budget of money needs prices", where="budget", remedy=remedy)
        self._validate_parameters()

    def _validate_parameters(self) -> None:
        for name in SERVER_SETTINGS if self.is_local else ("device",):
            if getattr(self, name):
                message = (
                    f"a model {'in the process' if self.is_local else 'on a server'} has no {name}"
                )
                raise Contradiction(message, where=name, remedy=f"leave {name} out")
        validate_extra_body(self.extra_body)
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

    def build_likelihood_request(self, context: Message, text: str) -> ChatRequest:
        """Return the request for the log-probabilities of a text after a context.

        Args:
            context: The text before.
            text: The text; it begins with a space where the tokens of its first word do.
        """
        return ChatRequest(
            provider=self.provider,
            base_url=self.server,
            model=self.model,
            revision=self._identify_revision(),
            messages=(context, Message("assistant", text)),
            decoding=Decoding(max_tokens=0, extra_body=self.extra_body),
            kind="likelihood",
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
        is_open = self.api_key_env is None and is_loopback(self.server)
        if not (credentials.key or credentials.userinfo or credentials.query or is_open):
            message = f"the environment variable {self.key_variable} with the key is not set"
            raise RequestRefused(message, where="llm", remedy=remedy)

    def read_credentials(self) -> Credentials:
        """Return the key from the environment, and the secrets of the base URL."""
        return replace(self._url_credentials, key=os.environ.get(self.key_variable, "").strip())
