"""Backends: what sends requests to a model, or answers them in the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from recbias.language.chat.failures import Failure
from recbias.language.chat.requests import ChatReply, ChatRequest, RequestKind
from recbias.language.chat.settings import LanguageModel


class ChatBackend(Protocol):
    """Answers requests to one model.

    ``batch_size`` is the number of requests that it answers in one call, ``concurrency`` the
    number of calls at a time, each in a thread of its own.
    """

    batch_size: int
    concurrency: int

    def answer(self, requests: Sequence[ChatRequest]) -> Sequence[ChatReply | Failure]:
        """Return the reply to each request, or why there is none."""

    def close(self) -> None:
        """Close the connections, or release the memory of the model."""


def open_backend(model: LanguageModel, kind: RequestKind = "chat") -> ChatBackend:
    """Return the backend of a language model for requests of one kind.

    Only servers with the interface of OpenAI give likelihoods; the model is one of these.

    Raises:
        MissingExtra: The package of the provider is not installed.
        RequestRefused: There is no key for the server.
    """
    model.check_access()
    if model.provider == "transformers":
        from recbias.language.chat.backends.transformers_backend import load_transformers

        return load_transformers(model)
    if model.provider == "anthropic":
        from recbias.language.chat.backends.anthropic_backend import connect_anthropic

        return connect_anthropic(model)
    if kind == "likelihood":
        from recbias.language.chat.backends.likelihood_backend import connect_likelihoods

        return connect_likelihoods(model)
    from recbias.language.chat.backends.openai_backend import connect_openai

    return connect_openai(model)
