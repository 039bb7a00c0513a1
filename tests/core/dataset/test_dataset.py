from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Dataset, Reviews
from support.worlds.small_worlds import make_interactions


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
    assert dataset.users is not None
    assert dataset.users.frame["age"].tolist() == [20.0, 30.0]
    assert dataset.users.ids is dataset.user_ids
    assert dataset.items is not None
    assert dataset.items.frame["genre"].tolist() == [None]
    # of the reviews 00, 11, 20 and 31 only 11 has a user and an item that remain
    assert dataset.reviews is not None
    assert dataset.reviews.texts.tolist() == ["11"]
    assert (dataset.reviews.users.tolist(), dataset.reviews.items.tolist()) == ([0], [0])
    assert len(dataset.reviews) == 1
    assert dataset.counts == {"bad_lines": 3}
