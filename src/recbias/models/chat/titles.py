"""Titles: those of the items in prompts, and those that replies propose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn, UserError
from recbias.core.outputs.text_outputs import Responses
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import record_fact, warn
from recbias.language.chat.client import complete
from recbias.language.chat.endpoints import LanguageModel
from recbias.language.chat.requests import ChatReply, ChatRequest
from recbias.language.prompts.recommendation_prompts import (
    HistoryItem,
    RecommendationPrompt,
    RenderedPrompt,
    find_mitigation,
    find_prompt,
)
from recbias.language.replies.catalogue_titles import CatalogueTitles, index_titles
from recbias.language.replies.reply_outcomes import ReplyOutcomes
from recbias.language.replies.reply_parsing import ParsedReply, parse_reply
from recbias.language.replies.title_forms import normalize_title, restore_article, split_year


def read_titles(data: TrainingData, title: str, year: str | None) -> list[HistoryItem]:
    """Return the title and year of each item, in the order of the codes.

    An article at the end of a title is moved to its front: ``The Matrix``. An item without a
    title is named by its identifier.

    Args:
        data: The training data.
        title: The column of titles.
        year: The column of years; None to read the year from the title (``Heat (1995)``).

    Raises:
        MissingEvidence: The dataset has no items.
        UnknownColumn: There is no such column, or no item has a title.
    """
    if data.items is None:
        message, remedy = "the dataset has no items", "give it an items table with titles"
        raise MissingEvidence(message, remedy=remedy)
    cells = _read_column(data, "title", title)
    if not any(cells):
        raise UnknownColumn(f"no item has a value in {title!r}", where="title")
    pairs = [split_year(cell) for cell in cells]
    years: Sequence[int | None] = [written for _, written in pairs]
    if year is not None:
        try:
            numbers = data.items.numbers(year)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="year", remedy=error.remedy) from error
        years = [None if np.isnan(number) else int(number) for number in numbers]
    ids = data.train.item_ids.ids
    return [
        (restore_article(name) or str(ids[code]), years[code])
        for code, (name, _) in enumerate(pairs)
    ]


def index_items(
    data: TrainingData, titles: Sequence[HistoryItem], threshold: float | None
) -> CatalogueTitles:
    """Return the index of the titles of all items; of equal titles the most popular is meant."""
    names, years = [name for name, _ in titles], [year for _, year in titles]
    return index_titles(names, years, data.train.item_counts(), threshold=threshold)


def _read_column(data: TrainingData, setting: str, name: str) -> list[str]:
    try:
        column = data.items.column(name)  # type: ignore[union-attr]  # checked by read_titles
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where=setting, remedy=error.remedy) from error
    return [str(cell) if isinstance(cell, str) else "" for cell in column]


@dataclass(frozen=True, eq=False)
class Histories:
    """The training items of each user in time order; in the order of the data without times.

    Args:
        items: The items of all users, ``int32[n]``.
        starts: The position of the first item of each user, ``int64[n_users + 1]``.
    """

    items: Codes
    starts: AnyArray

    @classmethod
    def from_data(cls, data: TrainingData) -> Histories:
        """Return the histories of all users; without times, with a warning."""
        train = data.train
        if train.times is None:
            warn("the interactions have no times: histories are in the order of the data")
        times = np.zeros(len(train)) if train.times is None else train.times
        order = np.lexsort((times, train.users))
        starts = np.concatenate([[0], np.cumsum(train.user_counts())])
        return cls(train.items[order], starts)

    def select(self, queries: Queries) -> list[Codes]:
        """Return the items of each query, the oldest first; none if the query is not a user."""
        empty = self.items[:0]
        return [
            self.items[self.starts[user] : self.starts[user + 1]] if user >= 0 else empty
            for user in queries.users.tolist()
        ]


def load_prompt(name: str, mitigation: str | None) -> tuple[RecommendationPrompt, str | None]:
    """Return a prompt, and the sentence of a mitigation.

    Args:
        name: A packaged prompt, or a file.
        mitigation: The name of a mitigation, or a sentence; None for the plain prompt.

    Raises:
        UserError: There is no such prompt or mitigation, or its file is malformed.
    """
    try:
        prompt = find_prompt(name)
    except UserError as error:
        raise error.locate_at("prompt") from error
    return prompt, None if mitigation is None else find_mitigation(mitigation, prompt).sentence


def report_histories(prompt: RecommendationPrompt, prompts: Sequence[RenderedPrompt]) -> None:
    """Record the order of the histories, and warn of items that are not in the prompts."""
    record_fact("history_order", prompt.history.order)
    n_cut = sum(rendered.n_cut for rendered in prompts)
    if n_cut:
        n_prompts = sum(rendered.n_cut > 0 for rendered in prompts)
        record_fact("history_items_cut", n_cut)
        warn(f"{n_cut:,} oldest items of {n_prompts:,} histories are not in the prompts")


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
