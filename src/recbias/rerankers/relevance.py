"""Re-rankers that trade relevance for calibration, diversity, or items of the long tail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Le, Lt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, Codes, FloatArray, Matrix, TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft, at_setting
from recbias.core.plugins import Candidates
from recbias.kernels.sparse import block_size, map_blocks
from recbias.statistics.inequality import head

_TIE = 1e-12
"""Two gains that differ by less are equal; the candidate with the lower rank is taken."""


class _Objective(Protocol):
    """What greedy selection maximises, for a block of queries whose lists grow."""

    def compute_gains(self) -> FloatArray:
        """Return what each candidate would add to the list of its query, ``float64[b, n]``."""

    def add(self, rows: AnyArray, columns: AnyArray) -> None:
        """Append a candidate to the lists of some of the queries."""


def select_greedily(
    candidates: Candidates,
    k: int,
    create_objective: Callable[[Candidates], _Objective],
    *,
    bytes_per_query: int,
) -> Codes:
    """Return the positions of the selected candidates, ``int32[q, k]``, -1 at the end.

    The queries are processed in blocks, in parallel and in bounded memory.
    """

    def select_block(start: int, stop: int) -> Codes:
        block = candidates.take(start, stop)
        return _select(block, k, create_objective(block))

    n = len(candidates.lists)
    blocks = map_blocks(select_block, n, block_size(bytes_per_query), label="re-rank")
    return np.concatenate([np.empty((0, k), dtype=np.int32), *blocks])


def _select(block: Candidates, k: int, objective: _Objective) -> Codes:
    is_open = block.filled.copy()
    positions = np.full((len(is_open), k), -1, dtype=np.int32)
    for rank in range(min(k, is_open.shape[1])):
        gains = np.where(is_open, objective.compute_gains(), -np.inf)
        best = np.argmax(gains >= gains.max(axis=1, keepdims=True) - _TIE, axis=1)
        rows = np.flatnonzero(is_open.any(axis=1))
        columns = best[rows]
        positions[rows, rank] = columns
        is_open[rows, columns] = False
        objective.add(rows, columns)
    return positions


@dataclass(frozen=True, eq=False)
class ItemValues:
    """The values of an attribute by item; the last row is an item without a value.

    Args:
        names: The values, sorted.
        codes: The codes of the values of each item, ``int32[n_items + 1, m]``, padded with the
            number of values.
        counts: The number of values of each item, ``int64[n_items + 1]``.
    """

    names: tuple[str, ...]
    codes: Codes
    counts: npt.NDArray[np.int64]

    @classmethod
    def from_matrix(cls, names: tuple[str, ...], matrix: Matrix) -> ItemValues:
        """Return the values of a matrix of indicators, CSR ``(n_items, values)``."""
        counts = np.diff(matrix.indptr).astype(np.int64)
        codes = np.full((counts.size + 1, max(counts.max(initial=0), 1)), len(names), np.int32)
        rows = np.repeat(np.arange(counts.size), counts)
        columns = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
        codes[rows, columns] = matrix.indices
        return cls(names, codes, np.append(counts, 0))

    @property
    def n_values(self) -> int:
        """The number of different values."""
        return len(self.names)

    def count(self, histories: Matrix) -> FloatArray:
        """Return the weight of each value in histories, ``float64[q, values + 1]``.

        An item with m values gives each of them 1/m. The last column is 0.
        """
        from scipy.sparse import csr_array

        n_items, width = self.counts.size - 1, self.codes.shape[1]
        shares = np.repeat(1 / np.maximum(self.counts[:n_items], 1), width)
        bounds = np.arange(n_items + 1) * width
        shape = (n_items, self.n_values + 1)
        weights = csr_array((shares, self.codes[:n_items].ravel(), bounds), shape=shape)
        totals: FloatArray = (histories.astype(np.float64) @ weights).toarray()
        totals[:, -1] = 0.0
        return totals


def read_values(data: TrainingData, attribute: str) -> ItemValues:
    """Return the values of a column of the items; ``a|b`` has both.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in it.
    """
    if data.items is None:
        raise MissingEvidence("the dataset has no item attributes", remedy="add an items table")
    with at_setting("attribute"):
        membership = data.items.categories(attribute)
    if not membership.matrix.nnz:
        message, remedy = f"no item has a value of {attribute!r}", "name another column"
        raise NothingLeft(message, where="attribute", remedy=remedy)
    if np.bincount(membership.matrix.indices).max() == 1:
        warn(f"no two items share a value of {attribute!r}, so it says nothing about a list")
    return ItemValues.from_matrix(membership.values, membership.matrix)


Strength: TypeAlias = Annotated[float, Ge(0), Le(1)]
"""The weight of the objective beside that of the scores."""

NumberOfCandidates: TypeAlias = Annotated[int, Gt(0), Le(10_000)]
"""The number of the model's best items from which a list is selected."""

