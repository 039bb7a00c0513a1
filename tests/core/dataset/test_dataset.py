from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from support.worlds import rows


def small() -> Dataset:
    interactions = rows([(0, 0), (1, 1), (2, 1), (2, 2)], n_users=4, n_items=3)
    users = Attributes(
        interactions.user_ids, pd.DataFrame({"age": [10.0, 20.0, 30.0, 40.0]}), "user"
    )
    items = Attributes(interactions.item_ids, pd.DataFrame({"genre": ["a", None, "c"]}), "item")
    reviews = Reviews(
        np.array([0, 1, 2, 3], dtype=np.int32),
        np.array([0, 1, 0, 1], dtype=np.int32),
        np.array(["00", "11", "20", "31"], dtype=object),
    )
    return Dataset(interactions, users, items, reviews, {"bad_lines": 3})


@pytest.mark.parametrize("kept", [np.array([False, True, True, False]), np.array([1, 2])])
def test_keeping_rows_keeps_their_users_items_and_reviews(kept: np.ndarray) -> None:
    left = small().with_rows(kept)
    assert left.user_ids.ids.tolist() == ["u1", "u2"]
    assert left.item_ids.ids.tolist() == ["i1"]
    assert left.interactions.users.tolist() == [0, 1]
    assert left.interactions.items.tolist() == [0, 0]
    assert left.users is not None
    assert left.users.frame["age"].tolist() == [20.0, 30.0]
    assert left.users.ids is left.user_ids
    assert left.items is not None
    assert left.items.frame["genre"].tolist() == [None]
    # of the reviews 00, 11, 20 and 31 only 11 is by a user and of an item that are left
    assert left.reviews is not None
    assert left.reviews.texts.tolist() == ["11"]
    assert (left.reviews.users.tolist(), left.reviews.items.tolist()) == ([0], [0])
    assert len(left.reviews) == 1
    assert left.counts == {"bad_lines": 3}


def test_a_dataset_of_interactions_only_stays_one() -> None:
    left = Dataset(rows([(0, 0), (1, 1)])).with_rows(np.array([1]))
    assert (left.users, left.items, left.reviews) == (None, None, None)
    assert left.user_ids.ids.tolist() == ["u1"]


def test_keeping_nothing_gives_an_empty_dataset() -> None:
    left = small().with_rows(np.zeros(4, dtype=bool))
    assert len(left.interactions) == 0
    assert left.users is not None
    assert len(left.users.frame) == 0
    assert left.reviews is not None
    assert len(left.reviews) == 0
