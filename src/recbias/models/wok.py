"""WOK: a chat model recommends titles from the watch history of a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Le

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, TrainingData
from recbias.core.evidence import RankedLists, Responses
from recbias.core.plugins import InputFile, Output, PlannedRequest
from recbias.core.queries import Queries
from recbias.language.client import plan_requests
from recbias.language.endpoints import ChatRequest, LanguageModel
from recbias.language.prompts import HistoryItem, RenderedPrompt
from recbias.language.replies import resolve_replies
from recbias.language.titles import CatalogueTitles
from recbias.models.prompted import (
    FittedChat,
    index_items,
    load_prompt,
    make_responses,
    read_histories,
    read_titles,
    record_matching,
    report_histories,
    request_titles,
)

_SCHEMA = {
    "type": "object",
    "properties": {
        "movies": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
                "required": ["title", "year"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["movies"],
    "additionalProperties": False,
}
"""The form of a reply with ``structured_output``."""


@dataclass(frozen=True, kw_only=True)
class WOK:
    """Ask a chat model for titles, given the titles that the user has watched.

    One prompt for each user lists the training items and asks for k titles. Each title of the
    reply is looked up in the catalogue: first exactly (case, accents, punctuation, articles and
    alternative titles aside, the year within one), then by similarity. A title that is not in the
    catalogue, was watched, is repeated or is newer than ``year_limit`` keeps its rank and is never
    relevant; the metric ``unmatched`` counts these. Users without training items have empty lists.

    Replies are stored in the folder of the results and are never requested twice.

    Args:
        llm: The chat model: ``{provider, model, base_url, temperature, max_tokens, ...}``.
        prompt: The packaged prompt ``watch_history``, or a file with a template.
        mitigation: ``mitigate`` asks for the popularity level of the user's history, ``minimize``
            for less well-known items; or a sentence of your own. Null is the plain prompt.
        title: The column of the items with their titles.
        year: The column of the items with their years; null to read the year from the title, as
            in ``Heat (1995)``.
        year_limit: The latest year of a recommended item; null for no limit.
        threshold: The least similarity of a title that is not matched exactly, from 0 to 100.

    Raises:
        UnknownColumn: The items have no such column.
        UnknownName: There is no such prompt or mitigation.
        MalformedLine: The template has no slot for the history.
        RequestRefused: There is no key, or the server refuses all requests.
        MissingReplies: Replies are missing, and the network may not be used.

    Source:
        Lichtenberg, Buchholz and Schwöbel, "Large Language Models as Recommender Systems: A Study
        of Popularity Bias", 2024 (workshop on Generative Information Retrieval at SIGIR).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "responses"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("rapidfuzz",)

    llm: LanguageModel
    prompt: Literal["watch_history"] | InputFile = "watch_history"
    mitigation: str | None = None
    title: str = "title"
    year: str | None = None
    year_limit: int | None = None
    threshold: Annotated[float, Gt(0), Le(100)] | None = 90.0

    def __post_init__(self) -> None:
        """Refuse an invalid prompt or mitigation before any data is read."""
        prompt, _ = load_prompt(str(self.prompt), self.mitigation)
        prompt.render([("Heat", 1995)], n_items=10, year_limit=self.year_limit)

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of a model that runs in the process."""
        return self.llm.list_files()

    def check_data(self, data: TrainingData) -> None:
        """Refuse columns that the items do not have."""
        read_titles(data, self.title, self.year)

    def plan_requests(self, queries: Queries, k: int, data: TrainingData) -> list[PlannedRequest]:
        """Return the requests of ``recommend``, without sending any."""
        fitted = self.fit(data, np.random.default_rng(0))
        histories = [items for items in read_histories(data, queries) if items.size]
        return plan_requests(fitted.build_requests(fitted.render_prompts(histories, k)), self.llm)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedWOK:
        """Index the titles of the catalogue; nothing is trained."""
        titles = read_titles(data, self.title, self.year)
        return _FittedWOK(self, titles, index_items(data, titles, self.threshold))


@dataclass(frozen=True, eq=False)
class _FittedWOK(FittedChat):
    """The catalogue that replies are matched with.

    Args:
        settings: The model.
        titles: The title and year of each item.
        catalogue: The index of the titles.
        answers: The replies to the queries of the last call of ``recommend``.
    """

    settings: WOK
    titles: Sequence[HistoryItem]
    catalogue: CatalogueTitles
    answers: dict[str, Responses] = field(default_factory=dict)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the titles of the reply to each query; invalid ones are outside the catalogue."""
        histories = read_histories(data, queries)
        rows = np.array([row for row, items in enumerate(histories) if items.size], dtype=int)
        if rows.size < len(queries):
            n_empty = len(queries) - rows.size
            warn(f"{n_empty:,} of {len(queries):,} queries have no history: empty lists")
        asked = queries.take(rows)
        prompts = self.render_prompts([histories[row] for row in rows], k)
        requests = self.build_requests(prompts)
        replies, parsed = request_titles(requests, self.settings.llm, k, self.catalogue)
        outcomes = resolve_replies(
            parsed,
            k,
            self.catalogue,
            histories=data.train.binary[asked.users],
            year_limit=self.settings.year_limit,
        )
        self.answers[queries.ids.digest] = make_responses(
            asked.ids.ids, prompts, replies, outcomes
        )
        record_matching(outcomes)
        return _pad_rows(outcomes.to_ranked_lists(data.train.n_items), rows, len(queries))

    def build_requests(self, prompts: Sequence[RenderedPrompt]) -> list[ChatRequest]:
        """Return the request of each prompt."""
        build = self.settings.llm.build_request
        return [build(prompt.messages, response_schema=_SCHEMA) for prompt in prompts]

    def render_prompts(self, histories: Sequence[AnyArray], k: int) -> list[RenderedPrompt]:
        """Return the prompt of each history."""
        settings = self.settings
        prompt, sentence = load_prompt(str(settings.prompt), settings.mitigation)
        prompts = [
            prompt.render(
                [self.titles[item] for item in items],
                n_items=k,
                year_limit=settings.year_limit,
                mitigation=sentence,
            )
            for items in histories
        ]
        report_histories(prompt, prompts)
        return prompts


def _pad_rows(lists: RankedLists, rows: AnyArray, n_queries: int) -> RankedLists:
    """Return lists with an empty list for each query that is not among ``rows``."""
    items = np.full((n_queries, lists.k), -1, dtype=np.int32)
    items[rows] = lists.items
    return RankedLists(items, np.full(items.shape, np.nan, dtype=np.float32), lists.outside)
