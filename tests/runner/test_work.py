from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.attributes import Attributes
from recbias.core.dataset import Dataset, Reviews
from recbias.core.queries import Queries
from recbias.core.split import Split, TrainingData
from recbias.core.vocabulary import Vocabulary
from recbias.runner.work import DivideDataset, histories, over, training_data
from worlds import rows


def queries(users: list[int], ids: list[str]) -> Queries:
    names = Vocabulary(np.array(ids, dtype=object))
    labels = Attributes(names, pd.DataFrame(index=range(len(ids))), "query")
    return Queries(names, labels, np.array(users, dtype=np.int32))


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ([0, 1], [[1, 1, 0], [0, 0, 1]]),
        ([1, 0], [[0, 0, 1], [1, 1, 0]]),
        ([1, -1], [[0, 0, 1], [0, 0, 0]]),
        ([1], [[0, 0, 1]]),
    ],
)
def test_the_history_of_a_query_is_its_users_training_rows(
    users: list[int], expected: list[list[int]]
) -> None:
    data = TrainingData(rows([(0, 0), (0, 1), (1, 2)]))
    found = histories(queries(users, [f"q{each}" for each in users]), data)
    assert found.toarray().astype(int).tolist() == expected


def test_without_a_splitter_everything_is_history() -> None:
    dataset = Dataset(rows([(0, 0), (1, 1)]))
    split = DivideDataset(None, 0, 42)(dataset)
    assert len(split.train) == 2
    assert split.test is None


def test_tables_and_reviews_move_with_the_vocabularies_of_a_given_split() -> None:
    inter = rows([(0, 0), (1, 1)])
    items = Attributes(inter.item_ids, pd.DataFrame({"price": ["$", "$$"]}))
    one = np.array([1], dtype=np.int32)
    reviews = Reviews(one, one, np.array(["good"], dtype=object))
    dataset = Dataset(inter, items=items, reviews=reviews)
    wider = rows([(0, 0), (1, 2)], n_items=3)
    ids = Vocabulary(np.array(["i0", "i00", "i1"], dtype=object))
    train = type(wider)(wider.users, wider.items, wider.values, None, wider.user_ids, ids)
    world = over(dataset, Split(train, None))
    assert world.items is not None
    assert world.items.frame["price"].tolist() == ["$", None, "$$"]
    assert world.reviews is not None
    assert world.reviews.items.tolist() == [2]


def test_what_training_sees_has_no_test_part() -> None:
    train = rows([(0, 0)], n_users=1, n_items=2)
    test = rows([(0, 1)], n_users=1, n_items=2)
    both = Dataset(rows([(0, 0), (0, 1)], n_users=1, n_items=2))
    data = training_data(both, Split(train, test))
    assert not hasattr(data, "test")
    assert data.train.items.tolist() == [0]
    assert data.candidates.tolist() == [True, False]
