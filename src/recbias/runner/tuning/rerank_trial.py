"""The search of a re-ranker's settings: the model is asked once, and each trial re-ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from recbias.config.plugin_spec import PluginSpec
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import Split
from recbias.core.errors import BrokenContract
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.runner.stages.model import AnswerQueries
from recbias.runner.stages.model_outputs import ModelOutputs
from recbias.runner.stages.rerank import RerankLists
from recbias.runner.stages.shared import make_training_data
from recbias.runner.tuning.optuna_sampler import MedianPruner
from recbias.runner.tuning.run_trial import RunTrial, apply_settings
from recbias.runner.tuning.trial import Trial
from recbias.runner.tuning.validation import ValidationScorer


@dataclass(frozen=True)
class AnswerValidationQueries:
    """Ask a model for the candidates of the users with validation rows.

    Args:
        metric: The metric of the search.
    """

    model: Any
    name: str
    k: int
    seed: int
    fold: int
    metric: PluginSpec
    dataset: str = ""

    def __call__(self, dataset: Dataset, split: Split, state: State | None = None) -> ModelOutputs:
        """Return the lists."""
        answer = AnswerQueries(
            *(self.model, self.name, self.k, self.seed, self.fold, self.dataset),
            split_part="validation",
            outputs=frozenset({"lists"}),
        )
        data = make_training_data(dataset, split, self.dataset)
        return ValidationScorer(data, self.metric).answer(answer, state)


@dataclass(frozen=True)
class RunRerankTrial(RunTrial):
    """Sample settings of a re-ranker and score the lists that it selects from candidates."""

    candidates: RankedLists | None = None

    def __call__(self, dataset: Dataset, split: Split, *inputs: Any) -> Trial:
        """Return the trial; the first of ``inputs`` are the candidates of the model."""
        outputs: ModelOutputs = inputs[0]
        trial = replace(self, candidates=outputs.lists)
        return RunTrial.__call__(trial, dataset, split, *inputs[1:])

    def _score(
        self, scorer: ValidationScorer, settings: Mapping[str, Any], pruner: MedianPruner | None
    ) -> tuple[float, bool] | None:
        """Return the value on the validation set; no trial is excluded."""
        del pruner  # nothing is trained
        if self.candidates is None:
            raise BrokenContract("the model returned no lists to re-rank")
        model = apply_settings(self.model, self.tune.space, settings)
        rerank = RerankLists(model, self.k)
        lists = rerank.rerank(self.candidates, scorer.queries, scorer.labelled_data)
        return scorer.measure(ModelOutputs(lists, None), self.tune.objective), False
