"""Titles ranked by language models: LMRerank by their replies, LMLikelihood by likelihood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le

from recbias.core.context import record_fact, report_progress, warn
from recbias.core.dataset import AnyArray, BoolArray, Codes, FloatArray, Queries, TrainingData
from recbias.core.errors import Contradiction, WrongType, at_setting
from recbias.core.evidence import RankedLists, Responses
from recbias.core.files import make_generator
from recbias.core.plugins import (
    ChecksData,
    ChecksFiles,
    Device,
    FittedRecommender,
    InputFile,
    ModelName,
    NeedsByParameters,
    OnlyWith,
    Output,
    ReadsModels,
    SelectedModel,
)
from recbias.kernels.devices import OnDevice
from recbias.kernels.topk import top_k
from recbias.language.answers import parse_reply
from recbias.language.endpoints import ChatReply, ChatRequest, LanguageModel
from recbias.language.likelihood import TextScorer
from recbias.language.local_models import LocalModel, Precision, load_model
from recbias.language.model_files import find_model, list_model_files
from recbias.language.prompts import HistoryItem, RenderedPrompt
from recbias.language.replies import REASONS, Reason, ReplyOutcomes, resolve_replies
from recbias.language.titles import index_titles
from recbias.models.prompted import (
    ChatModel,
    FittedChat,
    describe_replies,
    load_prompt,
    read_histories,
    read_titles,
    report_histories,
    request_titles,
)
from recbias.models.ranking import PartialLists

_TITLES_PER_CANDIDATE = 2
"""How many titles of a reply are read for each candidate, those that are invalid included."""


@dataclass(frozen=True, kw_only=True)
class LMRerank(ChatModel):
    """Ask a chat model to put the candidates of another model in order.

        rank(i) = (1/J) Σ_j rank of i in the reply to order j

    For each query, the best items of the other model are shown in J random orders, one request
    each. The list has them by their mean rank over the orders; ties are in the order of the other
    model. After them come its next items, if the list is longer. A query without a history keeps
    the list of the other model.

    Titles are matched with the candidates only. Titles that are none of them, repeated titles and
    lines without a title are counted and have no effect. Candidates that a reply leaves out are
    counted, and come after those that it names, in the order of the other model. A reply that
    names no candidate is no ranking: it is left out of the mean.

    The orders are those of the seed and the query, the same for any sample of the queries. The
    other model is trained as if it stood under ``models``; if it does, it is trained once.
    ``order_agreement`` and ``first_slot_share`` measure what the order of presentation changes.

    Args:
        candidates: The other model: a name, or a mapping with a name and settings, as under
            ``models``.
        n_candidates: The number of its best items that are shown.
        orders: The number of random orders of presentation, J.
        llm: The chat model: ``{provider, model, base_url, temperature, max_tokens, ...}``.
        prompt: The packaged prompt ``rerank_candidates``, or a file with a template that has the
            slot ``{candidates}``.
        mitigation: As for WOK: ``mitigate``, ``minimize``, or a sentence of your own.
        title: The column of the items with their titles.
        year: The column of the items with their years; null to read the year from the title.
        threshold: The least similarity of a title that is not matched exactly, from 0 to 100.

    Raises:
        Contradiction: The other model recommends no lists, or the prompt shows no candidates.
        UnknownColumn: The items have no such column.
        UnknownName: There is no such prompt or mitigation.
        RequestRefused: There is no key, or the server refuses all requests.
        MissingReplies: Replies are missing, and the network may not be used.

    Source:
        Hou et al., "Large Language Models are Zero-Shot Rankers for Recommender Systems", ECIR
        2024, section 3.3: the mean over random orders against the bias of position.
    """

    candidates: SelectedModel
    n_candidates: Annotated[int, Ge(2), Le(1000)] = 20
    orders: Annotated[int, Gt(0), Le(100)] = 5
    llm: LanguageModel
    prompt: Literal["rerank_candidates"] | InputFile = "rerank_candidates"
    mitigation: str | None = None
    title: str = "title"
    year: str | None = None
    threshold: Annotated[float, Gt(0), Le(100)] | None = 90.0

    def __post_init__(self) -> None:
        """Refuse another model without lists, and an invalid prompt, before any data is read."""
        if "lists" not in self.candidates.model.provides:
            message = f"{self.candidates.name} recommends no lists"
            remedy = "choose a model that does, such as ItemKNN"
            raise Contradiction(message, where="candidates", remedy=remedy)
        prompt, _ = load_prompt(str(self.prompt), self.mitigation)
        films = [("Heat", 1995), ("Alien", 1979)]
        prompt.render(films, n_items=2, candidates=films)

    def needs_now(self) -> frozenset[str]:
        """Return what it needs, and what the other model needs."""
        model = self.candidates.model
        needs = model.needs_now() if isinstance(model, NeedsByParameters) else model.needs
        return self.needs | frozenset(needs)

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of a chat model in the process, and those of the other model."""
        model = self.candidates.model
        others = model.model_files() if isinstance(model, ReadsModels) else ()
        return (*self.llm.list_files(), *others)

    def check_files(self, datasets: tuple[str, ...]) -> None:
        """Check the files of the other model."""
        if isinstance(self.candidates.model, ChecksFiles):
            self.candidates.model.check_files(datasets)

    def check_data(self, data: TrainingData) -> None:
        """Refuse columns that the items do not have, and the settings of the other model."""
        super().check_data(data)
        model = self.candidates.model
        if isinstance(model, ChecksData):
            with at_setting("candidates"):
                model.check_data(data)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedReranking:
        """Fit the other model."""
        return self.wrap(self.candidates.model.fit(data, rng), data, rng)

    def wrap(
        self, fitted: FittedRecommender, data: TrainingData, rng: np.random.Generator
    ) -> _FittedReranking:
        """Return the recommender that reorders the lists of the fitted other model."""
        titles = read_titles(data, self.title, self.year)
        return _FittedReranking(self, int(rng.integers(2**63)), fitted, titles)


