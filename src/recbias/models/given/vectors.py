"""Embeddings of other tools, read from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import AnyArray, Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import (
    BrokenContract,
    Faults,
    MalformedLine,
    UnknownIdentifier,
    UserError,
)
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.models.given.vector_files import read_ids, read_vectors, refuse_rows
from recbias.models.ranking.score_blocks import rank_rows

Score = Literal["dot", "cosine"]


@dataclass(frozen=True, kw_only=True)
class GivenVectors:
    """Measure user and item embeddings of another tool, and the lists that result from them.

        score(u, i) = p_u · q_i   or   p_u · q_i / (|p_u| |q_i|)

    Embeddings are ``.npy`` files (``numpy.save``) with one row per vector; a text file contains
    the identifiers of the rows, one per line. Vectors of identifiers that are not in the dataset
    are excluded, items without a vector are never recommended, and users without a vector have
    empty lists; warnings report the number of each. The user's training items are excluded.

    Embeddings keep the precision of their file: ``float64`` stays ``float64``. Whole numbers get
    the smallest floating-point type that holds each of their values, at most ``float64``. Scores
    are computed in the more precise type of both files, at least ``float32``, and ranked and
    stored as ``float32``.

    Args:
        users: The user embeddings.
        items: The item embeddings, with the same size as those of the users.
        user_ids: The identifiers of the users, as in the dataset.
        item_ids: The identifiers of the items.
        score: ``dot`` product or ``cosine``.

    Raises:
        MissingFile: A file does not exist.
        MalformedLine: A file is not an array of numbers, or an identifier is empty or repeated.
        BrokenContract: The sizes of the files differ, or a vector contains NaN or infinity or,
            for ``cosine``, is 0.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ()

    users: InputFile
    items: InputFile
    user_ids: InputFile
    item_ids: InputFile
    score: Score = "dot"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedVectors:
        """Read the files and align the vectors with the dataset; nothing is trained."""
        (users, user_ids), (items, item_ids) = self._read()
        return FittedVectors(
            align(users, user_ids, data.train.user_ids, "users", where=str(self.user_ids)),
            align(items, item_ids, data.train.item_ids, "items", where=str(self.item_ids)),
            self.score,
        )

    def check_files(self, datasets: Sequence[str]) -> None:
        """Validate each file, and raise all errors at once; then validate them together."""
        errors: list[UserError] = []
        readers: tuple[tuple[Callable[[Path], AnyArray], Path], ...] = (
            (self._read_vectors, self.users),
            (self._read_vectors, self.items),
            (read_ids, self.user_ids),
            (read_ids, self.item_ids),
        )
        for read, path in readers:
            try:
                read(path)
            except UserError as error:
                errors.append(error)
        if errors:
            raise Faults(errors)
        self._read()

    def _read(self) -> tuple[tuple[AnyArray, Ids], tuple[AnyArray, Ids]]:
        users, items = self._read_vectors(self.users), self._read_vectors(self.items)
        if users.shape[1] != items.shape[1]:
            problem = f"vectors of size {items.shape[1]}; those of the users have {users.shape[1]}"
            raise BrokenContract(problem, where=str(self.items))
        self._refuse_large_scores(users, items)
        user_ids = _read_row_ids(self.user_ids, users)
        return (users, user_ids), (items, _read_row_ids(self.item_ids, items))

    def _refuse_large_scores(self, users: AnyArray, items: AnyArray) -> None:
        """Refuse vectors so large that a score may be infinite."""
        largest = float(users.shape[1])
        for vectors in (users, items):
            largest *= max(abs(float(vectors.min())), abs(float(vectors.max())))
        if self.score == "dot" and not largest <= float(np.finfo(np.float32).max):
            problem = (
                f"its products with the vectors of the users may be as large as {largest:.0e}"
            )
            remedy = "divide the vectors by a number, or use score: cosine"
            raise BrokenContract(problem, where=str(self.items), remedy=remedy)

    def _read_vectors(self, path: Path) -> AnyArray:
        if not len(vectors := read_vectors(path)):
            remedy = "write one row per vector"
            raise MalformedLine("the file holds no vector", where=str(path), remedy=remedy)
        if self.score == "cosine":
            problem = "are 0 and have no cosine"
            refuse_rows(~vectors.any(axis=1), path, problem, "use score: dot")
        return vectors


@dataclass(frozen=True, eq=False)
class FittedVectors:
    """The vectors in the order of the dataset; rows without a vector are NaN.

    Args:
        users: ``(n_users, d)``, in the precision of the file.
        items: ``(n_items, d)``, likewise.
        score: ``dot`` product or ``cosine``.
    """

    users: AnyArray
    items: AnyArray
    score: Score

    def embeddings(self) -> Embeddings:
        """Return the vectors as read, without normalization."""
        return Embeddings(self.users, self.items)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the items with the highest scores; an empty list for a user without a vector.

        If the dataset has no interactions, every item is a candidate.
        """
        dtype = np.result_type(self.users, self.items, np.float32)
        missing = np.full((1, self.users.shape[1]), np.nan, dtype=dtype)
        users = np.vstack([self.users.astype(dtype), missing])[queries.users]
        items = self.items.astype(dtype)
        if self.score == "cosine":
            users, items = _normalize(users), _normalize(items)
        if n_missing := int(np.isnan(users).any(axis=1).sum()):
            n_queries = f"{n_missing:,} of {len(queries):,} queries"
            warn(f"{n_queries} have no vector: their lists are empty")
        candidates = None if len(data.train) else np.ones(data.train.n_items, dtype=bool)
        return rank_rows(
            lambda rows: users[rows] @ items.T,
            queries.users,
            k,
            data,
            candidates=candidates,
        )


def align(
    vectors: AnyArray, ids: Ids, vocabulary: Vocabulary, noun: str, *, where: str = ""
) -> AnyArray:
    """Return the vectors in the order of a vocabulary, NaN for missing ones.

    They keep their floating-point type; whole numbers get one that holds them. ``noun`` is what
    the identifiers denote, and ``where`` their file, for messages.

    Raises:
        UnknownIdentifier: No identifier is in the vocabulary.
    """
    codes = vocabulary.find(ids)
    dtype = np.result_type(vectors, np.float16)
    aligned = np.full((len(vocabulary), vectors.shape[1]), np.nan, dtype=dtype)
    aligned[codes[codes >= 0]] = vectors[codes >= 0]
    n_unknown = int((codes < 0).sum())
    if n_unknown and n_unknown == codes.size and len(vocabulary):
        problem = f"none of the {codes.size:,} vectors belongs to {noun} of the dataset"
        examples = f"{noun} such as {vocabulary.ids[0]!r}, the file {str(ids[0])!r}"
        raise UnknownIdentifier(problem, where=where, remedy=f"the dataset has {examples}")
    if n_unknown:
        warn(f"{n_unknown:,} of {codes.size:,} vectors are of {noun} that are not in the dataset")
    if n_missing := len(vocabulary) - (codes.size - n_unknown):
        warn(f"{n_missing:,} of the {len(vocabulary):,} {noun} of the dataset have no vector")
    return aligned


def _read_row_ids(path: Path, vectors: AnyArray) -> Ids:
    ids = read_ids(path)
    if ids.size != vectors.shape[0]:
        problem = f"{ids.size:,} ids for {vectors.shape[0]:,} vectors"
        remedy = "write one id per line, in the order of the rows"
        raise BrokenContract(problem, where=str(path), remedy=remedy)
    return ids


def _normalize(vectors: AnyArray) -> AnyArray:
    """Divide the vectors by their lengths, scaled first so that no square over- or underflows."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1.0)
