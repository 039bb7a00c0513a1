"""When a gradient model has learned enough: its lists against the validation part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import FittedRecommender
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import has_validation_listener, report_validation

K = 10
"""The length of the lists that are judged."""


@dataclass
class EarlyStopping:
    """The best epoch so far by a figure of the validation part, and how long ago it was.

    Args:
        possible: Whether there is something to judge by; if not, nothing is ever judged.
        patience: How many epochs without a better one are waited for; 0 never stops, and takes
            the last epoch.
        curve: The figure of each epoch so far.
        kept: The values of the parameters in the best epoch.
    """

    possible: bool
    patience: int
    curve: list[float] = field(default_factory=list)
    kept: Sequence[Any] = field(default_factory=tuple)

    @property
    def judges(self) -> bool:
        """Whether there is something to judge by, and somebody who wants to know."""
        return self.possible and (self.patience > 0 or has_validation_listener())

    @property
    def is_over(self) -> bool:
        """Whether the patience has come to its end."""
        return 0 < self.patience <= len(self.curve) - 1 - self._best

    def judge(self, figure: float, parameters: Sequence[Any]) -> None:
        """Judge an epoch.

        Args:
            figure: How good it is on the validation part; more is better.
            parameters: Its tensors, copied where the epoch is the best.
        """
        self.curve.append(figure)
        if self.patience > 0 and self._best == len(self.curve) - 1:
            self.kept = [each.detach().clone() for each in parameters]
        report_validation(len(self.curve), self.curve[-1])

    def take_up(self, curve: Sequence[float], kept: Sequence[Any]) -> None:
        """Go on from earlier judgements, and tell them to whoever wants to know."""
        self.curve, self.kept = list(curve), kept
        for epoch, figure in enumerate(curve, start=1):
            report_validation(epoch, figure)

    def restore(self, parameters: Sequence[Any]) -> None:
        """Put the best epoch's values back into the tensors, where epochs were judged."""
        for each, best in zip(parameters, self.kept, strict=bool(self.kept)):
            each.data.copy_(best)

    @property
    def _best(self) -> int:
        """The place of the first of the best epochs, -1 before the first epoch."""
        return max(range(len(self.curve)), key=self.curve.__getitem__, default=-1)


def has_judges(data: TrainingData) -> bool:
    """Return whether a user has rows in both the training and the validation part."""
    return bool(_judges(data).size)


def validation_ndcg(fitted: FittedRecommender, data: TrainingData, k: int = K) -> float:
    """Return the mean nDCG@k on the validation part, over the users with rows in both parts.

        nDCG@k = Σ_r hit_r / log2(r + 1) / Σ_(r <= min(n, k)) 1 / log2(r + 1)

    ``hit_r`` is 1 where the item at rank r is one of the user's n validation items. NaN where no
    user has rows in both parts.
    """
    users = _judges(data)
    if data.validation is None or not users.size:
        return float("nan")
    relevant = data.validation.binary
    counts = np.diff(relevant.indptr)
    lists = fitted.recommend(_queries(users, data), k, data)
    places = np.maximum(lists.items, 0)
    hits = np.asarray(relevant[users][np.arange(users.size)[:, None], places].todense())
    discounts = 1 / np.log2(np.arange(k) + 2)
    gains = (hits * lists.filled) @ discounts
    return float(np.mean(gains / np.cumsum(discounts)[np.minimum(counts[users], k) - 1]))


def _judges(data: TrainingData) -> AnyArray:
    """Return the users with rows in both parts."""
    if data.validation is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((data.validation.user_counts() > 0) & (data.train.user_counts() > 0))


def _queries(users: AnyArray, data: TrainingData) -> Queries:
    ids = data.train.user_ids.take(users)
    labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "query")
    return Queries(ids, labels, users.astype(np.int32))
