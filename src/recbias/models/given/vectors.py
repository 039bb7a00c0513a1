"""Vectors made elsewhere, measured as if one of our models had learned them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib.format import read_array

from recbias.core.arrays import AnyArray, Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import (
    BrokenContract,
    Faults,
    MalformedLine,
    MissingFile,
    UnknownIdentifier,
    UserError,
)
from recbias.core.input_files import has_file, open_input
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.formats.text_files import read_text
from recbias.models.ranking.score_blocks import rank_rows

Floats32 = npt.NDArray[np.float32]
Score = Literal["dot", "cosine"]


@dataclass(frozen=True, kw_only=True)
class GivenVectors:
    """Measure user and item vectors that were made elsewhere, and the lists they make.

        score(u, i) = p_u · q_i   or   p_u · q_i / (|p_u| |q_i|)

    Vectors are ``.npy`` files (``numpy.save``) of one row a vector; each has a text file with one
    id a line, in the order of the rows. Vectors of ids that the dataset lacks are left out, an
    item without a vector is in no list, and a user without one has an empty list; all are counted
    in a warning. Lists leave out the user's training items.

    Args:
        users: The users' vectors.
        items: The items' vectors, as long as the users'.
        user_ids: The ids of the users, as the dataset writes them.
        item_ids: The ids of the items.
        score: ``dot`` product or ``cosine``.

    Raises:
        MissingFile: A file is not there.
        MalformedLine: A file is no array of numbers, or an id stands twice or is empty.
        BrokenContract: The files do not fit together, or a vector holds NaN or an infinity or,
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
        """Read the files and put the vectors in the order of the dataset."""
        (users, user_ids), (items, item_ids) = self._read()
        return FittedVectors(
            aligned(users, user_ids, data.train.user_ids, "users"),
            aligned(items, item_ids, data.train.item_ids, "items"),
            self.score,
        )

    def check_files(self, datasets: Sequence[str]) -> None:
        """Raise what is wrong with the files: all that is wrong with each, else together."""
        vectors = (partial(self._vectors, each) for each in (self.users, self.items))
        ids = (partial(read_ids, each) for each in (self.user_ids, self.item_ids))
        faults = [each for read in (*vectors, *ids) for each in _faults(read)]
        if faults:
            raise Faults(faults)
        self._read()

    def _read(self) -> tuple[tuple[AnyArray, Ids], tuple[AnyArray, Ids]]:
        """Return the vectors and the ids of the users, and of the items."""
        users, items = self._vectors(self.users), self._vectors(self.items)
        if users.shape[1] != items.shape[1]:
            found = f"vectors of {items.shape[1]} numbers, where the users' have {users.shape[1]}"
            raise BrokenContract(found, where=str(self.items))
        return (users, _ids_of(self.user_ids, users)), (items, _ids_of(self.item_ids, items))

    def _vectors(self, path: Path) -> AnyArray:
        vectors = read_vectors(path)
        if not len(vectors):
            remedy = "give one row a vector"
            raise MalformedLine("the file holds no vector", where=str(path), remedy=remedy)
        if self.score == "cosine":
            _refuse_zeros(vectors, path)
        return vectors


