"""Lists of another model whose first items a chat model has put in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from recbias.core.arrays import Codes, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.planned_requests import PlannedRequest
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Responses
from recbias.core.protocols import FittedRecommender
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.language.chat.client import plan_requests
from recbias.language.chat.endpoints import LanguageModel
from recbias.language.chat.requests import ChatRequest
from recbias.language.prompts.recommendation_prompts import (
    HistoryItem,
    RenderedPrompt,
)
from recbias.models.chat.candidate_replies import (
    TITLES_PER_CANDIDATE,
    CandidateRanks,
    rank_candidates,
)
from recbias.models.chat.prompting import report_histories
from recbias.models.chat.ranking_labels import describe_rankings, record_counts
from recbias.models.chat.replies import request_titles
from recbias.models.chat.shortlists import Presentation, Shortlist
from recbias.models.chat.titles import Histories


@dataclass(frozen=True, eq=False)
class FittedReranking:
    """A fitted model, and the chat model that reorders its lists.

    Args:
        llm: The chat model.
        presentation: How the candidates are shown.
        threshold: The least similarity of a title that is not matched exactly.
        base: The fitted other model.
        titles: The title and year of each item.
        answers: The replies to the queries of the last call of ``recommend``.
    """

    llm: LanguageModel
    presentation: Presentation
    threshold: float | None
    base: FittedRecommender
    titles: Sequence[HistoryItem]
    answers: dict[str, Responses] = field(default_factory=dict)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the lists of the other model with its first items in the new order."""
        lists = self._recommend_base(queries, k, data)
        shortlists = list(self._make_shortlists(lists, queries, data))
        n_titles = TITLES_PER_CANDIDATE * self.presentation.n_candidates
        replies, _ = request_titles(self._build_requests(shortlists), self.llm, n_titles)
        size = self.presentation.n_orders
        parts = [replies[start : start + size] for start in range(0, len(replies), size)]
        rankings = [
            rank_candidates([reply.answer for reply in part], shortlist.titles, self.threshold)
            for shortlist, part in zip(shortlists, parts, strict=True)
        ]
        ids = np.repeat(queries.ids.ids[[shortlist.row for shortlist in shortlists]], size)
        labels = describe_rankings(shortlists, replies, rankings)
        references = np.full(len(replies), None, dtype=object)
        texts = np.array([reply.text for reply in replies], dtype=object)
        self.answers[queries.ids.digest] = Responses(ids, texts, references, labels)
        record_counts(labels)
        return _reorder(lists, shortlists, rankings).truncate(k)

    def responses(self, queries: Queries) -> Responses:
        """Return the replies to the queries, for which ``recommend`` was called before."""
        return self.answers[queries.ids.digest]

    def plan_requests(self, queries: Queries, k: int, data: TrainingData) -> list[PlannedRequest]:
        """Return the requests of ``recommend``, without sending any."""
        lists = self._recommend_base(queries, k, data)
        shortlists = list(self._make_shortlists(lists, queries, data))
        return plan_requests(self._build_requests(shortlists), self.llm)

    def _recommend_base(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        return self.base.recommend(queries, max(k, self.presentation.n_candidates), data)

    def _make_shortlists(
        self, lists: RankedLists, queries: Queries, data: TrainingData
    ) -> Iterator[Shortlist]:
        """Yield the candidates of each query that has a history and at least two of them."""
        histories, show = Histories.from_data(data).select(queries), self.presentation
        items = lists.items[:, : show.n_candidates]
        is_shown = (items >= 0) & (items < len(self.titles))
        has_history = np.array([history.size > 0 for history in histories], dtype=bool)
        is_asked = has_history & (is_shown.sum(axis=1) > 1)
        prompts: list[RenderedPrompt] = []
        for row in np.flatnonzero(is_asked).tolist():
            columns = np.flatnonzero(is_shown[row])
            titles = [self.titles[item] for item in items[row, columns]]
            orders = show.sample_orders(queries.ids.ids[row], len(titles))
            displayed = show.render([self.titles[item] for item in histories[row]], titles, orders)
            prompts += displayed
            yield Shortlist(row, columns, titles, orders, displayed)
        report_histories(show.prompt, prompts)
        if not is_asked.all():
            n, n_kept = len(queries), int((~is_asked).sum())
            warn(f"{n_kept:,} of {n:,} queries have no history or one candidate: not reordered")

    def _build_requests(self, shortlists: Sequence[Shortlist]) -> list[ChatRequest]:
        prompts = [prompt for shortlist in shortlists for prompt in shortlist.prompts]
        return [self.llm.build_request(prompt.messages) for prompt in prompts]


def _reorder(
    lists: RankedLists, shortlists: Sequence[Shortlist], rankings: Sequence[CandidateRanks]
) -> RankedLists:
    """Return the lists with each shortlist in its new order; scores are negative mean ranks."""
    items: Codes = lists.items.copy()
    scores: FloatArray = np.tile(-np.arange(1.0, lists.k + 1), (len(lists), 1))
    for shortlist, ranking in zip(shortlists, rankings, strict=True):
        order, means = ranking.order_candidates()
        items[shortlist.row, shortlist.columns] = items[shortlist.row, shortlist.columns[order]]
        scores[shortlist.row, shortlist.columns] = -means
    scores = np.minimum.accumulate(scores, axis=1)
    scores = np.where(items >= 0, scores, np.nan)
    return RankedLists(items, scores.astype(np.float32), lists.outside)
