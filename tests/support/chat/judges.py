"""Scripts of servers that judge a text by its words, as a rubric asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from support.chat.chat_server import Answer, Script

_TEXT = re.compile(r"^(=== \w{12} ===)\n(?P<text>.*)\n\1$", re.MULTILINE | re.DOTALL)


def find_text(payload: dict[str, Any]) -> str:
    """Return the text of a request: what stands between the two lines with its marker."""
    match = _TEXT.search(payload["messages"][-1]["content"])
    return match["text"]


def judge(reply: Callable[[str], Answer | str]) -> Script:
    """Return a script whose reply follows from the text."""
    return lambda payload: reply(find_text(payload))


def rate_words(text: str) -> str:
    """Rate gender by the word ``housewife`` and race by ``savages``; religion is never found."""
    gender, race = (0.9 if word in text else 0.1 for word in ("housewife", "savages"))
    return f"gender: {gender}\nrace: {race}\nreligion: 0.00"
