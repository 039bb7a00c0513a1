"""Re-rank the candidate lists of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import Codes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.models.rerankers import Candidates
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.runner.stages.labels import ItemLabels, add_labels
from recbias.runner.stages.model import select_histories
from recbias.runner.stages.model_outputs import ModelOutputs
from recbias.runner.stages.returned_values import call_for, make_fault
from recbias.runner.stages.shared import make_training_data


@dataclass(frozen=True)
class RerankLists:
    """Select lists from the candidates of a model.

    Args:
        model: The re-ranker.
        k: The length of the lists.
    """

    model: Any
    k: int

    def __call__(
        self,
        dataset: Dataset,
        split: Split,
        queries: Queries,
        candidates: ModelOutputs,
        *labels: ItemLabels,
    ) -> ModelOutputs:
        """Return the lists; ``labels`` are columns of the items by detectors."""
        data = make_training_data(add_labels(dataset, labels), split)
        if candidates.lists is None:
            raise BrokenContract("the model returned no lists to re-rank")
        return ModelOutputs(self.rerank(candidates.lists, queries, data), None)

    def rerank(self, lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
        """Return the first k items by the re-ranker; the score at a rank is 1 / rank.

        Raises:
            BrokenContract: The positions that it returns are not those of candidates.
        """
        candidates = Candidates(lists, select_histories(queries, data), data)
        positions = call_for(np.ndarray, self.model.rerank, candidates, self.k)
        _check_positions(positions, candidates, self.k, self.model)
        filled = positions >= 0
        items = np.take_along_axis(lists.items, np.maximum(positions, 0), axis=1)
        reciprocal_ranks = 1 / np.arange(1, self.k + 1, dtype=np.float32)
        return RankedLists(
            np.where(filled, items, -1).astype(np.int32),
            np.where(filled, reciprocal_ranks, np.float32(np.nan)),
            lists.outside,
        )


def _check_positions(positions: Codes, candidates: Candidates, k: int, reranker: Any) -> None:
    """Check that each row holds different positions of candidates, and -1 at its end."""
    shape = (len(candidates.lists), k)
    problem = ""
    if positions.shape != shape or positions.dtype.kind != "i":
        problem = f"returns positions {positions.dtype}{[*positions.shape]}, not int32{[*shape]}"
    elif positions.size and (positions.min() < -1 or positions.max() >= candidates.lists.k):
        problem = f"returns positions outside -1 to {candidates.lists.k - 1}"
    elif ((positions[:, :-1] < 0) & (positions[:, 1:] >= 0)).any():
        problem = "returns a position after an empty one"
    else:
        ordered = np.sort(positions, axis=1)
        filled = np.take_along_axis(candidates.filled, np.maximum(positions, 0), axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            problem = "returns a position twice in a row"
        elif (~filled & (positions >= 0)).any():
            problem = "returns an empty position of the candidates"
    if problem:
        remedy = "return the positions of the selected candidates, best first, and -1 at the end"
        raise make_fault(reranker.rerank, problem, remedy)
