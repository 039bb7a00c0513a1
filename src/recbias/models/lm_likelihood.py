"""LMLikelihood: titles ranked by their likelihood under a language model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.context import report_progress, warn
from recbias.core.dataset import AnyArray, BoolArray, Codes, FloatArray, TrainingData
from recbias.core.errors import Contradiction, WrongType
from recbias.core.evidence import RankedLists
from recbias.core.plugins import Device, ModelName, OnlyWith, Output, PlannedRequest, is_changed
from recbias.core.queries import Queries
from recbias.kernels.devices import find_device
from recbias.kernels.topk import top_k
from recbias.language.client import complete, plan_requests
from recbias.language.endpoints import ChatReply, ChatRequest, LanguageModel, Message
from recbias.language.likelihood import TextScorer, TextSearch
from recbias.language.local_models import Precision, load_model
from recbias.language.model_files import check_causal_model, list_causal_model_files
from recbias.language.prompts import HistoryItem
from recbias.models.prompted import Histories, read_titles
from recbias.models.ranking import PartialLists

_MAX_REQUESTS = 20_000
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
        size, build = max(1, _MAX_REQUESTS // len(self.texts)), self.llm.build_likelihood_request
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


_SLOT = "{history}"
"""The place of the history in a prompt."""


@dataclass(frozen=True, kw_only=True)
class LMLikelihood:
    """Rank all titles of the catalogue by their likelihood after a prompt with the history.

        score(u, i) = (1/m) Σ_j ln p(token j of title i | prompt of u, tokens before j)

    With ``debias``, the score of the same title after ``neutral_prompt`` is subtracted, so that a
    title that is likely in any context has no advantage. The titles are those of all candidates,
    the items with training interactions, so nothing has to be parsed or matched. Users without
    training items have empty lists.

    In the process (``model``), the prompt is evaluated once for each user, prefixes that titles
    share once for each prompt, and a title whose first tokens are so improbable that it cannot be
    among the k best is not evaluated further. A server (``llm``) is sent one request for each
    user and title; it must return the log-probabilities of a prompt (``echo`` with ``logprobs``
    of the completions interface), as vLLM does and the server of llama.cpp does not.

    Args:
        model: A causal language model: a folder, a ``.gguf`` file, an installed package that
            contains either, or a model of the Hugging Face hub. Either this or ``llm``.
        llm: A model on a server: ``{model, base_url, concurrency, budget, ...}``. Settings of the
            generation, such as ``temperature``, are refused.
        revision: A commit, tag or branch of the hub; None for its main branch.
        prompt: The text before a title, with ``{history}``.
        neutral_prompt: The text before a title without a history.
        debias: Whether the score after the neutral prompt is subtracted.
        max_history: The number of items of the history in the prompt, the newest; null for all.
        title: The column of the items with their titles.
        year: The column of the items with their years; null to read the year from the title.
        precision: The type of the weights in memory.
        device: Where a model in the process computes.

    Raises:
        WrongType: The prompt has no ``{history}``, or the neutral prompt has it.
        UnknownColumn: The items have no such column.
        MissingFile: The model is not found.
        MissingExtra: A package that reads a ``.gguf`` file is not installed.
        Contradiction: The model cannot score titles together: its layers are recurrent, or it
            accepts no attention masks. Or both ``model`` and ``llm`` are given, or neither.
        RequestRefused: The server does not give log-probabilities, or refuses the key.
        OutOfRange: A prompt exceeds the length of the model.

    Source:
        The score is that of Holtzman et al., "Surface Form Competition", EMNLP 2021, section 3
        (average log-probability; with ``debias``, domain-conditional PMI by the neutral prompt).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers")

    model: ModelName | None = None
    llm: LanguageModel | None = None
    revision: Annotated[str | None, OnlyWith("model")] = None
    prompt: str = "I watched these movies and liked them:\n{history}\nI will also like the movie"
    neutral_prompt: Annotated[str, OnlyWith("debias")] = "I will like the movie"
    debias: bool = False
    max_history: Annotated[int, Gt(0)] | None = 20
    title: str = "title"
    year: str | None = None
    precision: Annotated[Precision, OnlyWith("model")] = "float32"
    device: Device = "auto"

    def __post_init__(self) -> None:
        """Refuse prompts without a place for the history, or with it where there is none."""
        for setting, expected in (("prompt", 1), ("neutral_prompt", 0)):
            count = getattr(self, setting).count(_SLOT)
            if count != expected:
                message = f"{_SLOT} occurs {count} times, not {expected}"
                raise WrongType(message, where=setting, remedy=f"write it {expected} times")
        self._check_source()
        if not self.neutral_prompt.strip():
            message = "a title is scored after a text, and this one is empty"
            raise WrongType(message, where="neutral_prompt", remedy="write a few words")

    def _check_source(self) -> None:
        """Refuse both a model in the process and one on a server, and neither."""
        if (self.model is None) == (self.llm is None):
            given = "both are given" if self.model else "neither is given"
            message = f"{given}: model, a model in the process, and llm, one on a server"
            raise Contradiction(message, remedy="give one of model and llm")
        if self.llm is None:
            return
        if self.llm.provider != "openai":
            message = f"the provider {self.llm.provider} gives no log-probabilities of a text"
            remedy = "use provider: openai, or model: for a model in the process"
            raise Contradiction(message, where="llm", remedy=remedy)
        for setting in ("temperature", "top_p", "top_k", "seed", "max_tokens", "repeatability"):
            if is_changed(self.llm, setting):
                message = f"{setting} has no effect: titles are scored, no text is generated"
                raise Contradiction(message, where="llm", remedy=f"leave {setting} out of llm")

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the device of a model in the process; ``auto`` for one on a server."""
        return {"device": "auto" if self.model is None else find_device(self.device)}

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of a model in the process."""
        return () if self.model is None else list_causal_model_files(self.model)

    def check_data(self, data: TrainingData) -> None:
        """Refuse a model that is not available, and columns that the items do not have."""
        if self.model is not None:
            check_causal_model(self.model, self.revision)
        read_titles(data, self.title, self.year)

    def plan_requests(self, queries: Queries, k: int, data: TrainingData) -> list[PlannedRequest]:
        """Return the requests of ``recommend``, without sending any; none in the process."""
        if self.llm is None:
            return []
        fitted = self.fit(data, np.random.default_rng(0))
        histories = [items for items in Histories.from_data(data).select(queries) if items.size]
        contexts = [fitted.write_prompt(items) for items in histories]
        contexts += [self.neutral_prompt] if self.debias else []
        scorer = ServedScorer(self.llm, fitted.list_texts(np.flatnonzero(data.candidates)))
        blocks = scorer.build_requests(contexts)
        return [planned for block in blocks for planned in plan_requests(block, self.llm)]

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
        histories = Histories.from_data(data).select(queries)
        candidates, debias = np.flatnonzero(data.candidates), self.settings.debias
        scorer = self._load_scorer(candidates)
        neutral = next(scorer.score_after([self.settings.neutral_prompt])) if debias else None
        lists = PartialLists(len(queries), k)
        remaining = [items for items in histories[lists.n_completed :] if items.size]
        contexts = [self.write_prompt(items) for items in remaining]
        seen = (np.isin(candidates, items) for items in remaining)
        all_scores = _score_unseen(scorer, contexts, seen, k, neutral)
        nothing = np.full((1, candidates.size), -np.inf)
        for row in range(lists.n_completed, len(queries)):
            report_progress("score the titles", row, len(queries))
            scores = next(all_scores)[None] if histories[row].size else nothing
            columns, best = top_k(scores, k)
            lists.add(np.where(columns < 0, -1, np.append(candidates, -1)[columns]), best)
        n_empty = sum(not items.size for items in histories)
        if n_empty:
            warn(f"{n_empty:,} of {len(queries):,} queries have no history: empty lists")
        return RankedLists(lists.items, lists.scores)

    def _load_scorer(self, candidates: AnyArray) -> TextScorer | ServedScorer:
        settings, texts = self.settings, self.list_texts(candidates)
        if settings.llm is not None:
            return ServedScorer(settings.llm, texts)
        name = settings.model or ""
        model = load_model(
            name,
            settings.revision,
            kind="causal",
            precision=settings.precision,
            device=settings.device,
        )
        return TextScorer.from_texts(model, texts)

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


def _score_unseen(
    scorer: TextScorer | ServedScorer,
    contexts: Sequence[str],
    seen: Iterable[BoolArray],
    k: int,
    neutral: FloatArray | None,
) -> Iterator[FloatArray]:
    """Yield the scores of the texts after each context; -inf for seen texts, at least.

    In the process, a text that cannot be among the k best is not evaluated to its end.
    """
    if isinstance(scorer, TextScorer):
        search = TextSearch(scorer)
        for context, excluded in zip(contexts, seen, strict=True):
            yield search.score_best(context, k, excluded=excluded, offsets=neutral)
        return
    for scores, excluded in zip(scorer.score_after(contexts), seen, strict=True):
        differences = scores if neutral is None else scores - neutral
        yield np.where(excluded | np.isnan(differences), -np.inf, differences)
