from __future__ import annotations

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.split import Split
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.runner.stages.shared import DivideDataset, over, training_data
from support.worlds import make_interactions


def test_without_a_splitter_everything_is_history() -> None:
    dataset = Dataset(make_interactions([(0, 0), (1, 1)]))
    split = DivideDataset(None, 0, 42)(dataset)
    assert len(split.train) == 2
    assert split.test is None


def test_tables_and_reviews_move_with_the_vocabularies_of_a_given_split() -> None:
    inter = make_interactions([(0, 0), (1, 1)])
    items = Attributes(inter.item_ids, pd.DataFrame({"price": ["$", "$$"]}))
    one = np.array([1], dtype=np.int32)
    reviews = Reviews(one, one, np.array(["good"], dtype=object))
    dataset = Dataset(inter, items=items, reviews=reviews)
    wider = make_interactions([(0, 0), (1, 2)], n_items=3)
    ids = Vocabulary(np.array(["i0", "i00", "i1"], dtype=object))
    train = type(wider)(wider.users, wider.items, wider.values, None, wider.user_ids, ids)
    world = over(dataset, Split(train, None))
    assert world.items is not None
    assert world.items.frame["price"].tolist() == ["$", None, "$$"]
    assert world.reviews is not None
    assert world.reviews.items.tolist() == [2]


def test_what_training_sees_has_no_test_part() -> None:
    train = make_interactions([(0, 0)], n_users=1, n_items=2)
    test = make_interactions([(0, 1)], n_users=1, n_items=2)
    both = Dataset(make_interactions([(0, 0), (0, 1)], n_users=1, n_items=2))
    data = training_data(both, Split(train, test))
    assert not hasattr(data, "test")
    assert data.train.items.tolist() == [0]
    assert data.candidates.tolist() == [True, False]
