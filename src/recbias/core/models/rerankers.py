"""Re-rankers: what they read, and the protocol of their plug-ins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from recbias.core.arrays import BoolArray, Codes, FloatArray, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.models.selected_models import SelectedModel
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import ChecksData, NeedsByParameters, Output


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidate lists of a model, best first, and the training data; never the test set.

    Args:
        lists: The lists of the model, longer than those that are recommended.
        histories: The training items of each query, CSR ``(q, n_items)``; an empty row for a query
            that is not a user.
        data: The training data with the attributes of the items.
    """

    lists: RankedLists
    histories: Matrix
    data: TrainingData

    @property
    def filled(self) -> BoolArray:
        """Which positions hold an item, ``bool[q, n]``."""
        return self.lists.filled

    @cached_property
    def items(self) -> Codes:
        """The items, ``int32[q, n]``; -1 if empty or outside the catalogue."""
        return np.where(self.lists.items < self.data.train.n_items, self.lists.items, -1)

    @cached_property
    def scores(self) -> FloatArray:
        """The scores between 0 and 1, ``float64[q, n]``; NaN in empty positions.

            s = (score - lowest of the list) / (highest - lowest)

        They are 1 in a list of equal scores. A list without scores has ``1 - (rank - 1) / n``.
        """
        values = self.lists.scores.astype(np.float64)
        ranks = np.broadcast_to(1.0 - np.arange(values.shape[1]) / values.shape[1], values.shape)
        has_scores = np.isfinite(np.where(self.filled, values, 0.0)).all(axis=1, keepdims=True)
        values = np.where(self.filled, np.where(has_scores, values, ranks), np.nan)
        lowest = np.fmin.reduce(values, axis=1, keepdims=True)
        spread = np.fmax.reduce(values, axis=1, keepdims=True) - lowest
        is_flat = np.where(spread > 0, spread, np.inf)
        scaled = np.where(spread > 0, (values - lowest) / is_flat, 1.0)
        return np.where(self.filled, np.where(has_scores, scaled, values), np.nan)

    def take(self, start: int, stop: int) -> Candidates:
        """Return the candidates of some of the queries, by position."""
        rows = slice(start, stop)
        lists = self.lists
        part = RankedLists(lists.items[rows], lists.scores[rows], lists.outside)
        return replace(self, lists=part, histories=self.histories[rows])


class Reranker(Protocol):
    """The settings of a re-ranker, which selects lists from the candidates of a model.

    ``candidates`` is the number of candidates of each query, ``dial`` the setting of which a spec
    may give a list of values, each of which makes lists of its own; blank if there is none. For
    ``needs`` and ``libraries`` see ``Recommender``. It may have ``check_data`` of ``ChecksData``.
    """

    needs: ClassVar[frozenset[str]]
    libraries: ClassVar[tuple[str, ...]]
    dial: ClassVar[str]
    candidates: int

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates, best first, ``int32[q, k]``.

        -1 pads the end of a row, which holds no position twice.
        """


@dataclass(frozen=True)
class RerankedModel:
    """A model whose lists are re-ranked, as an entry of a spec stands for it."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ()

    base: SelectedModel
    reranker: Any

    def needs_now(self) -> frozenset[str]:
        """Return what the model and the re-ranker need."""
        model = self.base.model
        needs = model.needs_now() if isinstance(model, NeedsByParameters) else model.needs
        return frozenset(needs) | frozenset(self.reranker.needs)

    def check_data(self, data: TrainingData) -> None:
        """Refuse settings of the re-ranker that do not fit the data."""
        if isinstance(self.reranker, ChecksData):
            self.reranker.check_data(data)
