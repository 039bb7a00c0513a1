"""The value of a model on the validation set, which a search optimizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from recbias.config.plugin_spec import Objective, PluginSpec
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import MissingEvidence
from recbias.core.protocols import ChecksEarly, State
from recbias.core.queries.queries import Queries
from recbias.core.queries.sentence_queries import make_sentence_queries
from recbias.runner.stages.grouping import GroupMeasurements
from recbias.runner.stages.labels import ItemLabels, add_labels
from recbias.runner.stages.model import (
    TEXT_OUTPUTS,
    AnswerQueries,
    ComputeMetric,
    build_evidence,
)
from recbias.runner.stages.model_outputs import ModelOutputs


@dataclass(frozen=True)
class ValidationScorer:
    """Computes the metric of a search for every user with validation rows, or its sentences.

    Args:
        data: The training and validation rows.
        metric: The metric; the validation rows are its relevant items.
        labels: Labels of the items of ``data`` by detectors, which models do not see.
        baseline: The model without training that is scored already, with its outputs.
    """

    data: TrainingData
    metric: PluginSpec
    labels: Sequence[ItemLabels] = ()
    baseline: tuple[AnswerQueries, ModelOutputs] | None = None

    def check(self) -> None:
        """Check before any training that the metric can be computed on the data.

        Raises:
            UserError: No user has validation rows, or the metric lacks a column.
        """
        evidence = build_evidence(self._dataset, self._split, self.queries, self.labels)
        if isinstance(self.metric.plugin, ChecksEarly):
            self.metric.plugin.check(evidence)

    def answer(self, answer: AnswerQueries, state: State | None = None) -> ModelOutputs:
        """Fit a model on the training rows and return its outputs for the validation rows.

        A learned state is restored instead.
        """
        if self.baseline is not None and self.baseline[0] == answer:
            return self.baseline[1]
        training_split = Split(self.data.train, None, self.data.validation)
        return answer(self._dataset, training_split, self.queries, state)

    def measure(self, outputs: ModelOutputs, objective: Objective = "value") -> float:
        """Return the value of the metric, or the p-value of its first test.

        Raises:
            MissingEvidence: The metric is undefined, returns several values, or has no test.
        """
        compute = ComputeMetric(self.metric.plugin, self.metric.name)
        measurements = compute(self._dataset, self._split, self.queries, outputs, *self.labels)
        if self.metric.grouping is not None:
            direction = self.metric.plugin.direction
            group = GroupMeasurements(self.metric.name, self.metric.grouping, direction)
            measurements = group(self.queries, measurements)
        if len(measurements) > 1:  # the value of all units, if there is one beside others
            overall = [each for each in measurements if not each.group and not each.target]
            measurements = overall if len(overall) == 1 else measurements
        fault, remedy = "", "choose a metric such as nDCG"
        if len(measurements) != 1:
            fault = f"returns {len(measurements)} values, and a search needs one"
        elif objective == "largest_p" and not measurements[0].contrasts:
            fault, remedy = (
                "has no test within a model",
                "choose perplexity_gap, or remove objective",
            )
        elif math.isnan(measurements[0].value):
            fault = "is undefined on the validation rows"
        if fault:
            raise MissingEvidence(f"{self.metric.label} {fault}", remedy=remedy)
        if objective == "largest_p":
            return float(measurements[0].contrasts[0].p)
        return float(measurements[0].value)

    def score(self, answer: AnswerQueries) -> float:
        """Fit a model on the training rows and return its value on the validation rows."""
        return self.measure(self.answer(answer))

    @property
    def labelled_data(self) -> TrainingData:
        """The training and validation rows, with the labels of the items."""
        return replace(self.data, items=add_labels(self._dataset, self.labels).items)

    @cached_property
    def _dataset(self) -> Dataset:
        data, reviews = self.data, self.data.reviews
        if reviews is not None and data.validation_reviews is not None:
            parts = (
                vars(reviews),
                vars(data.validation_reviews),
            )  # the split separates them again
            reviews = Reviews(
                **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            )
        return Dataset(data.train, data.users, data.items, reviews, sentences=data.sentences)

    @cached_property
    def _split(self) -> Split:
        """The split with the validation rows as the test set."""
        return Split(self.data.train, self.data.validation)

    @cached_property
    def queries(self) -> Queries:
        """The users with validation rows, or the validation sentences."""
        rows, sentences = self.data.validation, self.data.sentences
        if sentences is not None and self.metric.needs & TEXT_OUTPUTS.keys():
            return make_sentence_queries(sentences, "validation")
        users = np.unique(rows.users) if rows is not None else np.empty(0, dtype=np.int32)
        if not users.size:
            remedy = "give the split a larger validation set"
            raise MissingEvidence("no user has validation rows to tune on", remedy=remedy)
        ids = self.data.train.user_ids.take(users)
        labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "user")
        if self.data.users is not None:
            labels = self.data.users.take(users, ids)
        return Queries(ids, labels, users.astype(np.int32))


def compute_perplexity_increase(before: ModelOutputs, after: ModelOutputs) -> float:
    """Return the increase of the perplexity of sentences, as a share of that before.

    The geometric mean over the sentences that have a perplexity before. Infinite if one of them
    has none after; NaN without sentences.
    """
    if before.sentence_scores is None or after.sentence_scores is None:
        return math.nan
    values = [scores.perplexity for scores in (before.sentence_scores, after.sentence_scores)]
    is_defined = ~np.isnan(values[0])
    if not is_defined.any():
        return math.nan
    if np.isnan(values[1][is_defined]).any():
        return math.inf
    return float(np.exp(np.mean(np.log(values[1] / values[0])[is_defined]))) - 1
