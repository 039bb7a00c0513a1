"""How good a model is on the validation rows: what a search is judged by."""

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
from recbias.core.measurements.scores import Measurement
from recbias.core.protocols import ChecksEarly
from recbias.core.queries.queries import Queries
from recbias.runner.stages.grouping import SplitFigures
from recbias.runner.stages.model import AnswerQueries, MeasureAnswers, evidence_of


@dataclass(frozen=True)
class Judge:
    """Measures a model on the validation rows of every user who has some.

    Args:
        data: Training and validation rows.
        metric: What is measured; to it the validation rows are the test part.
        labels: Labels of the items by detectors, over the items of ``data``; models do not see
            them.
    """

    data: TrainingData
    metric: PluginSpec
    labels: Sequence[pd.DataFrame] = ()

    def check(self) -> None:
        """Raise what the data alone shows to be amiss with the metric, before anything is fitted.

        Raises:
            UserError: No user has validation rows, or the metric lacks a column.
        """
        evidence = evidence_of(self._world, self._judged, self._queries, self.labels)
        if isinstance(self.metric.plugin, ChecksEarly):
            self.metric.plugin.check(evidence)

    def value(self, ask: AnswerQueries) -> float:
        """Return the figure of a model that is fitted here, on the training rows.

        Raises:
            MissingEvidence: The figure is undefined, or is not one but several.
        """
        fitted_on = Split(self.data.train, None, self.data.validation)
        answers = ask(self._world, fitted_on, self._queries)
        measure = MeasureAnswers(self.metric.plugin, self.metric.name)
        figures = measure(self._world, self._judged, self._queries, answers, *self.labels)
        if self.metric.grouping is not None:
            split = SplitFigures(self.metric.name, self.metric.grouping)
            figures = split(self._queries, figures)
        return self._one(figures)

    def _one(self, figures: Sequence[Measurement]) -> float:
        if len(figures) != 1:
            found = f"{self.metric.label} gives {len(figures)} figures, and a search needs one"
            raise MissingEvidence(found, remedy="choose a metric such as nDCG")
        if math.isnan(figures[0].value):
            found = f"{self.metric.label} is undefined on the validation rows"
            raise MissingEvidence(found, remedy="choose a metric such as nDCG")
        return float(figures[0].value)

    @cached_property
    def _world(self) -> Dataset:
        data = self.data
        reviews = _joined(data.reviews, data.validation_reviews)
        return Dataset(data.train, data.users, data.items, reviews)

    @cached_property
    def _judged(self) -> Split:
        return Split(self.data.train, self.data.validation)

    @cached_property
    def _queries(self) -> Queries:
        rows = self.data.validation
        users = np.unique(rows.users) if rows is not None else np.empty(0, dtype=np.int32)
        if not users.size:
            remedy = "give the split a larger validation part"
            raise MissingEvidence("no user has validation rows to tune on", remedy=remedy)
        ids = self.data.train.user_ids.take(users)
        labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "user")
        if self.data.users is not None:
            labels = self.data.users.take(users, ids)
        return Queries(ids, labels, users.astype(np.int32))


def _joined(first: Reviews | None, second: Reviews | None) -> Reviews | None:
    """Return the reviews of both parts; the split tells them apart again."""
    if first is None or second is None:
        return first
    return Reviews(
        np.concatenate([first.users, second.users]),
        np.concatenate([first.items, second.items]),
        np.concatenate([first.texts, second.texts]),
    )
