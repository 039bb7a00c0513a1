"""One trial of a search: sample settings, fit the model, score it on the validation set.

It receives no test set, and depends on its number, the seed and the earlier trials only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from recbias.config.plugin_spec import Choice, Dimension, PluginSpec, Tune
from recbias.config.settings import read_settings
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.models.baselines import HasBaseline
from recbias.core.protocols import OUTPUTS
from recbias.core.seeds import derive_seed
from recbias.core.stage_context import Pruned, stage_context, warn
from recbias.runner.boundary import attempt
from recbias.runner.stages.labels import ItemLabels, add_labels
from recbias.runner.stages.model import AnswerQueries
from recbias.runner.stages.model_outputs import ModelOutputs
from recbias.runner.stages.shared import align_dataset, make_training_data
from recbias.runner.tuning.optuna_sampler import MedianPruner, sample_settings
from recbias.runner.tuning.search_space import find_choice, select_combination
from recbias.runner.tuning.trial import Trial
from recbias.runner.tuning.validation import ValidationScorer, compute_perplexity_increase

DEFAULT_INCREASE = 0.1
"""The largest increase of perplexity in a search for the best value."""


@dataclass(frozen=True)
class RunTrial:
    """Sample settings and score the model with them.

    Args:
        model: The model, whose other settings stay.
        fold: The fold, from 1.
        number: The number of the trial, from 1.
        n_labels: The number of inputs that are labels of detectors.
        exhaustive: Whether the search tries every combination once instead of sampling.
    """

    model: Any
    name: str
    tune: Tune
    k: int
    seed: int
    fold: int
    number: int = 1
    n_labels: int = 0
    exhaustive: bool = False

    def __call__(self, dataset: Dataset, split: Split, *inputs: Any) -> Trial:
        """Return the trial; ``inputs`` are the labels, outputs of the baseline, earlier trials."""
        labels, others = inputs[: self.n_labels], inputs[self.n_labels :]
        baseline = next((each for each in others if isinstance(each, ModelOutputs)), None)
        trials = [each for each in others if isinstance(each, Trial)]
        items = align_dataset(add_labels(dataset, labels), split).items
        names = [name for table in labels for name in table.frame.columns]
        aligned = []
        if items is not None and labels:
            aligned = [ItemLabels(items.frame[names].reset_index(drop=True))]
        return self.run(make_training_data(dataset, split), trials, aligned, baseline)

    def run(
        self,
        data: TrainingData,
        trials: Sequence[Trial],
        labels: Sequence[ItemLabels] = (),
        baseline: ModelOutputs | None = None,
    ) -> Trial:
        """Return the trial.

        Raises:
            MissingEvidence: No user has validation rows.
            UserError: The metric cannot be computed on these data.
        """
        settings = self._choose_settings(trials)
        for trial in trials:
            if trial.settings == settings:
                return replace(trial, number=self.number, seconds=0.0)
        known = None if baseline is None else (self.answer_baseline(self.model), baseline)
        scorer = ValidationScorer(data, self.tune.metric, labels, known)
        scorer.check()
        pruner = MedianPruner(self.tune, trials) if can_prune(self.tune) else None
        start = time.perf_counter()
        score, failure = attempt(lambda: self._score(scorer, settings, pruner))
        seconds = time.perf_counter() - start
        if failure is not None:
            warn(f"failed with {settings}: {failure.message}")
            return Trial(self.number, settings, math.nan, seconds, failure)
        curve = tuple(pruner.curve) if pruner is not None else ()
        if score is None:
            return Trial(self.number, settings, curve[-1], seconds, curve=curve, pruned=True)
        value, excluded = score
        return Trial(self.number, settings, value, seconds, curve=curve, excluded=excluded)

    def derive_seed(self, purpose: str, *names: object) -> int:
        """Return a seed for one purpose in this search."""
        name = self.name.rpartition(":")[2]  # a plug-in of a file, without the path of the file
        return derive_seed(self.seed, purpose, name, self.fold, *names)

    def _choose_settings(self, trials: Sequence[Trial]) -> dict[str, Any]:
        if self.exhaustive:
            return select_combination(self.tune.space, self.number, self.derive_seed("search"))
        return sample_settings(self.tune, trials, self.derive_seed("search", self.number))

    def _score(
        self, scorer: ValidationScorer, settings: Mapping[str, Any], pruner: MedianPruner | None
    ) -> tuple[float, bool] | None:
        """Return the value on the validation set and whether the trial is excluded.

        None if the training was pruned.
        """
        model = apply_settings(self.model, self.tune.space, settings)
        with suppress(Pruned), stage_context(on_validation=pruner) if pruner else nullcontext():
            outputs = scorer.answer(self._create_answer(model))
            value = scorer.measure(outputs, self.tune.objective)
            return value, self._is_excluded(scorer, model, outputs, settings)
        return None

    def answer_baseline(self, model: Any) -> AnswerQueries:
        """Return what scores the sentences by a model without its training."""
        return self._create_answer(model.without_training())

    def _create_answer(self, model: Any) -> AnswerQueries:
        return AnswerQueries(
            model,
            self.name,
            self.k,
            self.seed,
            self.fold,
            split_part="validation",
            outputs=self.tune.metric.needs & OUTPUTS,
        )

    def _is_excluded(
        self,
        scorer: ValidationScorer,
        model: Any,
        outputs: ModelOutputs,
        settings: Mapping[str, Any],
    ) -> bool:
        """Return whether the perplexity is too high, with a warning."""
        limit = find_perplexity_limit(self.tune, model)
        if limit is None:
            return False
        before = scorer.answer(self.answer_baseline(model))
        increase = compute_perplexity_increase(before, outputs)
        if not increase > limit:
            return False
        warn(
            f"excluded with {settings}: the perplexity of the validation sentences increases by "
            f"{increase:.0%}, more than {limit:.0%}"
        )
        return True


@dataclass(frozen=True)
class ScoreBaseline:
    """Score the validation sentences by the model without training, for all trials of a search."""

    answer: AnswerQueries
    metric: PluginSpec

    def __call__(self, dataset: Dataset, split: Split) -> ModelOutputs:
        """Return the outputs."""
        data = make_training_data(dataset, split)
        return ValidationScorer(data, self.metric).answer(self.answer)


def find_perplexity_limit(tune: Tune, model: Any) -> float | None:
    """Return the largest increase of perplexity that a search allows; None for any.

    Only models that train a pretrained language model further have a limit.
    """
    is_limited = isinstance(model, HasBaseline) and "sentence_scores" in tune.metric.needs
    if not is_limited or tune.max_perplexity_increase is not None:
        return tune.max_perplexity_increase if is_limited else None
    return DEFAULT_INCREASE if tune.objective == "value" else None


def can_prune(tune: Tune) -> bool:
    """Return whether a search stops trainings early, by nDCG@10: if its metric is of accuracy."""
    metric = tune.metric
    is_accuracy = metric.direction == "higher" and metric.needs == {"lists", "test"}
    return tune.pruning == "median" and is_accuracy and metric.grouping is None


def apply_settings(model: Any, space: Sequence[Dimension], settings: Mapping[str, Any]) -> Any:
    """Return a model with the settings of a trial."""
    cls: type = type(model)
    declared = read_settings(cls)
    values = {}
    for dimension in space:
        value = settings[dimension.parameter]
        if isinstance(dimension, Choice):
            value = dimension.parsed_values[find_choice(dimension, value)]
        values[declared[dimension.parameter].field.name] = value
    return replace(model, **values)
