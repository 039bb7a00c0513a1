from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from recbias.core.dataset import Queries, TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.evidence import Embeddings, RankedLists
from recbias.core.plugins import Output, State
from recbias.models.baselines import MostPop
from recbias.models.linear import EASE
from recbias.testing import check_recommender, make_checkerboard
from support.worlds.small_worlds import make_interactions

Change = Callable[[RankedLists, Queries, TrainingData], RankedLists]

FITS = iter(range(10_000))


def keep(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return lists


@dataclass(frozen=True, eq=False)
class ChangedLists:
    """The lists of EASE, changed."""

    change: Change
    data: TrainingData
    number: int

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        fitted = EASE().fit(self.data, np.random.default_rng(0))
        lists = fitted.recommend(queries, k, data)
        if self.change is score_by_fit:
            lists = RankedLists(lists.items, lists.scores + np.float32(self.number))
        return self.change(lists, queries, data)

    def state(self) -> State:
        return {"one": np.array([object()])} if self.change is store_objects else {}

    def embeddings(self) -> Embeddings:
        return Embeddings(np.zeros((3, 2), dtype=np.float32), None)


@dataclass(frozen=True, kw_only=True)
class Model:
    """EASE with changed lists."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()

    change: Change = keep

    def fit(self, data: TrainingData, rng: np.random.Generator) -> ChangedLists:
        return ChangedLists(self.change, data, next(FITS))


@dataclass(frozen=True, kw_only=True)
class Restoring(Model):
    """A model that restores other lists than it stored."""

    def restore(self, state: State) -> ChangedLists:
        change = keep if self.change is store_objects else zero_scores_and_sort
        return ChangedLists(change, make_checkerboard(), 0)


@dataclass(frozen=True, kw_only=True)
class Embedding(Model):
    """A model with embeddings of the wrong shape."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})


@dataclass(frozen=True, kw_only=True)
class Responding(Model):
    """A model without the responses that it provides."""

    provides: ClassVar[frozenset[Output]] = frozenset({"responses"})


@dataclass(frozen=True, kw_only=True)
class NeedsTest(Model):
    """A model that needs a test set."""

    needs: ClassVar[frozenset[str]] = frozenset({"test"})


def replace_first_item(lists: RankedLists, item: int) -> RankedLists:
    items, scores = lists.items.copy(), lists.scores.copy()
    items[:1, 0] = item
    return RankedLists(items, scores)


def repeat_item(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return replace_first_item(lists, int(lists.items[0, 1])) if len(lists) else lists


def list_training_item(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return replace_first_item(lists, int(data.train.items[0]))


def list_cold_item(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return replace_first_item(lists, data.train.n_items - 1)


def zero_scores(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    scores = np.where(lists.filled, np.float32(0), np.float32(np.nan))
    return RankedLists(lists.items.copy(), scores)


def zero_scores_and_sort(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    items = np.where(lists.filled, np.sort(lists.items, axis=1), -1)
    return RankedLists(items, zero_scores(lists, queries, data).scores)


def truncate(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return lists.truncate(6)


def score_by_fit(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return lists


def score_by_queries(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return RankedLists(lists.items.copy(), lists.scores * np.float32(len(queries)))


def score_by_length(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return RankedLists(lists.items.copy(), lists.scores * np.float32(lists.k))


def store_objects(lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
    return lists


def test_a_correct_model_passes() -> None:
    check_recommender(Model())


@pytest.mark.parametrize(
    ("model", "violation"),
    [
        (Model(change=repeat_item), "an item twice"),
        (Model(change=list_training_item), "a training item of the query"),
        (Model(change=list_cold_item), "lists an item that is not a candidate"),
        (Model(change=zero_scores), "does not sort items of equal score by code"),
        (Model(change=truncate), "returns 6 positions for k = 28"),
        (Model(change=score_by_fit), "recommends other lists with the same seed"),
        (Model(change=score_by_queries), "recommends query 0 other items alone"),
        (Model(change=score_by_length), "recommends other items in longer lists"),
        (Restoring(), "recommends other lists after it is restored"),
        (Restoring(change=store_objects), r"has objects in the state \['one'\]"),
        (Embedding(), "does not return one embedding for each of the 41 users"),
        (Responding(), "provides responses but its fitted recommender does not"),
        (NeedsTest(), "needs a part that training data does not have"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_violation_is_named(model: Model, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_recommender(model)


def test_popularity_does_not_learn_the_checkerboard() -> None:
    check_recommender(MostPop(), learns=False)
    with pytest.raises(BrokenContract, match="does not learn the checkerboard"):
        check_recommender(MostPop())


def test_the_training_data_can_be_chosen() -> None:
    pairs = [(user, item) for user in range(4) for item in range(user + 1)]
    check_recommender(EASE(), data=TrainingData(make_interactions(pairs, n_items=6)))
