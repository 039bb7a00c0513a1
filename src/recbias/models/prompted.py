"""Models that ask a chat model for titles: WOK from histories, ChatRecommender from prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Gt, Le

from recbias.core.context import record_fact, warn
from recbias.core.dataset import SAMPLE, AnyArray, Codes, Ids, Queries, TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn, at_setting
from recbias.core.evidence import RankedLists, Responses
from recbias.core.plugins import InputFile, Output, PlannedRequest
from recbias.language.answers import ParsedReply, parse_reply
from recbias.language.client import complete, plan_requests
from recbias.language.endpoints import ChatReply, ChatRequest, LanguageModel
from recbias.language.prompts import (
    HistoryItem,
    RecommendationPrompt,
    RenderedPrompt,
    RequestPrompt,
    find_mitigation,
)
from recbias.language.replies import ReplyOutcomes, index_said_titles, resolve_replies
from recbias.language.reply_labels import is_refusal
from recbias.language.titles import (
    CatalogueTitles,
    index_titles,
    normalize_title,
    restore_article,
    split_year,
)


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
        with at_setting("year"):
            numbers = data.items.numbers(year)
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
    with at_setting(setting):
        column = data.items.column(name)  # type: ignore[union-attr]  # checked by read_titles
    return [str(cell) if isinstance(cell, str) else "" for cell in column]


def read_histories(data: TrainingData, queries: Queries) -> list[Codes]:
    """Return the training items of each query, the oldest first; none if it is not a user.

    Without times they are in the order of the data, with a warning.
    """
    train = data.train
    if train.times is None:
        warn("the interactions have no times: histories are in the order of the data")
    times = np.zeros(len(train)) if train.times is None else train.times
    items = train.items[np.lexsort((times, train.users))]
    histories = np.split(items, np.cumsum(train.user_counts()))  # the last one is empty: -1
    return [histories[user] for user in queries.users.tolist()]


class FittedChat:
    """Base class of what the chat models learned: the replies of the last recommendation."""

    settings: Any
    answers: dict[str, Responses]

    def plan_requests(self, queries: Queries, k: int, data: TrainingData) -> list[PlannedRequest]:
        """Return the requests of ``recommend``, without sending any."""
        return plan_requests(self.build_requests(queries, k, data), self.settings.llm)

    def build_requests(self, queries: Queries, k: int, data: TrainingData) -> list[ChatRequest]:
        """Return the requests of ``recommend``."""
        raise NotImplementedError

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query."""
        raise NotImplementedError

    def responses(self, queries: Queries) -> Responses:
        """Return the replies to the queries, for which ``recommend`` was called before."""
        return self.answers[queries.ids.digest]


def load_prompt(name: str, mitigation: str | None) -> tuple[RecommendationPrompt, str | None]:
    """Return a prompt, and the sentence of a mitigation.

    Args:
        name: A packaged prompt, or a file.
        mitigation: The name of a mitigation, or a sentence; None for the plain prompt.

    Raises:
        UserError: There is no such prompt or mitigation, or its file is malformed.
    """
    with at_setting("prompt"):
        prompt = RecommendationPrompt.find(name)
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
    requests: Sequence[ChatRequest],
    llm: LanguageModel,
    k: int,
    catalogue: CatalogueTitles | None = None,
) -> tuple[list[ChatReply], list[ParsedReply]]:
    """Return the reply to each request, and the titles that it proposes, at most ``k``.

    Replies to repeated requests are compared by these titles, besides by their text. An apology
    without a title is a refusal.
    """
    is_title = catalogue.holds if catalogue else None

    def read_titles(answer: str) -> list[tuple[str, int | None]]:
        proposals = parse_reply(answer, k, is_title).proposals
        return [(normalize_title(proposal.title), proposal.year) for proposal in proposals]

    replies = complete(requests, llm, read=read_titles)
    parsed = [parse_reply(reply.answer, k, is_title) for reply in replies]
    refused = {
        n for n, each in enumerate(parsed) if each.is_prose and is_refusal(replies[n].answer)
    }
    if refused:
        warn(f"{len(refused):,} of {len(replies):,} replies refuse in words: no title is read")
    return [
        replace(reply, outcome="refusal") if n in refused else reply
        for n, reply in enumerate(replies)
    ], parsed


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