Share: TypeAlias = Annotated[float, Ge(0), Le(1)]
"""A share of a list, or of the interactions."""


_SMOOTHING = 0.01
"""The weight of the history in the smoothed shares of a list, as in the paper."""

_Divergence: TypeAlias = Callable[[AnyArray, AnyArray], FloatArray]
"""The term of each value in the divergence of the shares in a list from those in a history."""


def _kl_terms(history: AnyArray, listed: AnyArray) -> FloatArray:
    """Return the terms of the Kullback-Leibler divergence with smoothing, in nats.

        p log(p / q'),    q' = (1 - a) q + a p,    a = 0.01

    >>> float(_kl_terms(np.array([0.5, 0.5]), np.array([0.5, 0.5])).sum())
    0.0
    """
    smoothed = (1 - _SMOOTHING) * listed + _SMOOTHING * history
    ratio = np.divide(history, smoothed, out=np.ones_like(smoothed), where=history > 0)
    return np.asarray(history * np.log(ratio))


def _select_calibrated(
    candidates: Candidates, k: int, values: ItemValues, strength: float, terms: _Divergence
) -> Codes:
    """Return the positions that greedy selection takes from the candidates, ``int32[q, k]``.

    A query whose history has no item with a value keeps its list; such queries are counted in a
    warning.
    """
    undefined = ~(values.count(candidates.histories).sum(axis=1) > 0)
    if undefined.any():
        n, n_kept = undefined.size, int(undefined.sum())
        warn(f"{n_kept:,} of {n:,} queries have no history with a value: not re-ranked")
    n, width = candidates.lists.items.shape[1], values.codes.shape[1]

    def create(block: Candidates) -> _CalibratedLists:
        return _CalibratedLists(block, values, strength, terms)

    bytes_per_query = 8 * (4 * n * width + 6 * (values.n_values + 1) + 4 * n)
    return select_greedily(candidates, k, create, bytes_per_query=bytes_per_query)