@dataclass(frozen=True, eq=False)
class FittedVectors:
    """The vectors in the order of the dataset; a row of NaN where there is none.

    Args:
        users: ``float32 (n_users, d)``.
        items: ``float32 (n_items, d)``.
        score: ``dot`` product or ``cosine``.
    """

    users: Floats32
    items: Floats32
    score: Score

    def embeddings(self) -> Embeddings:
        """Return the vectors as given."""
        return Embeddings(self.users, self.items)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first; an empty list for a user without a vector.

        Where there is no interaction at all, every item may be listed.
        """
        users = np.vstack([self.users, np.full((1, self.users.shape[1]), np.nan)])[queries.users]
        items = self.items
        if self.score == "cosine":
            users, items = _directions(users), _directions(items)
        lacking = int(np.isnan(users).any(axis=1).sum())
        if lacking:
            warn(f"{lacking:,} of {len(queries):,} queries have no vector: their lists are empty")

        def scores(rows: AnyArray) -> AnyArray:
            return users[rows].astype(np.float32) @ items.T

        every = None if len(data.train) else np.ones(data.train.n_items, dtype=bool)
        return rank_rows(scores, queries.users, k, data, candidates=every)


def read_vectors(path: Path) -> AnyArray:
    """Return the array of a ``.npy`` file, ``(n, d)``.

    Raises:
        MissingFile: It is not there.
        MalformedLine: It is no ``.npy`` file of real numbers in rows.
        BrokenContract: A vector holds NaN or an infinity.
    """
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    try:
        with open_input(path) as file:
            vectors: AnyArray = read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        remedy = "write it with numpy.save(path, vectors)"
        raise MalformedLine(
            "not a .npy file of numbers", where=str(path), remedy=remedy
        ) from error
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        found = f"an array {vectors.dtype}{list(vectors.shape)}, not numbers (n, d)"
        raise MalformedLine(found, where=str(path), remedy="give one row a vector")
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if wrong.size:
        found = f"{wrong.size:,} vectors hold NaN or an infinity, the first in row {wrong[0]}"
        raise BrokenContract(f"{found} (from 0)", where=str(path))
    return vectors


def read_ids(path: Path) -> Ids:
    """Return the ids of a text file, one a line, as written.

    Raises:
        MissingFile: It is not there.
        MalformedLine: A line is empty, an id stands twice, or it is not UTF-8.
    """
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    lines = read_text(path).decode().removesuffix("\n").split("\n")
    ids = [line.removesuffix("\r") for line in lines]
    first: dict[str, int] = {}
    for line, each in enumerate(ids, start=1):
        if not each and ids != [""]:
            raise MalformedLine("an empty id", where=f"{path}:{line}")
        if first.setdefault(each, line) != line:
            found = f"id {each!r} stands on line {first[each]} too"
            raise MalformedLine(found, where=f"{path}:{line}")
    return np.array(ids if ids != [""] else [], dtype=object)


def aligned(vectors: AnyArray, ids: Ids, wanted: Vocabulary, what: str) -> Floats32:
    """Return the vectors in the order of a vocabulary, ``float32``; NaN where it has none."""
    codes = wanted.find(ids)
    placed = np.full((len(wanted), vectors.shape[1]), np.nan, dtype=np.float32)
    placed[codes[codes >= 0]] = vectors[codes >= 0]
    unknown = int((codes < 0).sum())
    if unknown and unknown == codes.size and len(wanted):
        found = f"none of the {codes.size:,} vectors is of {what} of the dataset"
        remedy = f"the dataset has {what} such as {wanted.ids[0]!r}, the file {str(ids[0])!r}"
        raise UnknownIdentifier(found, remedy=remedy)
    if unknown:
        warn(f"{unknown:,} of {codes.size:,} vectors are of {what} that the dataset lacks")
    lacking = len(wanted) - (codes.size - unknown)
    if lacking:
        warn(f"{lacking:,} of the {len(wanted):,} {what} of the dataset have no vector")
    return placed


def _faults(read: Callable[[], object]) -> list[UserError]:
    """Return the fault that reading finds, if any."""
    try:
        read()
    except UserError as error:
        return [error]
    return []


def _ids_of(path: Path, vectors: AnyArray) -> Ids:
    ids = read_ids(path)
    if ids.size != vectors.shape[0]:
        found = f"{ids.size:,} ids for {vectors.shape[0]:,} vectors"
        raise BrokenContract(found, where=str(path), remedy="give one id a line, in row order")
    return ids


def _refuse_zeros(vectors: AnyArray, path: Path) -> None:
    zeros = np.flatnonzero(~vectors.any(axis=1))
    if zeros.size:
        found = f"{zeros.size:,} vectors are 0, which has no cosine, the first in row {zeros[0]}"
        raise BrokenContract(f"{found} (from 0)", where=str(path), remedy="or take score: dot")


def _directions(vectors: AnyArray) -> AnyArray:
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1.0)