class ChatModel:
    """Base class of the models that ask a chat model for titles."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "responses"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("rapidfuzz",)

    llm: LanguageModel
    title: str
    year: str | None
    threshold: float | None

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of a model that runs in the process."""
        return self.llm.list_files()

    def check_data(self, data: TrainingData) -> None:
        """Refuse columns that the items do not have."""
        if self.needs or data.train.n_items:
            read_titles(data, self.title, self.year)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedChat:
        """Index the titles of the catalogue, if there is one; nothing is trained."""
        if not self.needs and not data.train.n_items:
            return _FittedTitles(self, (), None)
        titles = read_titles(data, self.title, self.year)
        return _FittedTitles(self, titles, index_items(data, titles, self.threshold))

    def plan_requests(self, queries: Queries, k: int, data: TrainingData) -> list[PlannedRequest]:
        """Return the requests of ``recommend`` under the seed 0, without sending any."""
        return self.fit(data, np.random.default_rng(0)).plan_requests(queries, k, data)

    def list_limits(self, queries: Queries, data: TrainingData) -> dict[str, Any]:
        """Return what the titles of a list must not be."""
        return {}


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
class WOK(ChatModel):
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

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})

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

    def render_prompts(
        self, queries: Queries, k: int, data: TrainingData, titles: Sequence[HistoryItem]
    ) -> tuple[AnyArray, list[RenderedPrompt]]:
        """Return the queries with a history, by position, and the prompt of each."""
        histories = read_histories(data, queries)
        rows = np.array([row for row, items in enumerate(histories) if items.size], dtype=int)
        prompt, sentence = load_prompt(str(self.prompt), self.mitigation)
        prompts = [
            prompt.render(
                [titles[item] for item in histories[row]],
                n_items=k,
                year_limit=self.year_limit,
                mitigation=sentence,
            )
            for row in rows
        ]
        report_histories(prompt, prompts)
        return rows, prompts

    def build_requests(
        self, queries: Queries, prompts: Sequence[RenderedPrompt]
    ) -> list[ChatRequest]:
        """Return the request of each prompt."""
        build = self.llm.build_request
        return [build(prompt.messages, response_schema=_SCHEMA) for prompt in prompts]

    def list_limits(self, queries: Queries, data: TrainingData) -> dict[str, Any]:
        """Return what the titles of a list must not be: watched, or too new."""
        return {"histories": data.train.binary[queries.users], "year_limit": self.year_limit}


