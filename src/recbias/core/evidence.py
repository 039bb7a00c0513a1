"""What a metric reads: the outputs of a model, test items, items and queries, checked.

Reading a part that the experiment lacks is an error. The discounted cumulative gain of a list with
binary relevance is that of ``rank_discounts`` and ``normalize_gain``:

    DCG@k  = Σ_(r <= k) hit_r / log2(r + 1)
    nDCG@k = DCG@k / Σ_(r <= min(n, k)) 1 / log2(r + 1)

``hit_r`` is 1 if the item at rank r is one of the ``n`` relevant items. The sum over the ranks is
left to the caller, because its order determines the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.dataset import (
    AnyArray,
    Attributes,
    BoolArray,
    Codes,
    FloatArray,
    Ids,
    Interactions,
    Matrix,
    Odds,
    Queries,
    Vocabulary,
    freeze,
)
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.measures import Measurement, UnitScores


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The top-k items of each query; the column is the rank.

    Args:
        items: Item codes, ``int32[q, k]``; -1 pads the end of a row. A code of ``n_items`` or more
            is an item outside the catalogue, whose identifier is in ``outside``.
        scores: The score of each position, ``float32[q, k]``; NaN if it has none.
        outside: Identifiers of the codes from ``n_items`` on. Lists of other tools may hold items
            that the dataset does not have: they keep their rank and are never relevant.
    """

    items: Codes
    scores: npt.NDArray[np.float32]
    outside: Ids = field(default_factory=lambda: np.empty(0, dtype=object))

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze(self.items)
        freeze(self.scores)

    @property
    def k(self) -> int:
        """The largest possible length of a list."""
        return int(self.items.shape[1])

    def __len__(self) -> int:
        """Return the number of lists, one for each query."""
        return int(self.items.shape[0])

    @property
    def filled(self) -> BoolArray:
        """Which positions hold an item, ``bool[q, k]``."""
        return self.items >= 0

    def take(self, rows: AnyArray | slice) -> RankedLists:
        """Return the lists of some of the queries, by position."""
        return RankedLists(self.items[rows], self.scores[rows], self.outside)

    def truncate(self, k: int) -> RankedLists:
        """Return the first ``k`` positions of each list."""
        return RankedLists(self.items[:, :k], self.scores[:, :k], self.outside)


MASK = "[MASK]"
"""Replaces a masked word in a text; a language model reads its own mask token instead."""


@dataclass(frozen=True, eq=False)
class SentenceScores:
    """How likely each sentence is to a model.

    Args:
        pairs: The pair of each sentence, shared by the variants of one sentence; None if a
            sentence has no variant by design.
        groups: The group that each sentence is about, as text: ``T1``, ``female``.
        perplexity: exp(-(1/n) Σ ln p(token | tokens before)), ``float64[s]``; NaN if missing.
        labels: Other columns of the sentences, such as the bias category, one row each.
    """

    ids: Ids
    pairs: Ids
    groups: Ids
    perplexity: FloatArray
    labels: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return int(self.perplexity.size)


