"""Language models on loopback, and requests to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recbias.language.client import plan_requests
from recbias.language.endpoints import ChatRequest, LanguageModel, Message
from support.chat.chat_server import ChatServer


def make_model(server: ChatServer, **settings: Any) -> LanguageModel:
    return LanguageModel(**{"model": "small", "base_url": server.base_url, **settings})


def make_requests(model: LanguageModel, n: int) -> list[ChatRequest]:
    """Return n requests with the prompts ``prompt 0``, ``prompt 1``, ..."""
    return [model.build_request([Message("user", f"prompt {i}")]) for i in range(n)]


def count_missing(requests: Sequence[ChatRequest], folder: Path | None = None) -> int:
    """Return how many requests have no reply stored in a folder."""
    planned = plan_requests(requests, LanguageModel(model="any"), folder)
    return len({request.address for request in planned if not request.is_stored})