@dataclass(frozen=True, kw_only=True)
class ChatRecommender(ChatModel):
    """Ask a chat model for recommendations with the text of each query.

    The queries are prompts (``templates``, ``fairllm``): the text of a prompt is put into a
    packaged one that asks for a list of k titles. A prompt whose label ``sample`` is 1 or more is
    one that is sampled again: it is sent as another sample, with its own stored reply, and never
    answered by the reply to the first.

    If there is a catalogue, each title is looked up in the catalogue, as ``WOK`` does; a title
    that is not in it keeps its rank as an item outside the catalogue. Without one, the titles
    of the replies are the items: equal are those with the same words, case, accents, punctuation
    and articles aside, and years that differ by at most one.

    Args:
        llm: The chat model: ``{provider, model, base_url, temperature, max_tokens, ...}``.
        prompt: The packaged prompt ``titles``, or a file with a template.
        title: The column of the items with their titles.
        year: The column of the items with their years; null to read the year from the title, as
            in ``Heat (1995)``.
        threshold: The least similarity of a title that is not matched exactly, from 0 to 100.

    Raises:
        UnknownColumn: The items have no such column.
        MissingEvidence: The dataset has interactions, but no items table with titles; or the
            queries have no texts.
        UnknownName: There is no such prompt.
        MalformedLine: The template has no slot for the request.
        RequestRefused: There is no key, or the server refuses all requests.
        MissingReplies: Replies are missing, and the network may not be used.

    Source:
        Zhang, Bao, Zhang, Wang, Feng and He, "Is ChatGPT Fair for Recommendation? Evaluating
        Fairness in Large Language Model Recommendation", RecSys 2023.
    """

    needs: ClassVar[frozenset[str]] = frozenset()

    llm: LanguageModel
    prompt: Literal["titles"] | InputFile = "titles"
    title: str = "title"
    year: str | None = None
    threshold: Annotated[float, Gt(0), Le(100)] | None = 90.0

    def __post_init__(self) -> None:
        """Refuse an invalid prompt before any data is read."""
        with at_setting("prompt"):
            self.load_prompt()

    def load_prompt(self) -> RequestPrompt:
        """Return the prompt."""
        return RequestPrompt.find(str(self.prompt))

    def render_prompts(
        self, queries: Queries, k: int, data: TrainingData, titles: Sequence[HistoryItem]
    ) -> tuple[AnyArray, list[RenderedPrompt]]:
        """Return the position and the prompt of each query."""
        if queries.texts is None:
            message = "the queries are users, who have no text to send"
            remedy = "use queries: templates or fairllm, or the model WOK for users"
            raise MissingEvidence(message, remedy=remedy)
        prompt = self.load_prompt()
        return np.arange(len(queries)), [prompt.render(text, k) for text in queries.texts]

    def build_requests(
        self, queries: Queries, prompts: Sequence[RenderedPrompt]
    ) -> list[ChatRequest]:
        """Return the request of each query, of the sample that its label ``sample`` names."""
        labels = queries.labels
        samples = labels.numbers(SAMPLE) if SAMPLE in labels.names else np.zeros(len(queries))
        return [
            self.llm.build_request(prompt.messages, sample=int(number))
            for prompt, number in zip(prompts, np.nan_to_num(samples), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _FittedTitles(FittedChat):
    """The catalogue that replies are matched with.

    Args:
        settings: The model.
        titles: The title and year of each item.
        catalogue: The index of the titles; None without a catalogue.
        answers: The replies to the queries of the last call of ``recommend``.
    """

    settings: Any
    titles: Sequence[HistoryItem]
    catalogue: CatalogueTitles | None
    answers: dict[str, Responses] = field(default_factory=dict)

    def build_requests(self, queries: Queries, k: int, data: TrainingData) -> list[ChatRequest]:
        """Return the requests of ``recommend``."""
        rows, prompts = self.settings.render_prompts(queries, k, data, self.titles)
        requests: list[ChatRequest] = self.settings.build_requests(queries.take(rows), prompts)
        return requests

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the titles of the reply to each query; invalid ones are outside the catalogue."""
        settings = self.settings
        rows, prompts = settings.render_prompts(queries, k, data, self.titles)
        if n_empty := len(queries) - rows.size:
            warn(f"{n_empty:,} of {len(queries):,} queries have no history: empty lists")
        asked = queries.take(rows)
        requests = settings.build_requests(asked, prompts)
        replies, parsed = request_titles(requests, settings.llm, k, self.catalogue)
        ids, n_items = asked.ids.ids, data.train.n_items
        if self.catalogue is not None:
            limits = settings.list_limits(asked, data)
            outcomes = resolve_replies(parsed, k, self.catalogue, **limits)
            lists = outcomes.to_ranked_lists(n_items)
        else:
            titles, said = index_said_titles(parsed)
            outcomes = resolve_replies(parsed, k, said)
            lists = _name_items(outcomes.to_ranked_lists(titles.size), titles, ids, n_items)
        self.answers[queries.ids.digest] = make_responses(ids, prompts, replies, outcomes)
        record_matching(outcomes)
        items = np.full((len(queries), k), -1, dtype=np.int32)
        items[rows] = lists.items
        return RankedLists(items, np.full(items.shape, np.nan, dtype=np.float32), lists.outside)


def _name_items(lists: RankedLists, titles: Ids, ids: Ids, n_items: int) -> RankedLists:
    """Return lists whose items are titles outside the catalogue; invalid ranks are all distinct.

    Args:
        lists: Lists in which the codes are those of the titles, and then of invalid ranks.
        titles: The titles.
        ids: The queries.
        n_items: The size of the catalogue.
    """
    items = lists.items.copy()
    invalid = np.argwhere(items >= titles.size)
    names = [
        f"{lists.outside[items[row, rank] - titles.size]} [{ids[row]}]" for row, rank in invalid
    ]
    items[tuple(invalid.T)] = titles.size + np.arange(len(names))
    items[items >= 0] += n_items
    return RankedLists(
        items, lists.scores, np.concatenate([titles, np.array(names, dtype=object)])
    )
