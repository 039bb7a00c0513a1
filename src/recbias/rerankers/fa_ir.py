"""FA*IR: a least share of protected items in every prefix of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from recbias.core.arrays import AnyArray, BoolArray, Codes, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import UnknownColumn
from recbias.core.models.rerankers import Candidates
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.rerankers.greedy_selection import select_greedily
from recbias.rerankers.item_values import read_values
from recbias.rerankers.protected_minimum import Minimum, adjust_alpha, compute_minimum
from recbias.rerankers.settings import NumberOfCandidates, Share


@dataclass(frozen=True, kw_only=True)
class FAIR:
    """Give every prefix of a list enough protected items to pass a test of a least share.

        m(r) = min {m : F(m; r, p) > α_c},    r = 1, ..., k

    p is the share, F the cumulative distribution function of the binomial distribution of r draws,
    and m(r) the least number of protected items among the first r. A rank takes the best protected
    item if there are fewer than m(r), else the best item. Where no protected candidate is left,
    the best of the others is taken; such lists are counted in a warning. With the share 0 the list
    is that of the model.

    A list is tested at k ranks, so a fair list would fail at one of them too often. With
    ``adjust``, α_c is the largest level at which lists drawn with the share p fail at some of the
    k ranks with the probability α at most, computed exactly; without it α_c is α.

    Args:
        attribute: A column of the items.
        protected: The value of the protected items.
        share: The least share p; a list of shares makes one version each.
        alpha: The significance level α of the test of the whole list.
        adjust: Whether the level of each rank is adjusted for the k tests.
        candidates: How many of the model's best items a list is selected from.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column, or no item has the value.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in the column.

    Source:
        Zehlike, Bonchi, Castillo, Hajian, Megahed and Baeza-Yates, "FA*IR: A fair top-k ranking
        algorithm", CIKM 2017; the exact adjustment as in Zehlike, Sühr and Castillo, "A note on
        the significance adjustment for FA*IR with two protected groups", 2020.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = "share"

    attribute: str
    protected: str
    share: Share = 0.5
    alpha: Annotated[float, Gt(0), Lt(1)] = 0.1
    adjust: bool = True
    candidates: NumberOfCandidates = 100

    def check_data(self, data: TrainingData) -> None:
        """Refuse an attribute or a value that no item has."""
        self._mark_protected(data)

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        is_protected = np.append(self._mark_protected(candidates.data), False)[candidates.items]
        alpha = adjust_alpha(k, self.share, self.alpha) if self.adjust else self.alpha
        minimum = compute_minimum(k, self.share, alpha)
        lengths = np.minimum(candidates.filled.sum(axis=1), k)
        least = np.append(0, minimum)[lengths]
        lacking = (is_protected & candidates.filled).sum(axis=1) < least
        if lacking.any():
            n = int(lacking.sum())
            warn(f"{n:,} of {lacking.size:,} queries have too few protected candidates")
        lists = candidates.lists

        def create(block: Candidates) -> _ProtectingLists:
            codes = block.items
            return _ProtectingLists(
                np.append(self._mark_protected(block.data), False)[codes], block.scores, minimum
            )

        return select_greedily(candidates, k, create, bytes_per_query=8 * 4 * lists.k)

    def _mark_protected(self, data: TrainingData) -> BoolArray:
        """Return which items are protected, ``bool[n_items]``."""
        values = read_values(data, self.attribute)
        if self.protected not in values.names:
            message = f"no item has the value {self.protected!r}"
            remedy = suggest(self.protected, values.names)
            raise UnknownColumn(message, where="protected", remedy=remedy)
        code = values.names.index(self.protected)
        return np.asarray((values.codes[:-1] == code).any(axis=1))


class _ProtectingLists:
    """The rank of a candidate, after those that the minimum of the next rank requires."""

    def __init__(self, is_protected: BoolArray, scores: FloatArray, minimum: Minimum) -> None:
        self.is_protected, self.minimum = is_protected, minimum
        self.order = -np.arange(scores.shape[1], dtype=np.float64)
        self.counts = np.zeros(len(scores), dtype=np.int64)
        self.rank = 0

    def compute_gains(self) -> FloatArray:
        is_short = self.counts < self.minimum[self.rank]
        bonus = np.where(is_short[:, None] & self.is_protected, self.order.size, 0)
        return np.asarray(self.order + bonus)

    def add(self, rows: AnyArray, columns: AnyArray) -> None:
        self.counts[rows] += self.is_protected[rows, columns]
        self.rank += 1