@dataclass(frozen=True, eq=False)
class _FittedReranking(FittedChat):
    """A fitted model, and the chat model that reorders its lists.

    Args:
        settings: The model.
        seed: The seed of the orders in which candidates are shown.
        base: The fitted other model.
        titles: The title and year of each item.
        answers: The replies to the queries of the last call of ``recommend``.
    """

    settings: LMRerank
    seed: int
    base: FittedRecommender
    titles: Sequence[HistoryItem]
    answers: dict[str, Responses] = field(default_factory=dict)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the lists of the other model with its first items in the new order."""
        lists = self._recommend_base(queries, k, data)
        shortlists = list(self._make_shortlists(lists, queries, data))
        n_titles = _TITLES_PER_CANDIDATE * self.settings.n_candidates
        replies, _ = request_titles(self._build_requests(shortlists), self.settings.llm, n_titles)
        size = self.settings.orders
        parts = [replies[start : start + size] for start in range(0, len(replies), size)]
        rankings = [
            rank_candidates(
                [reply.answer for reply in part], shortlist.titles, self.settings.threshold
            )
            for shortlist, part in zip(shortlists, parts, strict=True)
        ]
        ids = np.repeat(queries.ids.ids[[shortlist.row for shortlist in shortlists]], size)
        labels = _describe_rankings(shortlists, replies, rankings)
        references = np.full(len(replies), None, dtype=object)
        texts = np.array([reply.text for reply in replies], dtype=object)
        self.answers[queries.ids.digest] = Responses(ids, texts, references, labels)
        _record_counts(labels)
        return _reorder(lists, shortlists, rankings).truncate(k)

    def build_requests(self, queries: Queries, k: int, data: TrainingData) -> list[ChatRequest]:
        """Return the requests of ``recommend``."""
        lists = self._recommend_base(queries, k, data)
        return self._build_requests(list(self._make_shortlists(lists, queries, data)))

    def _recommend_base(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        return self.base.recommend(queries, max(k, self.settings.n_candidates), data)

    def _make_shortlists(
        self, lists: RankedLists, queries: Queries, data: TrainingData
    ) -> Iterator[_Shortlist]:
        """Yield the candidates of each query that has a history and at least two of them."""
        histories, settings = read_histories(data, queries), self.settings
        prompt, sentence = load_prompt(str(settings.prompt), settings.mitigation)
        items = lists.items[:, : settings.n_candidates]
        is_shown = (items >= 0) & (items < len(self.titles))
        has_history = np.array([history.size > 0 for history in histories], dtype=bool)
        is_asked = has_history & (is_shown.sum(axis=1) > 1)
        prompts: list[RenderedPrompt] = []
        for row in np.flatnonzero(is_asked).tolist():
            columns = np.flatnonzero(is_shown[row])
            titles = [self.titles[item] for item in items[row, columns]]
            orders = self._sample_orders(queries.ids.ids[row], len(titles))
            history = [self.titles[item] for item in histories[row]]
            displayed = [
                prompt.render(
                    history,
                    n_items=len(titles),
                    candidates=[titles[position] for position in order],
                    mitigation=sentence,
                )
                for order in orders.tolist()
            ]
            prompts += displayed
            yield _Shortlist(row, columns, titles, orders, displayed)
        report_histories(prompt, prompts)
        if not is_asked.all():
            n, n_kept = len(queries), int((~is_asked).sum())
            warn(f"{n_kept:,} of {n:,} queries have no history or one candidate: not reordered")

    def _sample_orders(self, query_id: str, n: int) -> AnyArray:
        """Return random orders of ``n`` candidates, which depend on the seed and the query."""
        rng = make_generator(self.seed, "order", query_id)
        return rng.permuted(np.tile(np.arange(n), (self.settings.orders, 1)), axis=1)

    def _build_requests(self, shortlists: Sequence[_Shortlist]) -> list[ChatRequest]:
        prompts = [prompt for shortlist in shortlists for prompt in shortlist.prompts]
        return [self.settings.llm.build_request(prompt.messages) for prompt in prompts]


def _reorder(
    lists: RankedLists, shortlists: Sequence[_Shortlist], rankings: Sequence[_CandidateRanks]
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


@dataclass(frozen=True, eq=False)
class _CandidateRanks:
    """The ranks of the candidates of one query in the replies to several orders of presentation.

    Args:
        ranks: The rank from 1 of each candidate, ``float64[orders, n]``; NaN where the reply
            names none of them.
        outcomes: What became of each title of each reply; items are positions of candidates.
    """

    ranks: FloatArray
    outcomes: ReplyOutcomes

    @property
    def is_read(self) -> BoolArray:
        """Which replies name at least one candidate, ``bool[orders]``."""
        return np.asarray(~np.isnan(self.ranks).any(axis=1))

    def count_left_out(self) -> AnyArray:
        """Return how many candidates each reply leaves out, ``int64[orders]``."""
        return np.asarray(self.ranks.shape[1] - (self.outcomes.items >= 0).sum(axis=1))

    def count_rejected(self, reason: Reason) -> AnyArray:
        """Return how many titles of each reply are invalid for a reason, ``int64[orders]``."""
        is_rejected = (self.outcomes.reasons == reason) & (self.outcomes.titles != "")
        return np.asarray(is_rejected.sum(axis=1))

    def order_candidates(self) -> tuple[AnyArray, FloatArray]:
        """Return the candidates by their mean rank, and these means.

        Ties, and candidates of a query without a reply that can be read, are in their own order.
        """
        read = self.ranks[self.is_read]
        n = self.ranks.shape[1]
        means = read.mean(axis=0) if len(read) else np.arange(1.0, n + 1)
        order = np.argsort(means, kind="stable")
        return order, means[order]


def rank_candidates(
    replies: Sequence[str], titles: Sequence[HistoryItem], threshold: float | None
) -> _CandidateRanks:
    """Return the rank of each candidate in each reply; titles match these candidates only.

    Candidates that a reply leaves out come after those that it names, in their own order.

    >>> titles = [("Heat", 1995), ("Alien", 1979), ("Jaws", 1975)]
    >>> rank_candidates(["1. Jaws (1975)"], titles, None).ranks.tolist()
    [[2.0, 3.0, 1.0]]

    Args:
        replies: The replies to one query; blank where there is none.
        titles: The title and year of each candidate, the best first: it is meant where a title
            matches several.
        threshold: The least similarity of a title that is not matched exactly; see
            ``CatalogueTitles``.
    """
    n = len(titles)
    names, years = [name for name, _ in titles], [year for _, year in titles]
    catalogue = index_titles(names, years, -np.arange(n), threshold=threshold)
    most = _TITLES_PER_CANDIDATE * n
    parsed = [parse_reply(text, most, catalogue.holds) for text in replies]
    n_places = max([n, *(len(reply.proposals) for reply in parsed)])
    outcomes = resolve_replies(parsed, n_places, catalogue)
    return _CandidateRanks(complete_ranks(outcomes.items, n), outcomes)


def complete_ranks(items: Codes, n: int) -> FloatArray:
    """Return the rank of each of ``n`` candidates in lists of some of them, ``float64[q, n]``.

    >>> complete_ranks(np.array([[2, -1, 0], [-1, -1, -1]]), 3).tolist()
    [[2.0, 3.0, 1.0], [nan, nan, nan]]

    Args:
        items: The positions of candidates, each once in a list, ``int32[q, places]``; -1 for none.
        n: The number of candidates.
    """
    places = np.full((len(items), n), items.shape[1])
    rows, columns = np.nonzero(items >= 0)
    places[rows, items[rows, columns]] = columns
    ranks = places.argsort(axis=1, kind="stable").argsort(axis=1).astype(np.float64) + 1
    ranks[(items < 0).all(axis=1)] = np.nan
    return ranks


@dataclass(frozen=True, eq=False)
class _Shortlist:
    """The candidates of one query.

    Args:
        row: The position of the query.
        columns: Their ranks in the list of the other model, from 0.
        titles: Their titles and years, in this order.
        orders: The orders in which they are shown, ``int64[orders, n]``.
        prompts: The prompt of each order.
    """

    row: int
    columns: AnyArray
    titles: Sequence[HistoryItem]
    orders: AnyArray
    prompts: Sequence[RenderedPrompt]


_REJECTED = tuple(reason for reason in REASONS if reason != Reason.MISSING)
"""Why a title of a reply has no effect; candidates that are left out are counted beside them."""


def _describe_rankings(
    shortlists: Sequence[_Shortlist],
    replies: Sequence[ChatReply],
    rankings: Sequence[_CandidateRanks],
) -> pd.DataFrame:
    """Return the labels of the replies, in the order of the queries and the orders.

    Beside those of every chat model: ``order``, the number of the order from 1; ``rank.1``,
    ``rank.2``, ... the rank of each candidate of the other model, the best first; ``first_slot``,
    whether the candidate that is shown first has the first rank; ``left_out``, the number of
    candidates that the reply leaves out; and the number of titles without effect for each reason,
    ``rejected.unknown``.

    Args:
        shortlists: The candidates of each query.
        replies: The replies, one for each order of each query.
        rankings: The ranks of the candidates of each query.
    """
    prompts = [prompt for shortlist in shortlists for prompt in shortlist.prompts]
    parsed = [text for ranking in rankings for text in ranking.outcomes.describe_ranks()]
    columns: dict[str, Any] = dict(describe_replies(prompts, replies, parsed))
    columns["order"] = _join([np.arange(len(shortlist.orders)) + 1 for shortlist in shortlists])
    columns |= _list_ranks(rankings)
    pairs = zip(shortlists, rankings, strict=True)
    columns["first_slot"] = _join([_mark_first_slot(*pair) for pair in pairs])
    columns["left_out"] = _join([ranking.count_left_out() for ranking in rankings])
    for reason in _REJECTED:
        counts = [ranking.count_rejected(reason) for ranking in rankings]
        columns[f"rejected.{reason.name.lower()}"] = _join(counts)
    return pd.DataFrame(columns)


def _mark_first_slot(shortlist: _Shortlist, ranking: _CandidateRanks) -> AnyArray:
    """Return whether each reply ranks the candidate first that it was shown first.

    1 if it does, 0 if not, NaN if the reply names no candidate, ``float64[orders]``.
    """
    ranks = np.take_along_axis(ranking.ranks, shortlist.orders[:, :1], axis=1)[:, 0]
    return np.where(ranking.is_read, ranks == 1, np.nan)


def _list_ranks(rankings: Sequence[_CandidateRanks]) -> dict[str, AnyArray]:
    """Return a column for each candidate; NaN where a query has fewer."""
    blocks = [ranking.ranks for ranking in rankings]
    width = max((block.shape[1] for block in blocks), default=0)
    ranks = np.full((sum(map(len, blocks)), width), np.nan)
    start = 0
    for block in blocks:
        ranks[start : start + len(block), : block.shape[1]] = block
        start += len(block)
    return {f"rank.{column}": values for column, values in enumerate(ranks.T, 1)}


def _join(parts: Sequence[AnyArray]) -> AnyArray:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _record_counts(labels: pd.DataFrame) -> None:
    """Record what replies left out and what was without effect, and warn of unread replies."""
    record_fact("candidates_left_out", int(labels["left_out"].sum()))
    for name in (reason.name.lower() for reason in _REJECTED):
        n_rejected = int(labels[f"rejected.{name}"].sum())
        if n_rejected:
            record_fact(f"titles_rejected.{name}", n_rejected)
    n_unread = int(labels["first_slot"].isna().sum())
    if n_unread:
        warn(f"{n_unread:,} of {len(labels):,} replies name no candidate: left out of the ranking")


_SLOT = "{history}"
"""The place of the history in a prompt."""


@dataclass(frozen=True, kw_only=True)
class LMLikelihood(OnDevice):
    """Rank all titles of the catalogue by their likelihood after a prompt with the history.

        score(u, i) = (1/m) Σ_j ln p(token j of title i | prompt of u, tokens before j)

    With ``debias``, the score of the same title after ``neutral_prompt`` is subtracted, so that a
    title that is likely in any context has no advantage. The titles are those of all candidates,
    the items with training interactions, so nothing has to be parsed or matched. Users without
    training items have empty lists.

    The model runs in the process. The prompt is evaluated once for each user, prefixes that titles
    share once for each prompt, and a title whose first tokens are so improbable that it cannot be
    among the k best is not evaluated further.

    Args:
        model: A causal language model: a folder, a ``.gguf`` file, an installed package that
            contains either, or a model of the Hugging Face hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        prompt: The text before a title, with ``{history}``.
        neutral_prompt: The text before a title without a history.
        debias: Whether the score after the neutral prompt is subtracted.
        max_history: The number of items of the history in the prompt, the newest; null for all.
        title: The column of the items with their titles.
        year: The column of the items with their years; null to read the year from the title.
        precision: The type of the weights in memory.
        device: Where the model computes.

    Raises:
        WrongType: The prompt has no ``{history}``, or the neutral prompt has it.
        UnknownColumn: The items have no such column.
        MissingFile: The model is not found.
        MissingExtra: A package that reads a ``.gguf`` file is not installed.
        Contradiction: The model cannot score titles together: its layers are recurrent, or it
            accepts no attention masks.
        OutOfRange: A prompt exceeds the length of the model.

    Source:
        The score is that of Holtzman et al., "Surface Form Competition", EMNLP 2021, section 3
        (average log-probability; with ``debias``, domain-conditional PMI by the neutral prompt).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers")

    model: ModelName
    revision: str | None = None
    prompt: str = "I watched these movies and liked them:\n{history}\nI will also like the movie"
    neutral_prompt: Annotated[str, OnlyWith("debias")] = "I will like the movie"
    debias: bool = False
    max_history: Annotated[int, Gt(0)] | None = 20
    title: str = "title"
    year: str | None = None
    precision: Precision = "float32"
    device: Device = "auto"

    def __post_init__(self) -> None:
        """Refuse prompts without a place for the history, or with it where there is none."""
        for setting, expected in (("prompt", 1), ("neutral_prompt", 0)):
            count = getattr(self, setting).count(_SLOT)
            if count != expected:
                message = f"{_SLOT} occurs {count} times, not {expected}"
                raise WrongType(message, where=setting, remedy=f"write it {expected} times")
        if not self.neutral_prompt.strip():
            message = "a title is scored after a text, and this one is empty"
            raise WrongType(message, where="neutral_prompt", remedy="write a few words")

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of the model."""
        return list_model_files(self.model)

    def check_data(self, data: TrainingData) -> None:
        """Refuse a model that is not available, and columns that the items do not have."""
        find_model(self.model, self.revision, setting="model")
        read_titles(data, self.title, self.year)

    def load(self) -> LocalModel:
        """Return the model."""
        name, revision, precision = self.model, self.revision, self.precision
        return load_model(name, revision, kind="causal", precision=precision, device=self.device)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedLikelihood:
        """Read the titles; nothing is trained."""
        return _FittedLikelihood(self, read_titles(data, self.title, self.year))


@dataclass(frozen=True, eq=False)
class _FittedLikelihood:
    """The titles of the catalogue.

    Args:
        settings: The model.
        titles: The title and year of each item.
    """

    settings: LMLikelihood
    titles: Sequence[HistoryItem]

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the candidates with the highest scores for each query."""
        settings, candidates = self.settings, np.flatnonzero(data.candidates)
        histories = read_histories(data, queries)
        scorer = TextScorer.from_texts(settings.load(), self.list_texts(candidates))
        neutral = scorer.score(settings.neutral_prompt) if settings.debias else None
        lists = PartialLists(len(queries), k)
        for row in range(lists.n_completed, len(queries)):
            report_progress("score the titles", row, len(queries))
            scores, items = np.full(candidates.size, -np.inf), histories[row]
            if items.size:
                excluded = np.isin(candidates, items)
                prompt = self.write_prompt(items)
                scores = scorer.score_best(prompt, k, excluded=excluded, offsets=neutral)
            columns, best = top_k(scores[None], k)
            lists.add(np.where(columns < 0, -1, np.append(candidates, -1)[columns]), best)
        n_empty = sum(not items.size for items in histories)
        if n_empty:
            warn(f"{n_empty:,} of {len(queries):,} queries have no history: empty lists")
        return RankedLists(lists.items, lists.scores)

    def list_texts(self, candidates: AnyArray) -> list[str]:
        """Return the titles of items as they stand after a prompt."""
        return [f" {self._name(item)}" for item in candidates]

    def write_prompt(self, history: Codes) -> str:
        """Return the prompt with the newest items of a history, the oldest of them first."""
        n_shown = self.settings.max_history or history.size
        lines = [f"- {self._name(item)}" for item in history[-n_shown:]]
        return self.settings.prompt.replace(_SLOT, "\n".join(lines))

    def _name(self, item: int) -> str:
        title, year = self.titles[item]
        text = " ".join(title.split())
        return text if year is None else f"{text} ({year})"
