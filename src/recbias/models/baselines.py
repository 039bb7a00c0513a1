"""Recommenders that ignore the user's history: the baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.dataset import AnyArray, Ids, Queries, TrainingData
from recbias.core.evidence import RankedLists
from recbias.core.plugins import Output, State
from recbias.kernels.sparse import compile_loop
from recbias.kernels.topk import can_compile, mix_hashes
from recbias.models.ranking import rank_by_same_scores, rank_rows, rank_tiles

_Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Random:
    """Recommend unseen items uniformly at random.

        score(u, i) = hash(seed, id of u, id of i), uniform on [0, 1)

    The scores depend only on the seed and the identifiers. The order of the queries and the rest
    of the data do not change a list, except for items that stop being candidates.

    Source:
        Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014,
        figure 14 (the mixing of the hash).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedRandom:
        """Sample the seed of the hash."""
        return FittedRandom(np.array(rng.integers(2**63), dtype=np.uint64))

    def restore(self, state: State) -> FittedRandom:
        """Return the fitted recommender of a stored state."""
        return FittedRandom(state["seed"])


@dataclass(frozen=True, eq=False)
class FittedRandom:
    """The seed of the hash, a ``uint64`` scalar array."""

    seed: AnyArray

    def state(self) -> State:
        """Return the seed as a named array."""
        return {"seed": self.seed}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        users = _mix_bits(hash_ids(queries.ids.ids) ^ self.seed)
        items = hash_ids(data.train.item_ids.ids)

        def score_rows(rows: AnyArray) -> AnyArray:
            hashes = _mix_bits(users[rows, None] ^ items)
            return (hashes >> np.uint64(40)).astype(np.float32) / np.float32(2**24)

        def score_tile(rows: AnyArray, first: int, last: int) -> AnyArray:
            scores = np.empty((rows.size, last - first), dtype=np.float32)
            compile_loop(mix_hashes, exact=True)(users[rows], items[first:last], scores)
            return scores

        if can_compile(float(len(queries)) * data.train.n_items):
            return rank_tiles(score_tile, queries.users, k, data)
        return rank_rows(score_rows, queries.users, k, data)


@dataclass(frozen=True, kw_only=True)
class MostPop:
    """Recommend the items with the most training interactions to all users.

        score(u, i) = number of training interactions of i

    Training items of a user are excluded from that user's list. Ties are broken by item code.

    Source:
        Cremonesi, Koren and Turrin, "Performance of Recommender Algorithms on Top-N Recommendation
        Tasks", RecSys 2010, section 3.1 (TopPop).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedMostPop:
        """Count the interactions of each item."""
        return _FittedMostPop(data.train.item_counts())

    def restore(self, state: State) -> _FittedMostPop:
        """Return the fitted recommender of a stored state."""
        return _FittedMostPop(state["counts"])


@dataclass(frozen=True, eq=False)
class _FittedMostPop:
    """The number of training interactions of each item, ``int64[n_items]``."""

    counts: npt.NDArray[np.int64]

    def state(self) -> State:
        """Return the counts as a named array."""
        return {"counts": self.counts}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        return rank_by_same_scores(self.counts.astype(np.float32), queries.users, k, data)


def hash_ids(ids: Ids) -> _Hashes:
    """Return a 64-bit hash of each identifier, the same in every run.

    >>> int(hash_ids(np.array(["a"], dtype=object))[0])
    13950350942979735504
    """
    return pd.util.hash_array(ids, categorize=False)


def _mix_bits(values: _Hashes) -> _Hashes:
    """Mix 64-bit numbers so that each output bit depends on every input bit (splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))
