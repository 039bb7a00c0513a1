from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
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


def test_years_of_a_column_replace_those_of_the_titles() -> None:
    data = make_data(name=["Heat (1990)", "Alien", "Ran"], released=[1995.0, 1979.0, None])
    assert read_titles(data, "name", "released") == [
        ("Heat", 1995),
        ("Alien", 1979),
        ("Ran", None),
    ]


def test_item_without_a_title_is_named_by_its_identifier() -> None:
    data = make_data(title=["Heat (1995)", None])
    assert read_titles(data, "title", None)[1] == (data.train.item_ids.ids[1], None)


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


def test_histories_without_times_are_in_the_order_of_the_data_with_a_warning() -> None:
    train = make_interactions([(0, 2), (0, 0), (0, 1)])
    with collect_warnings() as warnings:
        (items,) = Histories.from_data(TrainingData(train)).select(make_user_queries(1))
    assert items.tolist() == [2, 0, 1]
    assert warnings == ["the interactions have no times: histories are in the order of the data"]
