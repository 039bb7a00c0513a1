"""The memory of requests to chat models: prompts and replies, and the model if it is local."""

from __future__ import annotations

from recbias.core.machine.expected import ModelMemory
from recbias.language.chat.providers import PROVIDERS
from recbias.language.chat.settings import LanguageModel
from recbias.language.weights.model_shapes import CHARACTERS_PER_TOKEN, read_shape

TITLE = 32.0
"""The number of characters of a title with its year in a prompt, about."""

PER_TITLE = 1500.0
"""Bytes of a title of the catalogue with the forms that it is found by."""

PER_REQUEST = 4000.0
"""Bytes of a request besides its prompt: its objects, its reply, and what was read of this."""

COPIES = 3.0
"""How often the characters of a prompt are in memory: in the request, in the table of the replies,
and in the file of this table while it is written."""

GROWN = 3.0
"""Bytes of keys and values over their final bytes: with each token they are copied to a larger
array, and what is freed is too small for the next one (measured)."""


def plan_replies(
    llm: LanguageModel, n_requests: float, characters: float, *, beside: float = 0.0
) -> ModelMemory | None:
    """Return the memory of asking for replies, all of which are in memory at once.

    A model in the process has its weights, and of a batch the inner states of the prompts and the
    keys and values of prompts and replies. It is None if it is not on this machine.

    Args:
        llm: The chat model.
        n_requests: The number of requests.
        characters: The number of characters of a prompt.
        beside: The bytes of what replies are matched with.
    """
    libraries: tuple[str, ...] = (PROVIDERS[llm.provider].package,)
    lists = beside + n_requests * (PER_REQUEST + COPIES * characters)
    if llm.is_local:
        shape = read_shape(llm.model)
        if shape is None:
            return None
        size = 1 if llm.temperature else min(llm.concurrency, n_requests)
        length = shape.limit_length(characters / CHARACTERS_PER_TOKEN)
        states = shape.count_reading(size * length)
        cache = GROWN * shape.count_cache(size * shape.limit_length(length + llm.max_tokens))
        lists += max(shape.loading, shape.bytes + states + cache)
        libraries = ("torch", *libraries)
    return ModelMemory(0.0, 0.0, lists, ranking="none", lists_with=libraries)
