"""The value of a model on the validation set, which a search optimizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from recbias.config.plugin_spec import PluginSpec
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import MissingEvidence
from recbias.core.protocols import ChecksEarly
from recbias.core.queries.queries import Queries
from recbias.runner.stages.grouping import GroupMeasurements
from recbias.runner.stages.labels import ItemLabels
from recbias.runner.stages.model import AnswerQueries, ComputeMetric, build_evidence


@dataclass(frozen=True)
class ValidationScorer:
    """Computes the metric of a search for every user with validation rows.

    Args:
        data: The training and validation rows.
        metric: The metric; the validation rows are its relevant items.
        labels: Labels of the items of ``data`` by detectors, which models do not see.
    """

    data: TrainingData
    metric: PluginSpec
    labels: Sequence[ItemLabels] = ()

    def check(self) -> None:
        """Check before any training that the metric can be computed on the data.

        Raises:
            UserError: No user has validation rows, or the metric lacks a column.
        """
        evidence = build_evidence(self._dataset, self._split, self._queries, self.labels)
        if isinstance(self.metric.plugin, ChecksEarly):
            self.metric.plugin.check(evidence)

    def score(self, answer: AnswerQueries) -> float:
        """Fit a model on the training rows and return its value on the validation rows.

        Raises:
            MissingEvidence: The metric is undefined, or returns several values.
        """
        training_split = Split(self.data.train, None, self.data.validation)
        outputs = answer(self._dataset, training_split, self._queries)
        compute = ComputeMetric(self.metric.plugin, self.metric.name)
        measurements = compute(self._dataset, self._split, self._queries, outputs, *self.labels)
        if self.metric.grouping is not None:
            group = GroupMeasurements(self.metric.name, self.metric.grouping)
            measurements = group(self._queries, measurements)
        fault = ""
        if len(measurements) != 1:
            fault = f"returns {len(measurements)} values, and a search needs one"
        elif math.isnan(measurements[0].value):
            fault = "is undefined on the validation rows"
        if fault:
            message = f"{self.metric.label} {fault}"
            raise MissingEvidence(message, remedy="choose a metric such as nDCG")
        return float(measurements[0].value)

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
        return Dataset(data.train, data.users, data.items, reviews)

    @cached_property
    def _split(self) -> Split:
        """The split with the validation rows as the test set."""
        return Split(self.data.train, self.data.validation)

    @cached_property
    def _queries(self) -> Queries:
        rows = self.data.validation
        users = np.unique(rows.users) if rows is not None else np.empty(0, dtype=np.int32)
        if not users.size:
            remedy = "give the split a larger validation set"
            raise MissingEvidence("no user has validation rows to tune on", remedy=remedy)
        ids = self.data.train.user_ids.take(users)
        labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "user")
        if self.data.users is not None:
            labels = self.data.users.take(users, ids)
        return Queries(ids, labels, users.astype(np.int32))
