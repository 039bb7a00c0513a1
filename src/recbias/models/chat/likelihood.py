"""Recommendation by the likelihood of titles under a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import WrongType
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import ModelName, Output
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import Checkpoints, report_progress, warn
from recbias.language.causal_model_files import check_causal_model, list_causal_model_files
from recbias.language.causal_models import Precision, load_causal_model
from recbias.language.likelihood import TextScorer
from recbias.language.likelihood_search import TextSearch
from recbias.language.prompts.recommendation_prompts import HistoryItem
from recbias.models.chat.titles import Histories, read_titles
from recbias.numerics.sparse.topk import top_k

SLOT = "{history}"
"""The place of the history in a prompt."""


@dataclass(frozen=True, kw_only=True)
class LMLikelihood:
    """Rank all titles of the catalogue by their likelihood after a prompt with the history.

        score(u, i) = (1/m) Σ_j ln p(token j of title i | prompt of u, tokens before j)

    With ``debias``, the score of the same title after ``neutral_prompt`` is subtracted, so that a
    title that is likely in any context has no advantage. All titles are in the catalogue, so
    nothing has to be parsed or matched. The prompt is evaluated once for each user, prefixes
    that titles share once for each prompt, and a title whose first tokens are so improbable that
    it cannot be among the k best is not evaluated further. Users without training items have
    empty lists.

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
    neutral_prompt: str = "I will like the movie"
    debias: bool = False
    max_history: Annotated[int, Gt(0)] | None = 20
    title: str = "title"
    year: str | None = None
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        """Refuse prompts without a place for the history, or with it where there is none."""
        for setting, expected in (("prompt", 1), ("neutral_prompt", 0)):
            count = getattr(self, setting).count(SLOT)
            if count != expected:
                message = f"{SLOT} occurs {count} times, not {expected}"
                raise WrongType(message, where=setting, remedy=f"write it {expected} times")
        if not self.neutral_prompt.strip():
            message = "a title is scored after a text, and this one is empty"
            raise WrongType(message, where="neutral_prompt", remedy="write a few words")

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of the model on this machine."""
        return list_causal_model_files(self.model)

    def check_data(self, data: TrainingData) -> None:
        """Refuse a model that is not available, and columns that the items do not have."""
        check_causal_model(self.model, self.revision)
        read_titles(data, self.title, self.year)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedLikelihood:
        """Read the titles; nothing is trained."""
        return FittedLikelihood(self, read_titles(data, self.title, self.year))


@dataclass(frozen=True, eq=False)
class FittedLikelihood:
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
        candidates = np.flatnonzero(data.candidates)
        search = TextSearch(self._load_scorer(candidates))
        neutral = None
        if self.settings.debias:
            neutral = search.scorer.score(self.settings.neutral_prompt)
        lists = _UnfinishedLists.resume(len(queries), k)
        for row in range(lists.n_complete, len(queries)):
            report_progress("score the titles", row, len(queries))
            if histories[row].size:
                prompt = self._write_prompt(histories[row])
                seen = np.isin(candidates, histories[row])
                scores = search.score_best(prompt, k, excluded=seen, offsets=neutral)
                lists.rank(row, candidates, scores)
            lists.n_complete = row + 1
            lists.checkpoints.save_if_due(lists.make_checkpoint)
        n_empty = sum(not items.size for items in histories)
        if n_empty:
            warn(f"{n_empty:,} of {len(queries):,} queries have no history: empty lists")
        return RankedLists(lists.items, lists.scores)

    def _load_scorer(self, candidates: AnyArray) -> TextScorer:
        settings = self.settings
        model = load_causal_model(settings.model, settings.revision, precision=settings.precision)
        return TextScorer.from_texts(model, [f" {self._name(item)}" for item in candidates])

    def _write_prompt(self, history: Codes) -> str:
        """Return the prompt with the newest items of a history, the oldest of them first."""
        n_shown = self.settings.max_history or history.size
        lines = [f"- {self._name(item)}" for item in history[-n_shown:]]
        return self.settings.prompt.replace(SLOT, "\n".join(lines))

    def _name(self, item: int) -> str:
        title, year = self.titles[item]
        text = " ".join(title.split())
        return text if year is None else f"{text} ({year})"


@dataclass(eq=False)
class _UnfinishedLists:
    """The lists of the first queries, which a checkpoint holds."""

    items: Codes
    scores: AnyArray
    n_complete: int
    checkpoints: Checkpoints

    @classmethod
    def resume(cls, n_queries: int, k: int) -> _UnfinishedLists:
        """Return the lists of the last checkpoint, or empty ones."""
        checkpoints = Checkpoints.current()
        stored = checkpoints.load()
        if stored is not None:
            arrays = stored["items"].copy(), stored["scores"].copy()
            return cls(*arrays, int(stored["n_complete"]), checkpoints)
        items = np.full((n_queries, k), -1, dtype=np.int32)
        return cls(items, np.full((n_queries, k), np.nan, dtype=np.float32), 0, checkpoints)

    def rank(self, row: int, candidates: AnyArray, scores: FloatArray) -> None:
        """Store the best candidates of a query; a score of -inf is excluded."""
        columns, self.scores[row] = (
            array[0] for array in top_k(scores[None], self.items.shape[1])
        )
        self.items[row] = np.where(columns < 0, -1, candidates[columns])

    def make_checkpoint(self) -> Mapping[str, AnyArray]:
        """Return the arrays from which the work can be resumed."""
        n_complete = np.array(self.n_complete)
        return {"items": self.items, "scores": self.scores, "n_complete": n_complete}
