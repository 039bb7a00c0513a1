from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recbias.core.arrays import Ids
from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft
from recbias.core.stage_context import collect_warnings
from recbias.models.text.text_ranking import (
    Blocks,
    ItemClasses,
    accuracy,
    judged_reviews,
    reviews_to_learn,
)
from support.asked import make_queries
from support.worlds import make_interactions

# item 1 has no training row: the classes are the items 0, 2 and 3
DATA = TrainingData(make_interactions([(0, 0), (0, 2), (1, 3)], n_items=4))
CLASSES = ItemClasses.of(DATA)


def by_length(texts: Ids) -> Blocks:
    """The last class for long texts, the first for short ones, the middle always second."""
    for start in (1, 0):
        at = np.arange(start, len(texts), 2)
        long = np.array([len(each) > 3 for each in texts[at]])
        yield at, np.where(long[:, None], [[0, 1, 2]], [[2, 1, 0]]).astype(np.float32)


def texts(*each: str) -> Ids:
    return np.array(each, dtype=object)


def test_lists_are_of_items_and_not_of_classes() -> None:
    queries = replace(make_queries(["a", "b"], [-1, -1]), texts=texts("short", "s"))
    lists = CLASSES.lists(by_length, queries, 2)
    assert lists.items.tolist() == [[3, 2], [0, 2]]
    assert lists.scores.tolist() == [[2, 1], [2, 1]]


def test_a_list_longer_than_the_catalogue_ends_early() -> None:
    queries = replace(make_queries(["a"], [-1]), texts=texts("s"))
    assert CLASSES.lists(by_length, queries, 5).items.tolist() == [[0, 2, 3, -1, -1]]


def test_users_have_no_text_and_no_list() -> None:
    with collect_warnings() as notes:
        lists = CLASSES.lists(by_length, make_queries(["u0", "u1"]), 2)
    assert not lists.filled.any()
    assert notes == ["all 2 queries have no text: empty lists"]


def test_all_items_are_ranked() -> None:
    ranked = CLASSES.ranked(by_length, texts("long text", "s", "t"))
    assert ranked.tolist() == [[3, 2, 0], [0, 2, 3], [0, 2, 3]]


def test_accuracy_is_the_share_that_is_named_first() -> None:
    found = accuracy(
        by_length(texts("long text", "s", "t")), CLASSES.of_items(np.array([3, 0, 2]))
    )
    assert found == pytest.approx(2 / 3)
    assert np.isnan(accuracy(iter(()), np.arange(0)))


def reviews(*items: int) -> Reviews:
    codes = np.array(items, dtype=np.int32)
    return Reviews(np.zeros_like(codes), codes, texts(*(f"of {each}" for each in items)))


def test_what_there_is_to_learn() -> None:
    with pytest.raises(MissingEvidence, match="no reviews"):
        reviews_to_learn(DATA)
    with pytest.raises(NothingLeft, match="no review"):
        reviews_to_learn(replace(DATA, reviews=reviews()))
    with collect_warnings() as notes:
        assert len(reviews_to_learn(replace(DATA, reviews=reviews(0, 2, 2)))) == 3
    assert notes == ["1 items with training interactions have no training review"]


def test_only_reviews_of_known_items_are_judged_by() -> None:
    assert judged_reviews(DATA, CLASSES) is None
    assert judged_reviews(replace(DATA, validation_reviews=reviews(1)), CLASSES) is None
    held = judged_reviews(replace(DATA, validation_reviews=reviews(1, 3)), CLASSES)
    assert held is not None
    assert held.texts.tolist() == ["of 3"]
