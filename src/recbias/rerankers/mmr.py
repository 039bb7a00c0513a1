"""MMR: lists of items that differ from each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.rerankers import Candidates
from recbias.rerankers.greedy_selection import select_greedily
from recbias.rerankers.item_values import ItemValues, read_values
from recbias.rerankers.settings import NumberOfCandidates, Strength


@dataclass(frozen=True, kw_only=True)
class MMR:
    """Maximal marginal relevance: prefer items that differ from those before them in the list.

        next item = argmax_i  (1 - λ) s_i - λ max_{j in L} sim(i, j)
        sim(i, j) = |A_i ∩ A_j| / sqrt(|A_i| |A_j|)

    λ is the strength, s_i the score of item i, scaled to 0 to 1 over the candidates of the query,
    and A_i the set of its values of an attribute, of which sim is the cosine. An item without a
    value is similar to none. The paper writes λ for the weight of the relevance, here 1 - λ. Of
    equal items the first is taken; with the strength 0 the list is that of the model.

    Args:
        attribute: A column of the items: ``genres``.
        strength: The weight λ of the diversity; a list of weights makes one version each.
        candidates: How many of the model's best items a list is selected from.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in it.

    Source:
        Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering
        documents and producing summaries", SIGIR 1998.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = "strength"

    attribute: str
    strength: Strength = 0.5
    candidates: NumberOfCandidates = 100

    def check_data(self, data: TrainingData) -> None:
        """Refuse an attribute that the items do not have."""
        read_values(data, self.attribute)

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        values = read_values(candidates.data, self.attribute)
        n, width = candidates.lists.items.shape[1], values.codes.shape[1]

        def create(block: Candidates) -> _DiverseLists:
            return _DiverseLists(block, values, self.strength)

        bytes_per_query = 8 * (2 * n * width + values.n_values + 1 + 4 * n)
        return select_greedily(candidates, k, create, bytes_per_query=bytes_per_query)


class _DiverseLists:
    """The score of a candidate, and its highest similarity to an item of the list."""

    def __init__(self, block: Candidates, values: ItemValues, strength: float) -> None:
        self.scores, self.strength = np.nan_to_num(block.scores), strength
        self.codes, self.n_codes = values.codes[block.items], values.counts[block.items]
        self.n_values = values.n_values
        self.similarity = np.zeros(self.scores.shape)

    def compute_gains(self) -> FloatArray:
        return (1 - self.strength) * self.scores - self.strength * self.similarity

    def add(self, rows: AnyArray, columns: AnyArray) -> None:
        is_value = np.zeros((len(self.scores), self.n_values + 1))
        is_value[rows[:, None], self.codes[rows, columns]] = 1.0
        is_value[:, -1] = 0.0
        shared = is_value[np.arange(len(self.scores))[:, None, None], self.codes].sum(axis=2)
        n_added = np.zeros(len(self.scores))
        n_added[rows] = self.n_codes[rows, columns]
        sizes = np.sqrt(self.n_codes * n_added[:, None])
        cosine = np.divide(shared, sizes, out=np.zeros_like(shared), where=sizes > 0)
        np.maximum(self.similarity, cosine, out=self.similarity)
