from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Dataset, Interactions, Split, encode_pairs
from recbias.core.errors import Leakage, NothingLeft
from recbias.data.splits import RandomHoldout
from support.worlds.small_worlds import make_interactions


def make_histories(*lengths: int) -> Dataset:
    """Make users with the given numbers of items."""
    pairs = [(user, item) for user, length in enumerate(lengths) for item in range(length)]
    return Dataset(make_interactions(pairs, n_users=len(lengths), n_items=max(lengths)))


def list_keys(part: Interactions | None) -> list[int]:
    assert part is not None
    return sorted(encode_pairs(part).tolist())


def split_dataset(splitter: RandomHoldout, dataset: Dataset, seed: int = 7) -> Split:
    return splitter.split(dataset, 0, np.random.default_rng(seed))


def test_the_training_rows_of_each_user_are_rounded_down() -> None:
    # floor(0.8 n) training rows of n = 10, 4, 2, 1: 8, 3, 1 and, at least one, 1
    split = split_dataset(RandomHoldout(), make_histories(10, 4, 2, 1))
    assert split.train.user_counts().tolist() == [8, 3, 1, 1]
    assert split.test is not None
    assert split.test.user_counts().tolist() == [2, 1, 1, 0]
    assert split.validation is None
    assert split.test.n_users == 4


def test_validation_is_a_share_of_all_interactions() -> None:
    # n = 10: floor(0.7 * 10) = 7 train, 8 - 7 = 1 validation, 2 test
    # n = 20: 14, 16 - 14 = 2, 4;   n = 4: floor(2.8) = 2, 3 - 2 = 1, 1;   n = 1: 1, 0, 0
    split = split_dataset(RandomHoldout(validation=0.1), make_histories(10, 20, 4, 1))
    assert split.validation is not None
    assert split.test is not None
    assert split.train.user_counts().tolist() == [7, 14, 2, 1]
    assert split.validation.user_counts().tolist() == [1, 2, 1, 0]
    assert split.test.user_counts().tolist() == [2, 4, 1, 0]


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=8),
    st.sampled_from([0.1, 0.2, 0.5]),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.sampled_from(["user", "all"]),
)
def test_parts_are_a_partition_and_the_test_part_depends_only_on_the_seed(
    lengths: list[int], test: float, validation: float, per: str
) -> None:
    dataset = make_histories(*lengths)
    settings = {"test": test, "per": per}
    try:
        split = split_dataset(RandomHoldout(validation=validation, **settings), dataset)  # type: ignore[arg-type]
    except NothingLeft:
        return
    validation_keys = [] if split.validation is None else list_keys(split.validation)
    all_keys = sorted([*list_keys(split.train), *validation_keys, *list_keys(split.test)])
    assert all_keys == list_keys(dataset.interactions)
    unvalidated = split_dataset(RandomHoldout(**settings), dataset)  # type: ignore[arg-type]
    assert list_keys(unvalidated.test) == list_keys(split.test)
    assert list_keys(unvalidated.train) == sorted([*list_keys(split.train), *validation_keys])
    if per == "user":
        assert (split.train.user_counts() >= 1).all()


def test_the_share_of_all_rows_is_exact() -> None:
    split = split_dataset(RandomHoldout(per="all", validation=0.1), make_histories(10, 4, 2, 1, 3))
    # 20 rows: floor(0.7 * 20) = 14, floor(0.8 * 20) - 14 = 2, 4
    assert split.validation is not None
    assert split.test is not None
    assert (len(split.train), len(split.validation), len(split.test)) == (14, 2, 4)


def test_an_empty_dataset_is_refused() -> None:
    for per in ("user", "all"):
        with pytest.raises(NothingLeft, match="the dataset has no interactions"):
            split_dataset(RandomHoldout(per=per), Dataset(make_interactions([])))


def test_repeated_pairs_are_leakage() -> None:
    with pytest.raises(Leakage) as caught:
        split_dataset(RandomHoldout(), Dataset(make_interactions([(0, 0)] * 5)))
    assert caught.value.remedy.startswith("write filters: [deduplicate] under dataset")
