from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Dataset, Split
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn, WrongType
from recbias.data.splits import Temporal
from support.worlds.small_worlds import make_interactions

PAIRS = [(user, item) for user in range(2) for item in range(5)]


def make_dataset(times: list[int]) -> Dataset:
    return Dataset(make_interactions(PAIRS[: len(times)], n_users=2, n_items=5, times=times))


def list_times(split: Split) -> tuple[list[int], list[int], list[int]]:
    parts = (split.train, split.validation, split.test)
    return tuple([] if part is None else sorted(part.times.tolist()) for part in parts)  # type: ignore[return-value, union-attr]


def split_dataset(splitter: Temporal, dataset: Dataset) -> Split:
    return splitter.split(dataset, 0, np.random.default_rng(0))


def test_a_global_cut_tests_on_the_latest_fifth() -> None:
    split = split_dataset(Temporal(), make_dataset([5, 1, 9, 3, 7, 2, 8, 4, 10, 6]))
    assert list_times(split) == ([1, 2, 3, 4, 5, 6, 7, 8], [], [9, 10])


def test_validation_rows_are_the_latest_before_the_test() -> None:
    split = split_dataset(Temporal(validation=0.3), make_dataset([5, 1, 9, 3, 7, 2, 8, 4, 10, 6]))
    assert list_times(split) == ([1, 2, 3, 4, 5], [6, 7, 8], [9, 10])


@pytest.mark.parametrize("at", [86_400, "1970-01-02", "1970-01-02T01:00+01:00"])
def test_the_cut_may_be_a_time_or_a_date(at: int | str) -> None:
    split = split_dataset(Temporal(at=at), make_dataset([0, 86_399, 86_400, 90_000]))
    assert list_times(split) == ([0, 86_399], [], [86_400, 90_000])
    # a quarter of 4 rows is 1
    split = split_dataset(
        Temporal(at=at, validation=0.25), make_dataset([0, 86_399, 86_400, 90_000])
    )
    assert list_times(split) == ([0], [86_399], [86_400, 90_000])


def test_the_latest_rows_of_each_user_are_tested() -> None:
    # user 0 has times 5 1 9 3 7: floor(0.8 * 5) = 4 are for training, not 9;
    # user 1 has 12 18 14 11 16
    split = split_dataset(Temporal(per="user"), make_dataset([5, 1, 9, 3, 7, 12, 18, 14, 11, 16]))
    assert list_times(split) == ([1, 3, 5, 7, 11, 12, 14, 16], [], [9, 18])
    # with 0.2 for validation floor(0.6 * 5) = 3 are for training
    validated = split_dataset(
        Temporal(per="user", validation=0.2), make_dataset([5, 1, 9, 3, 7, 12, 18, 14, 11, 16])
    )
    assert list_times(validated) == ([1, 3, 5, 11, 12, 14], [7, 16], [9, 18])


@given(st.lists(st.integers(0, 20), min_size=2, max_size=10), st.sampled_from([0.0, 0.1, 0.3]))
def test_nothing_in_training_is_later_than_the_test(times: list[int], validation: float) -> None:
    try:
        train, validation_times, test = list_times(
            split_dataset(Temporal(validation=validation), make_dataset(times))
        )
    except NothingLeft:
        return
    assert sorted(train + validation_times + test) == sorted(times)
    assert max(train) < min(validation_times or test)
    assert max(train + validation_times) < min(test)
    assert list_times(split_dataset(Temporal(), make_dataset(times)))[2] == test


@pytest.mark.parametrize("per", ["user", "global"])
def test_a_dataset_without_times_is_refused(per: str) -> None:
    with pytest.raises(UnknownColumn, match="needs times") as caught:
        split_dataset(Temporal(per=per), Dataset(make_interactions([(0, 0), (0, 1)])))  # type: ignore[arg-type]
    assert "timestamp" in caught.value.remedy


@pytest.mark.parametrize(
    ("settings", "error_class", "where"),
    [
        ({"at": 3, "per": "user"}, Contradiction, "at"),
        ({"test": 0.6, "validation": 0.4}, Contradiction, "validation"),
        ({"at": "last week"}, WrongType, "at"),
    ],
)
def test_contradictory_settings_are_refused(
    settings: dict[str, object], error_class: type[Exception], where: str
) -> None:
    with pytest.raises(error_class) as caught:
        Temporal(**settings)  # type: ignore[arg-type]
    assert caught.value.where == where  # type: ignore[attr-defined]
