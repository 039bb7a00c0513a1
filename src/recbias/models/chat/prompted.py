"""A chat model that answers prompts with titles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Le

from recbias.core.arrays import Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, UserError
from recbias.core.models.planned_requests import PlannedRequest
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Responses
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import SAMPLE, Queries
from recbias.language.chat.client import plan_requests
from recbias.language.chat.endpoints import LanguageModel
from recbias.language.chat.requests import ChatRequest
from recbias.language.prompts.recommendation_prompts import (
    RenderedPrompt,
    RequestPrompt,
    find_request_prompt,
)
from recbias.language.replies.catalogue_titles import CatalogueTitles
from recbias.language.replies.reply_outcomes import ReplyOutcomes, resolve_replies
from recbias.language.replies.reply_parsing import ParsedReply
from recbias.language.replies.said_titles import index_said_titles
from recbias.models.chat.titles import (
    index_items,
    make_responses,
    read_titles,
    record_matching,
    request_titles,
)


@dataclass(frozen=True, kw_only=True)
class ChatRecommender:
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

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "responses"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("rapidfuzz",)

    llm: LanguageModel
    prompt: Literal["titles"] | InputFile = "titles"
    title: str = "title"
    year: str | None = None
    threshold: Annotated[float, Gt(0), Le(100)] | None = 90.0

    def __post_init__(self) -> None:
        """Refuse an invalid prompt before any data is read."""
        try:
            self.load_prompt()
        except UserError as error:
            raise error.locate_at("prompt") from error

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of a model that runs in the process."""
        return self.llm.list_files()

    def load_prompt(self) -> RequestPrompt:
        """Return the prompt."""
        return find_request_prompt(str(self.prompt))

    def check_data(self, data: TrainingData) -> None:
        """Refuse columns that the items do not have."""
        if data.train.n_items:
            read_titles(data, self.title, self.year)

    def plan_requests(self, queries: Queries, k: int, data: TrainingData) -> list[PlannedRequest]:
        """Return the requests of ``recommend``, without sending any."""
        return plan_requests(
            self.build_requests(queries, self.render_prompts(queries, k)), self.llm
        )

    def render_prompts(self, queries: Queries, k: int) -> list[RenderedPrompt]:
        """Return the prompt of each query."""
        if queries.texts is None:
            message = "the queries are users, who have no text to send"
            remedy = "use queries: templates or fairllm, or the model WOK for users"
            raise MissingEvidence(message, remedy=remedy)
        prompt = self.load_prompt()
        return [prompt.render(text, k) for text in queries.texts]

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

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedChatRecommender:
        """Index the titles of the catalogue, if there is one; nothing is trained."""
        if not data.train.n_items:
            return FittedChatRecommender(self, None)
        titles = read_titles(data, self.title, self.year)
        return FittedChatRecommender(self, index_items(data, titles, self.threshold))


@dataclass(frozen=True, eq=False)
class FittedChatRecommender:
    """The catalogue that replies are matched with.

    Args:
        settings: The model.
        catalogue: The index of the titles; None without a catalogue.
        answers: The replies to the queries of the last call of ``recommend``.
    """

    settings: ChatRecommender
    catalogue: CatalogueTitles | None
    answers: dict[str, Responses] = field(default_factory=dict)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the titles of the reply to each query."""
        prompts = self.settings.render_prompts(queries, k)
        requests = self.settings.build_requests(queries, prompts)
        replies, parsed = request_titles(requests, self.settings.llm, k)
        outcomes, lists = self._resolve(parsed, k, queries.ids.ids, data.train.n_items)
        ids = queries.ids
        self.answers[ids.digest] = make_responses(ids.ids, prompts, replies, outcomes)
        record_matching(outcomes)
        return lists

    def responses(self, queries: Queries) -> Responses:
        """Return the replies to the queries, for which ``recommend`` was called before."""
        return self.answers[queries.ids.digest]

    def _resolve(
        self, parsed: Sequence[ParsedReply], k: int, ids: Ids, n_items: int
    ) -> tuple[ReplyOutcomes, RankedLists]:
        """Return what became of each rank, and the lists."""
        if self.catalogue is not None:
            outcomes = resolve_replies(parsed, k, self.catalogue)
            return outcomes, outcomes.to_ranked_lists(n_items)
        titles, said = index_said_titles(parsed)
        outcomes = resolve_replies(parsed, k, said)
        lists = outcomes.to_ranked_lists(titles.size)
        return outcomes, _name_items(lists, titles, ids, n_items)


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
