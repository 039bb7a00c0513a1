"""Lists of the first queries, while those of the others are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.stage_context import Checkpoints
from recbias.numerics.sparse.topk import top_k


@dataclass(eq=False)
class UnfinishedLists:
    """The lists of the first queries, which a checkpoint holds."""

    items: Codes
    scores: AnyArray
    n_complete: int
    checkpoints: Checkpoints

    @classmethod
    def resume(cls, n_queries: int, k: int) -> UnfinishedLists:
        """Return the lists of the last checkpoint, or empty ones."""
        checkpoints = Checkpoints.current()
        stored = checkpoints.load()
        if stored is not None:
            arrays = stored["items"].copy(), stored["scores"].copy()
            return cls(*arrays, int(stored["n_complete"]), checkpoints)
        items = np.full((n_queries, k), -1, dtype=np.int32)
        return cls(items, np.full((n_queries, k), np.nan, dtype=np.float32), 0, checkpoints)

    def rank(self, row: int, candidates: AnyArray, scores: FloatArray) -> None:
        """Store the best candidates of a query; a score of -inf is excluded."""
        columns, self.scores[row] = (
            array[0] for array in top_k(scores[None], self.items.shape[1])
        )
        self.items[row] = np.where(columns < 0, -1, candidates[columns])

    def make_checkpoint(self) -> Mapping[str, AnyArray]:
        """Return the arrays from which the work can be resumed."""
        n_complete = np.array(self.n_complete)
        return {"items": self.items, "scores": self.scores, "n_complete": n_complete}
