"""Scripted replies that put the candidates of a prompt in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from support.chat.chat_server import ChatServer, Script
from support.worlds.film_worlds import write_list


def make_rerank(server: ChatServer, **settings: Any) -> dict[str, Any]:
    """Return the entry of a model that reorders six candidates of ItemKNN in four orders."""
    llm = {"model": "small", "base_url": server.base_url, "retries": 0}
    base = {"candidates": {"name": "ItemKNN", "neighbors": 30}, "n_candidates": 6, "orders": 4}
    return {"name": "LMRerank", **base, **settings, "llm": llm | settings.get("llm", {})}


def read_candidates(payload: Mapping[str, Any]) -> list[str]:
    """Return the candidates of a request in the order in which they are shown."""
    _, _, shown = payload["messages"][-1]["content"].partition("available now:")
    return [line[2:] for line in shown.splitlines() if line.startswith("- ") and line[-1] == ")"]


def reorder(choose: Callable[[list[str]], Iterable[str]]) -> Script:
    """Return a script that answers with what ``choose`` makes of the candidates."""
    return lambda payload: write_list(choose(read_candidates(payload)))
