from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Interactions, TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.models.prompted import Histories, read_titles
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary
from support.worlds.small_worlds import make_interactions


def make_data(**columns: list[object]) -> TrainingData:
    n_items = len(next(iter(columns.values())))
    train = make_interactions([(0, 0)], n_items=n_items)
    return TrainingData(train, items=Attributes(train.item_ids, pd.DataFrame(columns), "item"))


def test_year_is_split_from_the_title_and_the_article_moved() -> None:
    data = make_data(title=["Matrix, The (1999)", "Heat", "2001: A Space Odyssey (1968)"])
    titles = [("The Matrix", 1999), ("Heat", None), ("2001: A Space Odyssey", 1968)]
    assert read_titles(data, "title", None) == titles


def test_missing_columns_are_errors_at_their_setting() -> None:
    with pytest.raises(UnknownColumn) as error:
        read_titles(make_data(title=["Heat"]), "titel", None)
    assert (error.value.where, "title" in error.value.remedy) == ("title", True)
    with pytest.raises(UnknownColumn) as error:
        read_titles(make_data(title=["Heat"]), "title", "year")
    assert error.value.where == "year"
    with pytest.raises(UnknownColumn, match="no item has a value in 'title'"):
        read_titles(make_data(title=[None, None]), "title", None)
    with pytest.raises(MissingEvidence, match="the dataset has no items"):
        read_titles(TrainingData(make_interactions([(0, 0)])), "title", None)


def test_histories_are_in_time_order_and_empty_for_other_queries() -> None:
    train = Interactions(
        users=np.array([1, 0, 1, 1], dtype=np.int32),
        items=np.array([3, 2, 1, 0], dtype=np.int32),
        values=np.ones(4, dtype=np.float32),
        times=np.array([20, 5, 10, 20]),
        user_ids=make_vocabulary("u", 3),
        item_ids=make_vocabulary("i", 4),
    )
    histories = Histories.from_data(TrainingData(train))
    queries = make_user_queries(4, users=[1, 0, 2, -1])
    selected = [items.tolist() for items in histories.select(queries)]
    assert selected == [[1, 3, 0], [2], [], []]  # equal times in the order of the file
