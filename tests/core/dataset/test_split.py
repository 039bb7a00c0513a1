from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Interactions, Reviews, Split, TrainingData, encode_pairs
from recbias.core.errors import Leakage
from support.worlds.small_worlds import make_interactions


def make_two_by_three(pairs: list[tuple[int, int]]) -> Interactions:
    return make_interactions(pairs, n_users=2, n_items=3)


def test_codes_of_pairs_are_equal_for_equal_pairs_only() -> None:
    # 3 items: (0, 2) -> 0 * 3 + 2, (1, 0) -> 3, (1, 2) -> 5
    assert encode_pairs(make_interactions([(0, 2), (1, 0), (1, 2), (0, 2)])).tolist() == [
        2,
        3,
        5,
        2,
    ]


PAIRS = st.tuples(st.integers(0, 4), st.integers(0, 4))


@given(st.lists(PAIRS, max_size=8), st.lists(PAIRS, max_size=8), st.lists(PAIRS, max_size=8))
def test_a_split_is_an_error_exactly_if_two_sets_share_a_pair(
    train: list[tuple[int, int]], validation: list[tuple[int, int]], test: list[tuple[int, int]]
) -> None:
    parts = [make_interactions(pairs, n_users=5, n_items=5) for pairs in (train, test, validation)]
    shared = set(train) & set(test) | set(train) & set(validation) | set(test) & set(validation)
    if shared:
        with pytest.raises(Leakage):
            Split(*parts)
    else:
        assert len(Split(*parts).train) == len(train)


def test_training_data_has_no_field_for_the_test_set() -> None:
    names = {field.name for field in dataclasses.fields(TrainingData)}
    parts = {"train", "validation", "users", "items", "reviews", "validation_reviews"}
    assert names == parts | {"dataset", "sentences"}  # which have no test part


def test_training_data_has_the_reviews_of_training_pairs_only() -> None:
    split = Split(
        make_two_by_three([(0, 0), (1, 2)]),
        make_two_by_three([(0, 1)]),
        make_two_by_three([(1, 0)]),
    )
    reviews = Reviews(
        np.array([0, 0, 1, 1], dtype=np.int32),
        np.array([0, 1, 0, 2], dtype=np.int32),
        np.array(["train", "test", "validation", "train too"], dtype=object),
    )
    data = split.training_data(reviews=reviews)
    assert data.validation_reviews is not None
    assert data.validation_reviews.texts.tolist() == ["validation"]
    assert data.reviews is not None
    assert data.reviews.texts.tolist() == ["train", "train too"]
    assert data.reviews.items.tolist() == [0, 2]
    assert data.validation is split.validation


def test_candidates_are_the_items_with_a_training_row() -> None:
    data = Split(
        make_interactions([(0, 0), (1, 2)], n_items=4),
        make_interactions([(0, 3)], n_users=2, n_items=4),
    )
    assert data.training_data().candidates.tolist() == [True, False, True, False]


def test_item_counts_are_those_of_all_sets() -> None:
    train, test = make_two_by_three([(0, 0), (1, 0)]), make_two_by_three([(0, 1)])
    assert Split(train, None).item_counts().tolist() == [2, 0, 0]
    validation = make_two_by_three([(1, 1), (1, 2)])
    assert Split(train, test, validation).item_counts().tolist() == [2, 2, 1]
