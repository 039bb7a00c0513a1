from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split, TrainingData, pair_keys
from recbias.core.errors import Leakage
from support.worlds import rows


def two_by_three(pairs: list[tuple[int, int]]) -> Interactions:
    return rows(pairs, n_users=2, n_items=3)


def test_pair_keys_are_equal_for_equal_pairs_only() -> None:
    # 3 items: (0, 2) -> 0 * 3 + 2, (1, 0) -> 3, (1, 2) -> 5
    assert pair_keys(rows([(0, 2), (1, 0), (1, 2), (0, 2)])).tolist() == [2, 3, 5, 2]


def test_pair_keys_do_not_overflow_32_bits() -> None:
    many = rows([(99_999, 99_999)], n_users=100_000, n_items=100_000)
    assert pair_keys(many).tolist() == [99_999 * 100_000 + 99_999]


def test_a_split_may_have_no_test_part() -> None:
    split = Split(rows([(0, 0)]), None)
    assert split.test is None
    assert split.validation is None


@pytest.mark.parametrize(
    ("train", "validation", "test", "names"),
    [
        ([(0, 0), (1, 1)], None, [(1, 1)], "train and test"),
        ([(0, 0)], [(0, 0)], [(1, 1)], "train and validation"),
        ([(0, 0)], [(1, 1)], [(1, 1)], "validation and test"),
    ],
)
def test_parts_that_overlap_are_refused(
    train: list[tuple[int, int]],
    validation: list[tuple[int, int]] | None,
    test: list[tuple[int, int]],
    names: str,
) -> None:
    kept = two_by_three(validation) if validation else None
    with pytest.raises(Leakage, match=f"1 .* both {names}") as caught:
        Split(two_by_three(train), two_by_three(test), kept)
    assert "deduplicate" in caught.value.remedy


pairs = st.tuples(st.integers(0, 4), st.integers(0, 4))


@given(st.lists(pairs, max_size=8), st.lists(pairs, max_size=8), st.lists(pairs, max_size=8))
def test_a_split_is_refused_exactly_when_two_parts_share_a_pair(
    train: list[tuple[int, int]], validation: list[tuple[int, int]], test: list[tuple[int, int]]
) -> None:
    parts = [rows(each, n_users=5, n_items=5) for each in (train, test, validation)]
    shared = set(train) & set(test) | set(train) & set(validation) | set(test) & set(validation)
    if shared:
        with pytest.raises(Leakage):
            Split(*parts)
    else:
        assert len(Split(*parts).train) == len(train)


def test_training_data_has_no_field_for_the_test_set() -> None:
    names = {field.name for field in dataclasses.fields(TrainingData)}
    parts = {"train", "validation", "users", "items", "reviews", "validation_reviews"}
    assert names == parts | {"dataset"}


def test_training_data_has_the_reviews_of_training_pairs_only() -> None:
    split = Split(two_by_three([(0, 0), (1, 2)]), two_by_three([(0, 1)]), two_by_three([(1, 0)]))
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
    data = Split(rows([(0, 0), (1, 2)], n_items=4), rows([(0, 3)], n_users=2, n_items=4))
    assert data.training_data().candidates.tolist() == [True, False, True, False]
