"""The input of a metric; reading a part that the experiment lacks is an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.odds import Odds
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Predictions, Responses, SentenceScores
from recbias.core.queries.queries import Queries

REMEDIES = {
    "lists": "choose a model that provides lists",
    "test": "give the experiment a split with a test part",
    "train": "give the dataset interactions",
    "items": "give the dataset an items table",
    "users": "give the dataset a users table",
    "embeddings": "choose a model that provides embeddings",
    "sentence_scores": "choose a model that provides sentence_scores",
    "responses": "choose a model that provides responses",
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
