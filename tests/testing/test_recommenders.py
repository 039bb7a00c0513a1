from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.models.linear.ease import EASE
from recbias.models.unpersonalised import MostPop
from recbias.testing import check_recommender

Change = Callable[[RankedLists, Queries, TrainingData], RankedLists]


def same(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return lists


@dataclass(frozen=True, eq=False)
class Spoiled:
    """EASE's lists, changed."""

    change: Change
    data: TrainingData
    draw: int

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        fitted = EASE().fit(self.data, np.random.default_rng(0))
        lists = fitted.recommend(queries, k, data)
        if self.change is by_chance:
            lists = RankedLists(lists.items, lists.scores + np.float32(self.draw))
        return self.change(lists, queries, data)

    def state(self) -> State:
        return {"one": np.array([object()])} if self.change is with_objects else {}

    def embeddings(self) -> Embeddings:
        return Embeddings(np.zeros((3, 2), dtype=np.float32), None)


@dataclass(frozen=True, kw_only=True)
class Model:
    """EASE, spoiled."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()

    change: Change = same

    def files(self, data: Path) -> Sequence[Path]:
        return []

    def fit(self, data: TrainingData, rng: np.random.Generator) -> Spoiled:
        return Spoiled(self.change, data, int(next(DRAWS)))


@dataclass(frozen=True, kw_only=True)
class Restoring(Model):
    """A model that restores lists which it did not store."""

    def restore(self, state: State) -> Spoiled:
        from recbias.testing import checkerboard

        return Spoiled(same if self.change is with_objects else worse, checkerboard(), 0)


@dataclass(frozen=True, kw_only=True)
class Embedding(Model):
    """A model with vectors of another shape."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})


@dataclass(frozen=True, kw_only=True)
class Odd(Model):
    """A model that needs what there is not."""

    needs: ClassVar[frozenset[str]] = frozenset({"test"})


DRAWS = iter(range(10_000))


def edited(lists: RankedLists, row: int, items: list[int]) -> RankedLists:
    found, scores = lists.items.copy(), lists.scores.copy()
    found[row, : len(items)] = items
    return RankedLists(found, scores)


def twice(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return edited(lists, 0, [int(lists.items[0, 1])]) if len(lists) else lists


def own(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return edited(lists, 0, [int(data.train.items[0])]) if len(lists) else lists


def cold(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return edited(lists, 0, [data.train.n_items - 1]) if len(lists) else lists


def worse(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    scores = np.where(lists.filled, np.float32(0), np.float32(np.nan))
    return RankedLists(np.where(lists.filled, np.sort(lists.items, axis=1), -1), scores)


def untidy(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    scores = np.where(lists.filled, np.float32(0), np.float32(np.nan))
    return RankedLists(lists.items.copy(), scores)


def short(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return lists.cut(6)


def by_chance(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return lists


def together(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return RankedLists(lists.items.copy(), lists.scores * np.float32(len(queries)))


def longer(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return RankedLists(lists.items.copy(), lists.scores * np.float32(lists.k))


def with_objects(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return lists


def test_a_good_model_passes() -> None:
    check_recommender(Model())


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (Model(change=twice), "an item twice"),
        (Model(change=own), "an item of the query's own training rows"),
        (Model(change=cold), "lists an item that is no candidate"),
        (Model(change=untidy), "does not order items of one score by their codes"),
        (Model(change=short), "gives 6 places where 28 were asked for"),
        (Model(change=by_chance), "gives other lists with the same seed"),
        (Model(change=together), "another list when alone"),
        (Model(change=longer), "gives other items where longer lists are asked"),
        (Restoring(), "gives other lists once it is restored"),
        (Restoring(change=with_objects), r"has objects in the state \['one'\]"),
        (Embedding(), "does not give one vector for each of the 41 users"),
        (Odd(), "needs what training data does not have"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_broken_promise_is_named(model: Model, found: str) -> None:
    with pytest.raises(BrokenContract, match=found):
        check_recommender(model)


def test_popularity_does_not_learn_the_checkerboard() -> None:
    check_recommender(MostPop(), learns=False)
    with pytest.raises(BrokenContract, match="does not learn the checkerboard"):
        check_recommender(MostPop())


def test_other_data_may_be_given() -> None:
    from support.worlds import rows

    pairs = [(user, item) for user in range(4) for item in range(user + 1)]
    check_recommender(EASE(), data=TrainingData(rows(pairs, n_items=6)))
