"""The memory of requests to chat models: prompts and replies, and the model if it is local."""

from __future__ import annotations

from recbias.core.machine.expected import ModelMemory
from recbias.language.chat.providers import PROVIDERS
from recbias.language.chat.settings import LanguageModel

TITLE = 32.0
"""The number of characters of a title with its year in a prompt, about."""

PER_TITLE = 1500.0
"""Bytes of a title of the catalogue with the forms that it is found by."""

PER_REQUEST = 4000.0
"""Bytes of a request besides its prompt: its objects, its reply, and what was read of this."""

COPIES = 3.0
"""How often the characters of a prompt are in memory: in the request, in the table of the replies,
and in the file of this table while it is written."""


def plan_replies(
    llm: LanguageModel, n_requests: float, characters: float, *, beside: float = 0.0
) -> ModelMemory | None:
    """Return the memory of asking for replies, all of which are in memory at once.

    Args:
        llm: The chat model.
        n_requests: The number of requests.
        characters: The number of characters of a prompt.
        beside: The bytes of what replies are matched with.
    """
    requests = n_requests * (PER_REQUEST + COPIES * characters)
    libraries = (PROVIDERS[llm.provider].package,)
    return ModelMemory(0.0, 0.0, beside + requests, ranking="none", lists_with=libraries)
