"""Language models on loopback, and requests to them."""

from __future__ import annotations

from typing import Any

from recbias.language.chat.requests import ChatRequest, Message
from recbias.language.chat.settings import LanguageModel
from support.chat.chat_server import ChatServer


def make_model(server: ChatServer, **settings: Any) -> LanguageModel:
    return LanguageModel(**{"model": "small", "base_url": server.base_url, **settings})


def make_requests(model: LanguageModel, n: int) -> list[ChatRequest]:
    """Return n requests with the prompts ``prompt 0``, ``prompt 1``, ..."""
    return [model.build_request([Message("user", f"prompt {i}")]) for i in range(n)]
