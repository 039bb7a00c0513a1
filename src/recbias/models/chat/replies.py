"""Titles from replies of a chat model, for the models that ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.outputs.text_outputs import Responses
from recbias.core.stage_context import record_fact
from recbias.language.chat.client import complete
from recbias.language.chat.endpoints import LanguageModel
from recbias.language.chat.requests import ChatReply, ChatRequest
from recbias.language.prompts.recommendation_prompts import RenderedPrompt
from recbias.language.replies.reply_outcomes import ReplyOutcomes
from recbias.language.replies.reply_parsing import ParsedReply, parse_reply
from recbias.language.replies.title_forms import normalize_title


def request_titles(
    requests: Sequence[ChatRequest], llm: LanguageModel, k: int
) -> tuple[list[ChatReply], list[ParsedReply]]:
    """Return the reply to each request, and the titles that it proposes, at most ``k``.

    Replies to repeated requests are compared by these titles, besides by their text.
    """

    def read_titles(answer: str) -> list[tuple[str, int | None]]:
        proposals = parse_reply(answer, k).proposals
        return [(normalize_title(proposal.title), proposal.year) for proposal in proposals]

    replies = complete(requests, llm, read=read_titles)
    return replies, [parse_reply(reply.answer, k) for reply in replies]


def make_responses(
    ids: Ids,
    prompts: Sequence[RenderedPrompt],
    replies: Sequence[ChatReply],
    outcomes: ReplyOutcomes,
) -> Responses:
    """Return replies as responses, with what became of them as labels.

    The labels are ``prompt``, ``outcome``, ``parsed`` (a JSON list with the title and the outcome
    of each rank), ``prompt_tokens``, ``completion_tokens``, ``cached``, and the number of invalid
    ranks for each reason, ``invalid.format``, ``invalid.watched``, ...
    """
    labels: dict[str, Any] = describe_replies(prompts, replies, outcomes.describe_ranks())
    labels |= {f"invalid.{name}": counts for name, counts in outcomes.count_reasons().items()}
    texts = np.array([reply.text for reply in replies], dtype=object)
    return Responses(ids, texts, np.full(len(replies), None, dtype=object), pd.DataFrame(labels))


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


def record_matching(outcomes: ReplyOutcomes) -> None:
    """Record how titles were matched, and the commonest that were not."""
    record_fact("titles_matched_by_similarity", outcomes.n_fuzzy)
    record_fact("titles_matched_by_popularity", outcomes.n_ambiguous)
    commonest = outcomes.list_unmatched_titles()
    for rank, row in enumerate(commonest.itertuples(), start=1):
        record_fact(f"unmatched_title.{rank:02d}", f"{row.count} x {row.title} ({row.reason})")
