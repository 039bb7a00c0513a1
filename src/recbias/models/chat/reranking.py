"""LMRerank: a chat model reorders the candidates of another model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import Contradiction, UserError
from recbias.core.models.planned_requests import PlannedRequest
from recbias.core.models.selected_models import SelectedModel
from recbias.core.protocols import (
    ChecksData,
    ChecksFiles,
    FittedRecommender,
    InputFile,
    NeedsByParameters,
    Output,
    ReadsModels,
)
from recbias.core.queries.queries import Queries
from recbias.language.causal_model_files import list_causal_model_files
from recbias.language.chat.endpoints import LanguageModel
from recbias.models.chat.fitted_reranking import FittedReranking
from recbias.models.chat.prompting import load_prompt
from recbias.models.chat.shortlists import Presentation
from recbias.models.chat.titles import read_titles


@dataclass(frozen=True, kw_only=True)
class LMRerank:
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

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "responses"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("rapidfuzz",)

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
        is_local = self.llm.provider == "transformers"
        files = list_causal_model_files(self.llm.model) if is_local else ()
        model = self.candidates.model
        return (*files, *(model.model_files() if isinstance(model, ReadsModels) else ()))

    def check_files(self, datasets: tuple[str, ...]) -> None:
        """Check the files of the other model."""
        if isinstance(self.candidates.model, ChecksFiles):
            self.candidates.model.check_files(datasets)

    def check_data(self, data: TrainingData) -> None:
        """Refuse columns that the items do not have, and the settings of the other model."""
        read_titles(data, self.title, self.year)
        model = self.candidates.model
        if isinstance(model, ChecksData):
            self._check_candidates(lambda: model.check_data(data))

    def _check_candidates(self, check: Callable[[], None]) -> None:
        """Run a check of the other model; its errors are about the setting ``candidates``."""
        try:
            check()
        except UserError as error:
            raise error.locate_at("candidates") from error

    def plan_requests(self, queries: Queries, k: int, data: TrainingData) -> list[PlannedRequest]:
        """Return the requests of ``recommend`` under the seed 0, without sending any."""
        return self.fit(data, np.random.default_rng(0)).plan_requests(queries, k, data)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedReranking:
        """Fit the other model."""
        return self.wrap(self.candidates.model.fit(data, rng), data, rng)

    def wrap(
        self, fitted: FittedRecommender, data: TrainingData, rng: np.random.Generator
    ) -> FittedReranking:
        """Return the recommender that reorders the lists of the fitted other model."""
        titles = read_titles(data, self.title, self.year)
        prompt, sentence = load_prompt(str(self.prompt), self.mitigation)
        seed = int(rng.integers(2**63))
        presentation = Presentation(prompt, sentence, self.n_candidates, self.orders, seed)
        return FittedReranking(self.llm, presentation, self.threshold, fitted, titles)
