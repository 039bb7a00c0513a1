"""The memory of recommendation by the likelihood of titles."""

from __future__ import annotations

from recbias.core.machine.expected import ModelMemory, Sizes
from recbias.language.prefix_trees import MAX_NODES
from recbias.language.weights.model_shapes import CHARACTERS_PER_TOKEN, read_shape
from recbias.models.chat.served_likelihood import MAX_REQUESTS

TITLE_TOKENS = 9.0
"""The number of tokens of a title with its year, about."""

NODES = 7.0
"""The nodes of a title in trees of all titles, and of their first tokens."""

PER_TITLE = 1500.0
"""Bytes of a title with its tokens."""

PER_REQUEST = 1800.0
"""Bytes of a request to a server with its reply."""

LONGEST_HISTORY = 10
"""The longest history, as a multiple of the mean."""


def plan_local(
    model: str, precision: str, prompt: str, max_history: int | None, sizes: Sizes
) -> ModelMemory | None:
    """Return the memory of a model in the process; None if it is not on this machine.

    These are the weights, the titles in trees of which each node says which others it sees, and
    the logits of a tree, or else of the prompt of a user, with their keys and values.
    """
    shape = read_shape(model)
    if shape is None:
        return None
    shape = shape.convert(precision)
    mean = sizes.get("training", sizes["interactions"]) / max(sizes["users"], 1)
    n_shown = min(max_history or sizes["items"], LONGEST_HISTORY * mean)
    n_read = shape.limit_length(len(prompt) / CHARACTERS_PER_TOKEN + TITLE_TOKENS * n_shown)
    n_nodes = NODES * sizes["items"]
    titles = PER_TITLE * sizes["items"] + n_nodes * min(n_nodes, MAX_NODES)
    batch = shape.count_scoring(max(min(n_nodes, MAX_NODES), n_read))
    batch += shape.count_cache(n_read + MAX_NODES)
    lists = max(shape.loading, shape.bytes + titles + batch)
    return ModelMemory(0.0, 0.0, lists, ranking="none", lists_with=("torch", "transformers"))


def plan_served(sizes: Sizes) -> ModelMemory:
    """Return the memory of the titles, and of the requests that are prepared at a time."""
    n_requests = min(MAX_REQUESTS, sizes.get("queries", sizes["users"]) * sizes["items"])
    requests = PER_REQUEST * max(n_requests, sizes["items"])
    return ModelMemory(0.0, 0.0, PER_TITLE * sizes["items"] + requests, ranking="none")
