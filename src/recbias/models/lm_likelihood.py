"""LMLikelihood: titles ranked by their likelihood under a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.context import report_progress, warn
from recbias.core.dataset import AnyArray, Codes, TrainingData
from recbias.core.errors import WrongType
from recbias.core.evidence import RankedLists
from recbias.core.plugins import Device, ModelName, OnlyWith, Output
from recbias.core.queries import Queries
from recbias.kernels.devices import OnDevice
from recbias.kernels.topk import top_k
from recbias.language.likelihood import TextScorer
from recbias.language.local_models import LocalModel, Precision, load_model
from recbias.language.model_files import find_model, list_model_files
from recbias.language.prompts import HistoryItem
from recbias.models.prompted import read_histories, read_titles
from recbias.models.ranking import PartialLists

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
