"""The labels of replies that every chat model gives: prompt, outcome, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recbias.language.chat.requests import ChatReply
from recbias.language.prompts.recommendation_prompts import RenderedPrompt


def describe_replies(
    prompts: Sequence[RenderedPrompt], replies: Sequence[ChatReply], parsed: Sequence[str]
) -> dict[str, list[Any]]:
    """Return the columns ``prompt``, ``outcome``, ``parsed``, the tokens, and ``cached``.

    Args:
        prompts: The prompts.
        replies: The reply to each.
        parsed: A JSON list with the title and the outcome of each rank of each reply.
    """
    return {
        "prompt": [prompt.messages[-1].content for prompt in prompts],
        "outcome": [reply.outcome for reply in replies],
        "parsed": list(parsed),
        "prompt_tokens": [reply.prompt_tokens for reply in replies],
        "completion_tokens": [reply.completion_tokens for reply in replies],
        "cached": [reply.cached for reply in replies],
    }
