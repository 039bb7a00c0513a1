from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import (
    Attributes,
    Dataset,
    Interactions,
    Reviews,
    Sentences,
    Split,
    TrainingData,
    Vocabulary,
    sort_naturally,
)
from recbias.core.errors import BrokenContract, Leakage, UnknownColumn, UnknownIdentifier
from recbias.runner.stages import make_training_data
from support.worlds.small_worlds import make_interactions


def make_films() -> Attributes:
    ids = Vocabulary.of(["1", "2", "3", "4"])
    frame = pd.DataFrame(
        {
            "genres": ["Drama|Comedy", None, "Comedy", "Comedy|Comedy|"],
            "year": [1995.0, np.nan, 2001.0, 1995.0],
            "n_ratings": [1234567.0, 1234568.0, 2.5, np.nan],
            "price": ["1", "2.5", None, "3"],
        }
    )
    return Attributes(ids, frame)


def test_numbers_are_read_from_numbers_and_from_text() -> None:
    np.testing.assert_array_equal(make_films().numbers("year"), [1995, np.nan, 2001, 1995])
    np.testing.assert_array_equal(make_films().numbers("price"), [1, 2.5, np.nan, 3])
    with pytest.raises(UnknownColumn, match="'genres' of the items is not numeric: 'Drama"):
        make_films().numbers("genres")


def test_a_multi_valued_cell_has_all_its_values() -> None:
    membership = make_films().membership("genres")
    assert membership.values == ("Comedy", "Drama")
    assert membership.matrix.toarray().astype(int).tolist() == [[1, 1], [0, 0], [1, 0], [1, 0]]


def make_dataset() -> Dataset:
    interactions = make_interactions([(0, 0), (1, 1), (2, 1), (2, 2)], n_users=4, n_items=3)
    users = Attributes(
        interactions.user_ids, pd.DataFrame({"age": [10.0, 20.0, 30.0, 40.0]}), "user"
    )
    items = Attributes(interactions.item_ids, pd.DataFrame({"genre": ["a", None, "c"]}), "item")
    reviews = Reviews(
        np.array([0, 1, 2, 3], dtype=np.int32),
        np.array([0, 1, 0, 1], dtype=np.int32),
        np.array(["00", "11", "20", "31"], dtype=object),
    )
    return Dataset(interactions, users, items, reviews, counts={"bad_lines": 3})


@pytest.mark.parametrize("rows", [np.array([False, True, True, False]), np.array([1, 2])])
def test_selected_rows_keep_their_users_items_and_reviews(rows: np.ndarray) -> None:
    dataset = make_dataset().select_rows(rows)
    assert dataset.user_ids.ids.tolist() == ["u1", "u2"]
    assert dataset.item_ids.ids.tolist() == ["i1"]
    assert dataset.interactions.users.tolist() == [0, 1]
    assert dataset.interactions.items.tolist() == [0, 0]
    assert dataset.users.frame["age"].tolist() == [20.0, 30.0]
    assert dataset.users.ids is dataset.user_ids
    assert dataset.items.frame["genre"].tolist() == [None]
    # of the reviews 00, 11, 20 and 31 only 11 has a user and an item that remain
    assert dataset.reviews.texts.tolist() == ["11"]
    assert (dataset.reviews.users.tolist(), dataset.reviews.items.tolist()) == ([0], [0])
    assert dataset.counts == {"bad_lines": 3}


def test_repeated_pairs_count_once_in_the_binary_and_add_up_in_the_weighted_matrix() -> None:
    # (0, 1) twice with 2 and 3: one in the binary matrix, 5 in the weighted one
    interactions = make_interactions([(1, 0), (0, 1), (0, 1)], values=[4, 2, 3])
    assert interactions.binary.toarray().tolist() == [[0, 1], [1, 0]]
    assert interactions.weighted.toarray().tolist() == [[0, 5], [4, 0]]
    assert interactions.binary.dtype == np.float32
    assert interactions.binary.has_sorted_indices


FRAME = pd.DataFrame(
    {
        "id": ["a", "b1", "b2", "c1", "c2"],
        "part": ["train", "validation", "validation", "test", "test"],
        "pair_id": [None, "b", "b", "c", "c"],
        "group": ["old", "old", "young", "old", "young"],
        "text": ["He is 80.", "An old man.", "A young man.", "Old age.", "Young age."],
        "category": ["age"] * 5,
    }
)


def _build_dataset() -> Dataset:
    rows = Interactions.without_rows(Vocabulary.of([]), Vocabulary.of([]))
    return Dataset(rows, sentences=Sentences(FRAME))


def test_training_never_sees_test_sentences() -> None:
    dataset = _build_dataset()
    data = make_training_data(dataset, Split(dataset.interactions, None))
    assert data.sentences.frame["id"].tolist() == ["a", "b1", "b2"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.drop(columns="group"), "no column group"),
        (FRAME.assign(id="a"), "two sentences have the id 'a'"),
        (FRAME.assign(part="dev"), "of the part 'dev'"),
    ],
)
def test_a_wrong_table_is_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(BrokenContract, match=message):
        Sentences(frame)


def make_two_by_three(pairs: list[tuple[int, int]]) -> Interactions:
    return make_interactions(pairs, n_users=2, n_items=3)


SPLIT_PAIRS = st.tuples(st.integers(0, 4), st.integers(0, 4))


@given(
    st.lists(SPLIT_PAIRS, max_size=8),
    st.lists(SPLIT_PAIRS, max_size=8),
    st.lists(SPLIT_PAIRS, max_size=8),
)
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
    assert data.validation_reviews.texts.tolist() == ["validation"]
    assert data.reviews.texts.tolist() == ["train", "train too"]
    assert data.reviews.items.tolist() == [0, 2]
    assert data.validation is split.validation


def test_candidates_are_the_items_with_a_training_row() -> None:
    data = Split(
        make_interactions([(0, 0), (1, 2)], n_items=4),
        make_interactions([(0, 3)], n_users=2, n_items=4),
    )
    assert data.training_data().candidates.tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["10", "9", "2"], ["2", "9", "10"]),
        (["10", "9", "b"], ["10", "9", "b"]),
        # 07 and 7 are two identifiers of one number, so they sort as text
        (["7", "07", "10"], ["07", "10", "7"]),
        (["1", "２"], ["1", "２"]),
        (["9" * 18, "1"], ["1", "9" * 18]),
        (["9" * 40, "1"], ["1", "9" * 40]),
        (['a,"b\nc', "🎬", ""], ["", 'a,"b\nc', "🎬"]),
        ([], []),
    ],
)
def test_identifiers_sort_in_natural_order(ids: list[str], expected: list[str]) -> None:
    array = np.array(ids, dtype=object)
    assert array[sort_naturally(array)].tolist() == expected
    assert Vocabulary.of(ids).ids.tolist() == expected


def test_a_row_without_an_identifier_is_an_error() -> None:
    with pytest.raises(UnknownIdentifier, match="2 row"):
        Vocabulary.encode(np.array(["a", None, np.nan], dtype=object))


def test_identifiers_that_pandas_takes_for_one_are_refused() -> None:
    with pytest.raises(UnknownIdentifier, match="NUL"):
        Vocabulary.encode(np.array(["a\0b", "a\0c"], dtype=object))
