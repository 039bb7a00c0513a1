"""How probable many texts are to a model on a server as the continuation of a context."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.stage_context import warn
from recbias.language.chat.client import complete
from recbias.language.chat.endpoints import LanguageModel
from recbias.language.chat.requests import ChatReply, ChatRequest, Message

MAX_REQUESTS = 20_000
"""About how many requests are prepared at a time."""


@dataclass(frozen=True)
class ServedScorer:
    """Scores the same texts after any number of contexts, by one request for each pair.

    Args:
        llm: The model.
        texts: The texts; there is at least one.
    """

    llm: LanguageModel
    texts: Sequence[str]

    def build_requests(self, contexts: Sequence[str]) -> Iterator[list[ChatRequest]]:
        """Yield the requests of all texts after each context, those of some contexts at a time."""
        size, build = max(1, MAX_REQUESTS // len(self.texts)), self.llm.build_likelihood_request
        for start in range(0, len(contexts), size):
            messages = [Message("user", context) for context in contexts[start : start + size]]
            yield [build(message, text) for message in messages for text in self.texts]

    def score_after(self, contexts: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the mean log-probability of the tokens of each text after each context.

        It is NaN, with a warning, where the server rejected the request.
        """
        for requests in self.build_requests(contexts):
            scores = np.array([read_mean(reply) for reply in complete(requests, self.llm)])
            if np.isnan(scores).any():
                warn(f"{np.isnan(scores).sum():,} titles without a likelihood are not ranked")
            yield from scores.reshape(-1, len(self.texts))


def read_mean(reply: ChatReply) -> float:
    """Return the mean log-probability of a reply; NaN where there is none.

    >>> read_mean(ChatReply(text='{"tokens": ["A", "b"], "log_probabilities": [-1.0, -2.0]}'))
    -1.5
    """
    try:
        return float(np.mean(json.loads(reply.answer)["log_probabilities"]))
    except (ValueError, KeyError, TypeError):
        return float("nan")