class _CalibratedLists:
    """The sum of the scores of a list, and its divergence from the history.

    A candidate with m values adds 1/m to the counts of each, so only these terms of the divergence
    differ between the candidates with a value.
    """

    def __init__(
        self, block: Candidates, values: ItemValues, strength: float, terms: _Divergence
    ) -> None:
        totals = values.count(block.histories)
        sums = totals.sum(axis=1, keepdims=True)
        self.history = np.divide(totals, sums, out=np.zeros_like(totals), where=sums > 0)
        self.weights = np.where(sums > 0, strength, 0.0)
        self.scores, self.terms = np.nan_to_num(block.scores), terms
        self.codes, self.n_codes = values.codes[block.items], values.counts[block.items]
        self.counts = np.zeros_like(totals)
        self.n_listed = np.zeros(len(totals))

    def compute_gains(self) -> FloatArray:
        divergence = np.where(self.n_codes > 0, self._extend(), self._measure()[:, None])
        return np.asarray((1 - self.weights) * self.scores - self.weights * divergence)

    def _measure(self) -> FloatArray:
        """Return the divergence of the lists so far, which stays with an item without a value."""
        shares = self.counts / np.maximum(self.n_listed, 1)[:, None]
        return np.asarray(self.terms(self.history, shares).sum(axis=1))

    def _extend(self) -> FloatArray:
        """Return the divergence of each list with each candidate."""
        size = (self.n_listed + 1)[:, None]
        shares = self.counts / size
        terms = self.terms(self.history, shares)
        rows = np.arange(len(shares))[:, None, None]
        added = np.where(self.codes < shares.shape[1] - 1, 1.0, 0.0)
        added /= np.maximum(self.n_codes, 1)[:, :, None] * size[:, :, None]
        history, listed = self.history[rows, self.codes], shares[rows, self.codes]
        changes = self.terms(history, listed + added) - terms[rows, self.codes]
        return np.asarray(terms.sum(axis=1, keepdims=True) + changes.sum(axis=2))

    def add(self, rows: AnyArray, columns: AnyArray) -> None:
        codes, n_codes = self.codes[rows, columns], self.n_codes[rows, columns]
        shares = np.where(codes < self.counts.shape[1] - 1, 1.0, 0.0)
        np.add.at(self.counts, (rows[:, None], codes), shares / np.maximum(n_codes, 1)[:, None])
        self.n_listed[rows] += n_codes > 0


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Give each list the shares of an item attribute that the user's history has.

        maximise  (1 - λ) Σ_{i in L} s_i - λ KL(p_u, q'_L)
        KL = Σ_g p_u(g) log(p_u(g) / q'_L(g)),    q' = (1 - a) q + a p,    a = 0.01

    λ is the strength and s_i the score of item i, scaled to 0 to 1 over the candidates of the
    query. p_u(g) is the share of the value g in the training items of the user, q_L(g) that in the
    list; an item with m values counts 1/m for each. Each rank takes the item that gives the
    highest objective, of equal ones the first; with the strength 0 the list is that of the model.

    Items without a value have no part in p and q. With no item with a value in the list so far, q
    is 0. A query without a training item that has a value keeps the list of the model; such
    queries are counted in a warning.

    Args:
        attribute: A column of the items: ``genres``.
        strength: The weight λ of the calibration; a list of weights makes one version each.
        candidates: How many of the model's best items a list is selected from.

    Raises:
        MissingEvidence: The dataset has no items table.
        UnknownColumn: The items have no such column.
        WrongType: It holds numbers with fractions, which are no categories.
        NothingLeft: No item has a value in it.

    Source:
        Steck, "Calibrated recommendations", RecSys 2018. The paper leaves the scale of the scores
        open.
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
        return _select_calibrated(candidates, k, values, self.strength, _kl_terms)


def _js_terms(history: AnyArray, listed: AnyArray) -> FloatArray:
    """Return the terms of the Jensen-Shannon divergence, in bits: the sum is between 0 and 1.

        p log2(p / m) / 2 + q log2(q / m) / 2,    m = (p + q) / 2

    >>> float(_js_terms(np.array([1.0, 0.0]), np.array([0.0, 1.0])).sum())
    1.0
    """
    middle = (history + listed) / 2
    terms = np.zeros(np.broadcast_shapes(np.shape(history), np.shape(listed)))
    for shares in (history, listed):
        ratio = np.divide(shares, middle, out=np.ones_like(terms), where=shares > 0)
        terms += shares * np.log2(ratio) / 2
    return terms


@dataclass(frozen=True, kw_only=True)
class CalibratedPopularity:
    """Give each list the shares of popular, middle and tail items that the history has.

        maximise  (1 - λ) Σ_{i in L} s_i - λ JS(p_u, q_L)

    λ is the strength and s_i the score of item i, scaled to 0 to 1 over the candidates of the
    query. p_u and q_L are the shares of three groups of items in the training items of the user
    and in the list, and JS is their Jensen-Shannon divergence with the logarithm to base 2. The
    popular items are the fewest that hold the share ``head`` of the training interactions, the
    tail the least popular ones that hold the share ``tail`` at most; the others are in the middle.
    Each rank takes the item that gives the highest objective, of equal ones the first; with the
    strength 0 the list is that of the model.

    A query without training items keeps the list of the model; such queries are counted in a
    warning.

    Args:
        strength: The weight λ of the calibration; a list of weights makes one version each.
        head: The share of the interactions that the popular items hold.
        tail: The share of the interactions that the tail holds.
        candidates: How many of the model's best items a list is selected from.

    Source:
        Abdollahpouri, Mansoury, Burke, Mobasher and Malthouse, "User-centered evaluation of
        popularity bias in recommender systems", UMAP 2021. The paper leaves the scale of the
        scores open.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    dial: ClassVar[str] = "strength"

    strength: Strength = 0.5
    head: Annotated[float, Gt(0), Lt(1)] = 0.2
    tail: Annotated[float, Gt(0), Lt(1)] = 0.2
    candidates: NumberOfCandidates = 100

    def rerank(self, candidates: Candidates, k: int) -> Codes:
        """Return the positions of the selected candidates."""
        values = group_by_popularity(candidates.data, self.head, self.tail)
        return _select_calibrated(candidates, k, values, self.strength, _js_terms)


def group_by_popularity(data: TrainingData, head_share: float, tail_share: float) -> ItemValues:
    """Return the groups of the items: ``head``, ``middle`` or ``tail``."""
    from scipy.sparse import csr_array

    counts = data.train.item_counts()
    is_head = head(counts, head_share)
    groups = np.where(is_head, 0, np.where(head(counts, 1 - tail_share), 1, 2))
    ones, bounds = np.ones(groups.size, dtype=bool), np.arange(groups.size + 1)
    matrix = csr_array((ones, groups, bounds), shape=(groups.size, 3))
    return ItemValues.from_matrix(("head", "middle", "tail"), matrix)


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
