from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Dataset
from recbias.core.errors import (
    Contradiction,
    MalformedLine,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
)
from recbias.core.queries import group_by
from recbias.data.filters_queries import KCore, QueryTable, Threshold, Users
from support.worlds.small_worlds import make_interactions

RNG = np.random.default_rng(0)


def make_dataset() -> Dataset:
    interactions = make_interactions([(0, 0), (2, 1)], n_users=4)
    frame = pd.DataFrame({"age": [10.0, 20.0, np.nan, 15.0], "gender": ["F", "M", "F", None]})
    return Dataset(interactions, Attributes(interactions.user_ids, frame, "user"))


def test_all_users_are_queries_with_their_labels() -> None:
    queries = Users().ask(make_dataset(), RNG)
    assert queries.ids.ids.tolist() == ["u0", "u1", "u2", "u3"]
    assert queries.users.tolist() == [0, 1, 2, 3]
    assert queries.users.dtype == np.int32
    assert queries.labels.frame["gender"].tolist() == ["F", "M", "F", None]
    assert queries.unit == "user"
    assert queries.texts is None


def test_users_are_selected_and_grouped_by_the_length_of_their_history() -> None:
    dataset = Dataset(make_interactions([(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]))
    queries = Users(where="history_length >= 2").ask(dataset, RNG)
    assert queries.users.tolist() == [1, 2]
    groups = group_by(queries.labels, "history_length < 3")
    assert groups.names == ("history_length < 3", "not history_length < 3")
    assert groups.codes.tolist() == [0, 1]
    with pytest.raises(UnknownColumn, match="no users table"):
        Users(where="history_length >= 2 and age < 9").ask(dataset, RNG)


def test_a_sample_is_sorted_and_restricted_by_the_condition() -> None:
    interactions = make_interactions([(0, 0)], n_users=100)
    frame = pd.DataFrame({"n": np.arange(100.0)})
    dataset = Dataset(interactions, Attributes(interactions.user_ids, frame, "user"))
    source = Users(where="n >= 50", sample=7)
    users = source.ask(dataset, np.random.default_rng(3)).users
    assert users.size == 7
    assert (users >= 50).all()
    assert (np.diff(users) > 0).all()
    assert users.tolist() == source.ask(dataset, np.random.default_rng(3)).users.tolist()
    assert users.tolist() != source.ask(dataset, np.random.default_rng(4)).users.tolist()


def test_a_sample_larger_than_the_users_takes_all_with_a_warning() -> None:
    with collect_warnings() as warnings:
        queries = Users(where="gender == 'F'", sample=9).ask(make_dataset(), RNG)
    assert queries.users.tolist() == [0, 2]
    assert warnings == ["a sample of 9 was requested; all 2 users are used"]


def write_table(folder: Path, text: str) -> QueryTable:
    path = folder / "queries.csv"
    path.write_text(text, encoding="utf-8")
    return QueryTable(path=path)


def test_queries_are_in_the_order_of_the_write_table(tmp_path: Path) -> None:
    source = write_table(tmp_path, "race,query_id,age\na,u2,7\n,u0,\nb,007,9\n")
    queries = source.ask(make_dataset(), RNG)
    assert queries.ids.ids.tolist() == ["u2", "u0", "007"]
    assert queries.users.tolist() == [2, 0, -1]
    assert queries.labels.frame["race"].tolist() == ["a", None, "b"]
    np.testing.assert_array_equal(queries.labels.frame["age"], [7, np.nan, 9])
    assert queries.labels.names == ["race", "age", "history_length"]
    np.testing.assert_array_equal(queries.labels.frame["history_length"][2:], [np.nan])
    assert queries.unit == "user"


def test_queries_that_are_not_users_are_prompts(tmp_path: Path) -> None:
    queries = write_table(tmp_path, 'query_id\n"a ""b"", c"\n🎬\n').ask(make_dataset(), RNG)
    assert queries.ids.ids.tolist() == ['a "b", c', "🎬"]
    assert queries.users.tolist() == [-1, -1]
    assert queries.unit == "prompt"
    assert len(queries.labels.frame) == 2


@pytest.mark.parametrize(
    ("text", "error_class", "message"),
    [
        ("query_id\nq1\nq2\nq1\n", MalformedLine, "queries.csv:4: query_id 'q1' has two rows"),
        ("query_id\n", NothingLeft, "has no queries"),
        ("query\nq1\n", UnknownColumn, "no column 'query_id'"),
        ("query_id,a\nq1,1\nq2\n", MalformedLine, "queries.csv:3"),
        ("query_id,a\n,1\n", MalformedLine, "queries.csv:2"),
    ],
)
def test_a_malformed_table_is_refused(
    tmp_path: Path, text: str, error_class: type[Exception], message: str
) -> None:
    with pytest.raises(error_class) as caught:
        write_table(tmp_path, text).ask(make_dataset(), RNG)
    assert message in str(caught.value)
    assert "skip" not in caught.value.remedy  # type: ignore[attr-defined]


@pytest.mark.real_data
def test_filtered_movielens_1m_has_218_children(real_data: Path) -> None:
    from recbias.data.movielens import MovieLens1M

    with collect_warnings():
        dataset = MovieLens1M().load(real_data, RNG)
    filtered = KCore(k=10).apply(Threshold(at_least=4).apply(dataset, RNG), RNG)
    children = Users(where="age < 18").ask(filtered, RNG)
    assert len(children) == 218
    assert (children.labels.numbers("age") < 18).all()


@given(st.integers(1, 7), st.integers(1, 9), st.integers(0, 2**32))
def test_samples_of_users_are_disjoint_sorted_and_of_one_size(
    size: int, folds: int, seed: int
) -> None:
    dataset = Dataset(make_interactions([(0, 0)], n_users=63))
    queries = Users(sample=size, folds=folds).ask(dataset, np.random.default_rng(seed))
    samples = queries.users.reshape(folds, size)
    assert len(set(queries.users.tolist())) == folds * size
    assert (np.diff(samples, axis=1) > 0).all()


def test_too_few_users_for_disjoint_samples_are_refused() -> None:
    with pytest.raises(OutOfRange, match=r"2 disjoint samples of 3 need 6 users") as caught:
        Users(sample=3, folds=2).ask(make_dataset(), RNG)
    assert caught.value.remedy == "sample: 2 is the largest possible"
    with pytest.raises(OutOfRange) as caught:
        Users(sample=1, folds=5).ask(make_dataset(), RNG)
    assert caught.value.remedy == "use fewer folds"


def test_disjoint_samples_without_a_size_are_refused() -> None:
    with pytest.raises(Contradiction) as caught:
        Users(folds=2)
    assert caught.value.where == "folds"