@dataclass(frozen=True, eq=False)
class Responses:
    """The texts that a model generated; an empty one is ``""``.

    ``ids`` are the queries, ``references`` the texts to compare with, or None.
    """

    ids: Ids
    texts: Ids
    references: Ids
    labels: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __len__(self) -> int:
        """Return the number of responses."""
        return int(np.size(self.texts))

    def take(self, rows: AnyArray) -> Responses:
        """Return some of the responses, by position."""
        labels = self.labels.iloc[rows].reset_index(drop=True) if len(self.labels) else self.labels
        return Responses(self.ids[rows], self.texts[rows], self.references[rows], labels)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The items that a model predicts for held-out texts, and the items of the texts.

    Args:
        ids: An identifier for each text, the same for every model.
        ranked: All items that the model knows, by code, the most likely first, ``int32[n, c]``;
            each row is a permutation of the same codes.
    """

    ids: Ids
    items: Codes
    ranked: Codes

    def __len__(self) -> int:
        """Return the number of texts."""
        return int(self.items.size)


@dataclass(frozen=True, eq=False)
class Policy:
    """What a candidate would show: the probability of each item, by position and group of users.

    Args:
        items: ``int32[n]``; -1 is an item that the log does not have.
        positions: Positions from 1, ``int32[n]``; empty if it is the same at all of them.
        groups: The group of users of each row, ``int32[n]``.
        probabilities: ``float64[n]``.
        group_of: The group of each user of the dataset, ``int32[n_users]``; -1 if it has no rows.
        is_shown: Whether it is what the log shows, which has no probabilities here.
        variant: The variant of the log that it is; "" for all of them.
    """

    items: Codes
    positions: Codes
    groups: Codes
    probabilities: FloatArray
    group_of: Codes
    is_shown: bool = False
    variant: str = ""

    @classmethod
    def of_shown(cls, variant: str = "") -> Policy:
        """Return what the log shows."""
        none = np.empty(0, dtype=np.int32)
        return cls(none, none, none, np.empty(0), none, is_shown=True, variant=variant)


@dataclass(frozen=True, eq=False)
class Impressions:
    """A block of an impression log: one row for each item that was shown.

    The rows of a request stand together, in the order of their positions, and no request is in
    two blocks.

    Args:
        users: ``int32[n]``, codes of the dataset.
        requests: The number of the request of each row, ascending, ``int64[n]``.
        items: ``int32[n]``.
        positions: From 1, ``int32[n]``; 0 if the log has none.
        rewards: ``float64[n]``.
        propensities: The probability with which the item was shown there; NaN if it is unknown.
        variants: The variant of the system, ``object[n]``; "" if the log has none.
    """

    users: Codes
    requests: npt.NDArray[np.int64]
    items: Codes
    positions: Codes
    rewards: FloatArray
    propensities: FloatArray
    variants: Ids

    def take(self, rows: AnyArray) -> Impressions:
        """Return some of the rows, by a mask or their positions."""
        return Impressions(**{name: column[rows] for name, column in vars(self).items()})


class ImpressionLog(Protocol):
    """A log of what was shown, which may be larger than memory."""

    @property
    def has_positions(self) -> bool:
        """Whether the positions are known."""

    @property
    def has_propensities(self) -> bool:
        """Whether the propensities are known."""

    def read_blocks(self) -> Iterator[Impressions]:
        """Yield the rows in blocks."""

    def read_lists(self) -> Iterator[Impressions]:
        """Yield the rows in blocks, for what is measured of whole requests.

        Raises:
            MissingEvidence: The log does not say what was shown together, or at which positions.
            MalformedLine: A request has several items at a position.
        """


REMEDIES = {
    "lists": "choose a model that provides lists",
    "test": "give the experiment a split with a test part",
    "train": "give the dataset interactions",
    "items": "give the dataset an items table",
    "users": "give the dataset a users table",
    "embeddings": "choose a model that provides embeddings",
    "sentence_scores": "choose a model that provides sentence_scores",
    "responses": "choose a model that provides responses",
    "log": "choose the dataset impressions",
    "policy": "choose the model shown or policy",
    "shown": "choose the model shown",
    "predictions": "choose a model that predicts items of reviews, and a split with a test part",
    "odds": "choose the dataset demo: how its users choose is known",
}
"""The kinds of evidence, each with the way to provide it."""

_TABLE_CELLS = 2**23
"""The size of the table of ``mark_contained``, in bytes."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings of users and items, ``(n, d)`` or None, by the codes of the dataset.

    They have the floating-point type that the model computes in or its file holds; metrics
    compute in ``float64``. A user or item without an embedding has a row of NaN.
    """

    users: AnyArray | None
    items: AnyArray | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """The outputs of one model, and the data to measure them on.

    Args:
        item_ids: The catalogue, which defines the item codes.
        lists: The recommended lists, one for each query, in the order of ``queries``.
        relevant: CSR (q, n_items) of 0/1: the test items of each query. None without a test set.
        train: The training interactions; all interactions if the data is not split.
        predictions: The items that the model predicts for the test reviews.
        item_counts: The number of interactions of each item in all parts of the split,
            ``float64[n_items]``.
        choosing_embeddings: The embeddings of the model that a metric names: in ``chosen_in``, by
            which it chooses members of its groups, or in ``embeddings_of``.
        policy: What a candidate would show; ``shown`` the same for what was shown, and
            ``other_policy`` for the model that a metric names in ``against``.
        log: The log of a dataset of impressions.
        candidates: Which items may be recommended, ``bool[n_items]``.
        odds: The log-odds by which the users pick items, in a synthetic world.
        bootstrap_seed: The seed of the bootstrap samples of metrics of the whole set of lists: the
            same for every model, seed and fold with the same queries.
        metric: The name of the metric, for messages.
    """

    queries: Queries
    item_ids: Vocabulary
    lists: RankedLists | None = None
    relevant: Matrix | None = None
    train: Interactions | None = None
    item_counts: FloatArray | None = None
    items: Attributes | None = None
    users: Attributes | None = None
    embeddings: Embeddings | None = None
    choosing_embeddings: Embeddings | None = None
    sentence_scores: SentenceScores | None = None
    responses: Responses | None = None
    predictions: Predictions | None = None
    policy: Policy | None = None
    shown: Policy | None = None
    other_policy: Policy | None = None
    log: ImpressionLog | None = None
    candidates: BoolArray | None = None
    odds: Odds | None = None
    bootstrap_seed: int = 0
    n_bootstrap: int = 1000
    metric: str = field(default="", compare=False)

    def need(self, kind: str) -> None:
        """Raise MissingEvidence if a kind of evidence is None; ``test`` is ``relevant``."""
        field_name = "relevant" if kind == "test" else kind
        if getattr(self, field_name) is None:
            message = f"{self.metric or 'the metric'} needs {kind}, which this experiment lacks"
            raise MissingEvidence(message, remedy=REMEDIES.get(kind, ""))

    @cached_property
    def ranked(self) -> RankedLists:
        """The lists; an error if there are none."""
        self.need("lists")
        return self.lists  # type: ignore[return-value]

    @cached_property
    def in_catalogue(self) -> BoolArray:
        """Which positions of the lists hold an item of the catalogue, ``bool[q, k]``."""
        items = self.ranked.items
        return (items >= 0) & (items < len(self.item_ids))

    def rng(self) -> np.random.Generator:
        """Return the generator of the bootstrap samples, the same for every model."""
        return np.random.default_rng(self.bootstrap_seed)

    @cached_property
    def n_relevant(self) -> npt.NDArray[np.int64]:
        """The number of test items of each query, ``int64[q]``."""
        self.need("test")
        relevant: Matrix = self.relevant
        counts: npt.NDArray[np.int64] = np.diff(relevant.indptr).astype(np.int64)
        return counts

    @cached_property
    def hits(self) -> BoolArray:
        """Which positions of the lists hold a test item of their query, ``bool[q, k]``."""
        self.need("test")
        return mark_contained(self.relevant, self.ranked)

    def measure_queries(self, values: npt.ArrayLike) -> Measurement:
        """Return the mean of one value per query, ``float64[q]``; NaN is undefined and counted.

        Raises:
            BrokenContract: There is another number of values than of queries, or they are not
                numbers.
        """
        queries, numbers, problem = self.queries, np.asarray(values), ""
        if numbers.shape != (len(queries),):
            problem = f"of shape {numbers.shape} for {len(queries):,} queries"
        elif numbers.dtype.kind not in "fiub":
            problem = f"of type {numbers.dtype}, which are not numbers"
        if problem:
            message = f"{self.metric or 'the metric'} has values {problem}"
            raise BrokenContract(message, remedy="give one value for each query, NaN if undefined")
        scores = numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)
        return Measurement.from_units(UnitScores(queries.unit, queries.ids.ids, scores))

    @cached_property
    def popularity(self) -> FloatArray:
        """The number of training interactions of each item, ``float64[n_items]``."""
        self.need("train")
        return self.train.item_counts().astype(np.float64)  # type: ignore[union-attr]


def mark_contained(matrix: Matrix, lists: RankedLists) -> BoolArray:
    """Return which listed items are stored in the row of their query, ``bool[q, k]``.

    The rows of ``matrix``, CSR (q, n_items), and the lists are in the same order; every stored
    entry counts. A block of queries is marked in a dense table (query, item) that fits the
    processor's cache, looked up at the listed items, and cleared.
    """
    n_queries, n_items = matrix.shape
    width = n_items + int(lists.outside.size) + 1  # the last column is never marked
    size = min(max(1, _TABLE_CELLS // width), max(n_queries, 1))
    marked = np.zeros(size * width, dtype=bool)
    starts = np.arange(size) * width
    contained: BoolArray = np.empty(lists.items.shape, dtype=bool)
    for first in range(0, n_queries, size):
        ends = matrix.indptr[first : first + size + 1]
        block = starts[: ends.size - 1]
        keys = matrix.indices[ends[0] : ends[-1]] + np.repeat(block, np.diff(ends))
        marked[keys] = True
        listed = lists.items[first : first + size] + block[:, None]
        contained[first : first + size] = marked[listed]  # -1 reads the row before, last column
        marked[keys] = False
    return contained


CELLS = 2**22
"""The number of (user, item) cells that are ranked at once."""


def rank_ideal_lists(
    odds: Odds, users: Codes, histories: Matrix, candidates: BoolArray, k: int
) -> Codes:
    """Return the k candidates of each user with the highest odds that are not in the history.

    Ties are in the order of the item codes. A list is shorter if there are fewer candidates, and
    empty for a query that is not a user.

    Args:
        odds: The log-odds of the picks.
        users: The user code of each query, -1 where it is not a user, ``int[q]``.
        histories: The items that each query's user has had, CSR ``(q, n_items)``.
        candidates: Which items may be recommended, ``bool[n_items]``.
        k: The length of the lists.

    Returns:
        Item codes ``int32[q, k]``, best first; -1 pads the end of a row.

    >>> from scipy.sparse import csr_array
    >>> odds = Odds(np.array([[0.0, 2.0, 1.0]]), np.array([0, 0]))
    >>> users, histories = np.array([0, 1], dtype=np.int32), csr_array([[0, 0, 0], [0, 1, 0]])
    >>> rank_ideal_lists(odds, users, histories, np.ones(3, dtype=bool), 2).tolist()
    [[1, 2], [2, 0]]
    """
    n_items = odds.by_type.shape[1]
    size = max(1, CELLS // max(n_items, 1))
    lists = np.full((users.size, k), -1, dtype=np.int32)
    for start in range(0, users.size, size):
        block = slice(start, start + size)
        log_odds = odds.by_type[odds.types[users[block]]]
        log_odds[:, ~candidates] = -np.inf
        log_odds[histories[block].toarray() > 0] = -np.inf
        log_odds[users[block] < 0] = -np.inf
        order = np.argsort(-log_odds, axis=1, kind="stable")[:, :k]
        is_free = np.take_along_axis(log_odds, order, axis=1) > -np.inf
        lists[block, : order.shape[1]] = np.where(is_free, order, -1)
    return lists


def weigh_lists(odds: Odds, users: Codes, items: Codes) -> FloatArray:
    """Return the odds of each listed item, relative to the most likely item of its user.

        w_ui = exp(v_ui - max_j v_uj),    v: the log-odds

    Args:
        odds: The log-odds of the picks.
        users: The user code of each query, -1 where it is not a user, ``int[q]``.
        items: Item codes ``int[q, k]``; -1 and items outside the catalogue have the odds 0.

    Returns:
        ``float64[q, k]`` from 0 to 1; NaN for a query that is not a user.

    >>> odds = Odds(np.array([[0.0, np.log(4.0), np.log(2.0)]]), np.array([0]))
    >>> weigh_lists(odds, np.array([0]), np.array([[1, 2, 0, -1]])).tolist()
    [[1.0, 0.5, 0.25, 0.0]]
    """
    types: AnyArray = odds.types[users]
    inside = (items >= 0) & (items < odds.by_type.shape[1])
    log_odds = odds.by_type[types[:, None], np.where(inside, items, 0)]
    weights = np.exp(log_odds - odds.by_type.max(axis=1)[types][:, None])
    return np.where((users < 0)[:, None], np.nan, np.where(inside, weights, 0.0))


def check_lists(
    lists: RankedLists, *, n_queries: int, seen: Matrix | None, n_items: int, model: str
) -> None:
    """Check that lists are what a model must return; BrokenContract if they violate a rule.

    A list holds no item twice and no training item of its query (``seen``, CSR with sorted
    indices; None if lists may hold them). Empty positions are at its end. Scores do not increase;
    they are numbers, or NaN in the whole list. ``model`` is its name, for the message.
    """
    _check_shape(lists, n_queries, model)
    items, filled = lists.items, lists.filled
    n_codes = n_items + lists.outside.size
    unknown = (items < -1) | (items >= n_codes)
    remedy = "use the codes of data.train.item_ids"
    _reject(unknown, model, f"codes outside -1 to {n_codes - 1:,}", remedy)
    gap = ~filled[:, :-1] & filled[:, 1:]
    _reject(gap, model, "an item after an empty position", "put -1 at the end of a list only")
    ordered = np.sort(items, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    _reject(repeated, model, "an item twice", "list each item once")
    if seen is not None:
        remedy = "exclude the training items of the query"
        _reject(mark_contained(seen, lists), model, "a training item of the query", remedy)
    missing = np.isnan(lists.scores)
    unscored: BoolArray = np.all(missing | ~filled, axis=1, keepdims=True)
    nan = missing & filled & ~unscored
    _reject(nan, model, "a score of NaN", "score every item of a list, or none of them")
    rises = (lists.scores[:, 1:] > lists.scores[:, :-1]) & filled[:, 1:]
    _reject(rises, model, "scores that increase", "sort each list by decreasing score")


def _check_shape(lists: RankedLists, n_queries: int, model: str) -> None:
    items, scores = lists.items, lists.scores
    if items.ndim != 2 or items.dtype.kind != "i" or items.shape != scores.shape:
        found = " and ".join(f"{each.dtype}{list(each.shape)}" for each in (items, scores))
        message = f"{model} returned items and scores {found}"
        raise BrokenContract(message, remedy="return int32 items and float32 scores of one shape")
    if len(lists) != n_queries:
        message = f"{model} returned {len(lists):,} lists for {n_queries:,} queries"
        remedy = "return one list for each query, in the order of the queries"
        raise BrokenContract(message, remedy=remedy)


def _reject(violations: BoolArray, model: str, violation: str, remedy: str) -> None:
    if violations.any():
        queries = np.flatnonzero(violations.any(axis=1))
        where = f"in {queries.size:,} lists, the first for query {queries[0]} (from 0)"
        raise BrokenContract(f"{model} returned {violation} {where}", remedy=remedy)


def rank_discounts(k: int) -> FloatArray:
    """Return ``1 / log2(r + 1)`` for the ranks 1 to ``k``, ``float64[k]``.

    >>> rank_discounts(3).round(4).tolist()
    [1.0, 0.6309, 0.5]
    """
    discounts: FloatArray = 1.0 / np.log2(np.arange(2, k + 2))
    return discounts


def normalize_gain(gains: FloatArray, n_relevant: npt.NDArray[np.int64], k: int) -> FloatArray:
    """Divide the DCG@k of each list, ``float64[q]``, by that of the ideal list: its nDCG@k.

    NaN for a query without relevant items.

    >>> normalize_gain(np.array([1.5, 0.0]), np.array([2, 0]), 3).round(4).tolist()
    [0.9197, nan]
    """
    ideal = np.cumsum(rank_discounts(k))[np.clip(n_relevant, 1, k) - 1]
    ndcg: FloatArray = np.where(n_relevant > 0, gains / ideal, np.nan)
    return ndcg
