from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Ids, Reviews, TrainingData
from recbias.core.errors import MissingEvidence, NothingLeft
from recbias.models.text import (
    Blocks,
    ItemClasses,
    accuracy,
    prepare_reviews,
    require_reviews,
    select_validation_reviews,
)
from support.worlds.small_worlds import make_interactions

# item 1 has no training row: the classes are the items 0, 2 and 3
DATA = TrainingData(make_interactions([(0, 0), (0, 2), (1, 3)], n_items=4))
CLASSES = ItemClasses.from_data(DATA)


def classify_by_length(texts: Ids) -> Blocks:
    """The last class for long texts, the first for short ones, the middle always second."""
    for start in (1, 0):
        rows = np.arange(start, len(texts), 2)
        long = np.array([len(text) > 3 for text in texts[rows]])
        yield rows, np.where(long[:, None], [[0, 1, 2]], [[2, 1, 0]]).astype(np.float32)


def make_texts(*texts: str) -> Ids:
    return np.array(texts, dtype=object)


def test_lists_contain_item_codes() -> None:
    lists = CLASSES.recommend(classify_by_length, make_texts("short", "s"), 2)
    assert lists.items.tolist() == [[3, 2], [0, 2]]
    assert lists.scores.tolist() == [[2, 1], [2, 1]]


def test_a_list_longer_than_the_number_of_classes_is_padded() -> None:
    lists = CLASSES.recommend(classify_by_length, make_texts("s"), 5)
    assert lists.items.tolist() == [[0, 2, 3, -1, -1]]


def test_rank_all_ranks_every_class() -> None:
    ranked = CLASSES.rank_all(classify_by_length, make_texts("long text", "s", "t"))
    assert ranked.tolist() == [[3, 2, 0], [0, 2, 3], [0, 2, 3]]


def test_accuracy_is_the_share_of_texts_whose_item_is_ranked_first() -> None:
    share = accuracy(
        classify_by_length(make_texts("long text", "s", "t")), CLASSES.encode(np.array([3, 0, 2]))
    )
    assert share == pytest.approx(2 / 3)
    assert np.isnan(accuracy(iter(()), np.arange(0)))


def make_reviews(*items: int) -> Reviews:
    codes = np.array(items, dtype=np.int32)
    return Reviews(np.zeros_like(codes), codes, make_texts(*(f"of {item}" for item in items)))


def test_training_reviews_are_required() -> None:
    with pytest.raises(MissingEvidence, match="no reviews"):
        require_reviews(DATA)
    with pytest.raises(NothingLeft, match="no review"):
        require_reviews(replace(DATA, reviews=make_reviews()))
    assert len(require_reviews(replace(DATA, reviews=make_reviews(0, 2, 2)))) == 3


def test_items_without_training_reviews_are_counted() -> None:
    with collect_warnings() as warnings:
        assert len(prepare_reviews(replace(DATA, reviews=make_reviews(0, 2, 2)))) == 3
    assert warnings == ["1 items with training interactions have no training review"]


def test_validation_reviews_are_restricted_to_items_with_a_class() -> None:
    assert select_validation_reviews(DATA, CLASSES) is None
    assert (
        select_validation_reviews(replace(DATA, validation_reviews=make_reviews(1)), CLASSES)
        is None
    )
    reviews = select_validation_reviews(
        replace(DATA, validation_reviews=make_reviews(1, 3)), CLASSES
    )
    assert reviews is not None
    assert reviews.texts.tolist() == ["of 3"]
