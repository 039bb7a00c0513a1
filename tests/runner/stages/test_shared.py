from __future__ import annotations

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes, Dataset, Reviews, Split, Vocabulary
from recbias.runner.stages import SplitDataset, align_dataset, make_training_data
from support.worlds.small_worlds import make_interactions


def test_without_a_splitter_all_interactions_are_training_interactions() -> None:
    dataset = Dataset(make_interactions([(0, 0), (1, 1)]))
    split = SplitDataset(None, 0, 42)(dataset)
    assert len(split.train) == 2
    assert split.test is None


def test_tables_and_reviews_are_aligned_with_the_vocabularies_of_the_split() -> None:
    interactions = make_interactions([(0, 0), (1, 1)])
    items = Attributes(interactions.item_ids, pd.DataFrame({"price": ["$", "$$"]}))
    code = np.array([1], dtype=np.int32)
    reviews = Reviews(code, code, np.array(["good"], dtype=object))
    dataset = Dataset(interactions, items=items, reviews=reviews)
    wider = make_interactions([(0, 0), (1, 2)], n_items=3)
    ids = Vocabulary(np.array(["i0", "i00", "i1"], dtype=object))
    train = type(wider)(wider.users, wider.items, wider.values, None, wider.user_ids, ids)
    aligned = align_dataset(dataset, Split(train, None))
    assert aligned.items is not None
    assert aligned.items.frame["price"].tolist() == ["$", None, "$$"]
    assert aligned.reviews is not None
    assert aligned.reviews.items.tolist() == [2]


def test_training_data_has_no_test_set() -> None:
    train = make_interactions([(0, 0)], n_users=1, n_items=2)
    test = make_interactions([(0, 1)], n_users=1, n_items=2)
    dataset = Dataset(make_interactions([(0, 0), (0, 1)], n_users=1, n_items=2))
    data = make_training_data(dataset, Split(train, test))
    assert not hasattr(data, "test")
    assert data.train.items.tolist() == [0]
    assert data.candidates.tolist() == [True, False]
