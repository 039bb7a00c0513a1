"""How different the items of one list are from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import BoolArray, FloatArray, Matrix
from recbias.core.errors import BrokenContract
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.calibration.attribute_shares import read_attribute_shares
from recbias.numerics.sparse.rows import build_rows

BLOCK_VALUES = 2**22
"""Sums of vectors held in memory at once."""


@dataclass(frozen=True, kw_only=True)
class IntraListDistance:
    """The mean distance between the items of a list, over attributes or vectors.

        ILD@k(u) = 2 / ( n (n - 1) ) Σ_{i < j in L_u} ( 1 - cos(x_i, x_j) )

    L_u are the n items of the list of user u cut at k that have a vector. With ``attribute``, x_i
    holds 1 for each value of item i, 0 for the others; otherwise x_i is the embedding of the item
    in the model that recommends, or in the model ``embeddings_of``, so that all models are
    measured by the same vectors. 0 is a list of items alike, 1 a list whose items have no value in
    common. The Hamming distance of RecTools counts the values in which two items differ instead.
    Undefined for a list with fewer than two items that have a vector.

    Args:
        attribute: A column of the items, or a label of a detector: ``genres``.
        embeddings_of: The label of a model whose item embeddings are used, such as a model
            ``vectors`` that reads them from files. By default those of the measured model.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        UnknownColumn: The items have no such column.
        WrongType: The column holds numbers that are neither within 0 and 1 nor whole.
        NothingLeft: No item has the attribute.

    Range:
        0 to 2; 0 to 1 over attributes; undefined for a list with fewer than two vectors.

    Source:
        Ziegler, McNee, Konstan and Lausen, "Improving recommendation lists through topic
        diversification", WWW 2005, intra-list similarity; as a mean distance: Vargas and Castells,
        "Rank and relevance in novelty and diversity metrics for recommender systems", RecSys 2011.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    attribute: str | None = None
    embeddings_of: str | None = None
    k: Annotated[int, Gt(0)] | None = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: the lists, and where the vectors come from."""
        own = frozenset({"embeddings"}) if self.embeddings_of is None else frozenset[str]()
        return self.needs | (own if self.attribute is None else {"items"})

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the attribute, or it has no categories."""
        if self.attribute is not None:
            read_attribute_shares(evidence, self.attribute)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        vectors, has_vector = self._read_unit_vectors(evidence)
        lists = _build_list_matrix(evidence, has_vector, self.k)
        n = np.diff(lists.indptr).astype(np.float64)
        similarity = _square_sums(lists, vectors) - n
        n_pairs = n * (n - 1.0)
        undefined = np.full(n.shape, np.nan)
        mean = np.divide(similarity, n_pairs, out=undefined, where=n_pairs > 0)
        return [evidence.measure_queries(np.clip(1.0 - mean, 0.0, 2.0))]

    def _read_unit_vectors(self, evidence: Evidence) -> tuple[Matrix | FloatArray, BoolArray]:
        """Return the vectors of length 1, and which items have one."""
        from scipy.sparse import diags_array

        if self.attribute is not None:
            shares = read_attribute_shares(evidence, self.attribute)
            lengths = np.sqrt(np.asarray(shares.power(2).sum(axis=1)))
            unit = diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ shares
            return unit.tocsr(), lengths > 0
        kind = "embeddings" if self.embeddings_of is None else "choosing_embeddings"
        evidence.need(kind)
        items = getattr(evidence, kind).items
        if items is None:
            message = f"{self.embeddings_of or 'the model'} has no embeddings of items"
            remedy = "choose a model that embeds the items, or set attribute"
            raise BrokenContract(message, remedy=remedy)
        vectors = items.astype(np.float64)
        norms = np.linalg.norm(vectors, axis=1)
        has_vector = norms > 0  # a missing vector is NaN
        return np.where(has_vector[:, None], vectors, 0.0) / np.where(has_vector, norms, 1.0)[
            :, None
        ], has_vector


def _build_list_matrix(evidence: Evidence, has_vector: BoolArray, k: int | None) -> Matrix:
    """Return which items with a vector each list holds, CSR ``(q, n_items)`` of ones."""
    items, counted = evidence.ranked.items[:, :k], evidence.in_catalogue[:, :k]
    counted = counted & np.append(has_vector, [False])[np.where(counted, items, -1)]
    n_excluded = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(counted))
    if n_excluded:
        message = "positions of the lists hold an item without a vector and are excluded"
        warn(f"{evidence.metric}: {n_excluded:,} {message}")
    return build_rows(items, counted, len(evidence.item_ids))


def _square_sums(lists: Matrix, vectors: Matrix | FloatArray) -> FloatArray:
    """Return the squared length of the sum of the vectors of each list, ``float64[q]``."""
    size = max(1, BLOCK_VALUES // max(vectors.shape[1], 1))
    lengths = [np.empty(0)]
    for start in range(0, lists.shape[0], size):
        sums = lists[start : start + size] @ vectors
        squares = sums.power(2) if hasattr(sums, "power") else np.square(sums)
        lengths.append(np.asarray(squares.sum(axis=1), dtype=np.float64))
    return np.concatenate(lengths)
