"""xQuAD for the long tail: lists that cover both popular and other items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Lt

from recbias.core.arrays import AnyArray, BoolArray, Codes, FloatArray
from recbias.core.models.rerankers import Candidates
from recbias.core.stage_context import warn
from recbias.numerics.inequality import head
from recbias.rerankers.greedy_selection import select_greedily
from recbias.rerankers.settings import NumberOfCandidates, Strength


@dataclass(frozen=True, kw_only=True)
class XQuAD:
    """Prefer items of the category, head or long tail, that the list does not cover yet.

        next item = argmax_i  (1 - λ) s_i + λ p_u(c) (1 - covered_L(c)),    c the category of i

    λ is the strength and s_i the score of item i, scaled to 0 to 1 over the candidates of the
    query. The categories are the head, the fewest popular items that hold the share ``head`` of
    the training interactions, and the long tail, the other items. p_u(c) is the share of the
    category in the training items of the user. covered_L(c) is, in the ``binary`` form, 1 if an
    item of the list so far is of the category, else 0; in the ``smooth`` form it is the share of
    the list so far that is of the category, 0 for an empty list. Of equal items the first is
    taken; with the strength 0 the list is that of the model.

    A query without training items keeps the list of the model; such queries are counted in a
    warning.

    Args:
        strength: The weight λ of the coverage; a list of weights makes one version each.
        form: ``smooth`` or ``binary``.
        head: The share of the interactions that the head holds.
        candidates: How many of the model's best items a list is selected from.

    Source:
        Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems with
        personalized re-ranking", FLAIRS 2019, equation 4. The paper leaves the scale of the scores
        open, and writes the coverage as a product over the items of the list, whose factors in the
        smooth form do not depend on the item; it is taken once.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = "strength"

    strength: Strength = 0.5
    form: Literal["smooth", "binary"] = "smooth"
    head: Annotated[float, Gt(0), Lt(1)] = 0.8
    candidates: NumberOfCandidates = 100

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        is_head = head(candidates.data.train.item_counts(), self.head)
        empty = np.diff(candidates.histories.indptr) == 0
        if empty.any():
            warn(f"{int(empty.sum()):,} of {empty.size:,} queries have no history: not re-ranked")

        def create(block: Candidates) -> _CoveringLists:
            return _CoveringLists(block, is_head, self)

        n = candidates.lists.items.shape[1]
        return select_greedily(candidates, k, create, bytes_per_query=8 * 6 * n)


class _CoveringLists:
    """The score of a candidate, and how much of its category the list lacks."""

    def __init__(self, block: Candidates, is_head: BoolArray, settings: XQuAD) -> None:
        lengths = np.diff(block.histories.indptr)
        n_head = block.histories @ is_head.astype(np.float64)
        share = np.divide(n_head, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
        self.preferences = np.stack([share, 1 - share], axis=1)  # head, tail
        self.weights = np.where(lengths > 0, settings.strength, 0.0)[:, None]
        self.is_binary = settings.form == "binary"
        self.scores = np.nan_to_num(block.scores)
        is_item = block.items >= 0
        self.categories = np.where(is_item & is_head[block.items], 0, 1)
        self.is_item = is_item  # one outside the catalogue is of no category
        self.counts = np.zeros((len(lengths), 2))

    def compute_gains(self) -> FloatArray:
        sizes = np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        covered = np.minimum(self.counts, 1) if self.is_binary else self.counts / sizes
        lacking = self.preferences * (1 - covered)
        added = np.take_along_axis(lacking, self.categories, axis=1) * self.is_item
        return np.asarray((1 - self.weights) * self.scores + self.weights * added)

    def add(self, rows: AnyArray, columns: AnyArray) -> None:
        self.counts[rows, self.categories[rows, columns]] += self.is_item[rows, columns]
