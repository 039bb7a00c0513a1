from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split, pair_keys
from recbias.core.errors import Contradiction, Leakage, NothingLeft
from recbias.data.splits.random_holdout import RandomHoldout
from support.worlds import rows


def histories(*lengths: int) -> Dataset:
    """Users with so many items each."""
    pairs = [(user, item) for user, length in enumerate(lengths) for item in range(length)]
    return Dataset(rows(pairs, n_users=len(lengths), n_items=max(lengths)))


def keys(part: Interactions | None) -> list[int]:
    assert part is not None
    return sorted(pair_keys(part).tolist())


def drawn(splitter: RandomHoldout, dataset: Dataset, seed: int = 7) -> Split:
    return splitter.split(dataset, 0, np.random.default_rng(seed))


def test_each_user_gives_up_a_fifth_rounded_in_favour_of_the_test() -> None:
    # floor(0.8 n) of n = 10, 4, 2, 1 stay: 8, 3, 1 and, at least one, 1
    split = drawn(RandomHoldout(), histories(10, 4, 2, 1))
    assert split.train.user_counts().tolist() == [8, 3, 1, 1]
    assert split.test is not None
    assert split.test.user_counts().tolist() == [2, 1, 1, 0]
    assert split.validation is None
    assert split.test.n_users == 4


def test_validation_is_a_share_of_the_whole() -> None:
    # n = 10: floor(0.7 * 10) = 7 train, 8 - 7 = 1 validation, 2 test
    # n = 20: 14, 16 - 14 = 2, 4;   n = 4: floor(2.8) = 2, 3 - 2 = 1, 1;   n = 1: 1, 0, 0
    split = drawn(RandomHoldout(validation=0.1), histories(10, 20, 4, 1))
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
def test_parts_are_a_partition_and_the_test_hangs_on_the_seed_only(
    lengths: list[int], test: float, validation: float, per: str
) -> None:
    dataset = histories(*lengths)
    settings = {"test": test, "per": per}
    try:
        split = drawn(RandomHoldout(validation=validation, **settings), dataset)  # type: ignore[arg-type]
    except NothingLeft:
        return
    tuned = [] if split.validation is None else keys(split.validation)
    together = sorted([*keys(split.train), *tuned, *keys(split.test)])
    assert together == keys(dataset.interactions)
    without = drawn(RandomHoldout(**settings), dataset)  # type: ignore[arg-type]
    assert keys(without.test) == keys(split.test)
    assert keys(without.train) == sorted([*keys(split.train), *tuned])
    if per == "user":
        assert (split.train.user_counts() >= 1).all()


def test_other_seeds_give_other_splits() -> None:
    dataset = histories(*[20] * 10)
    first, second = drawn(RandomHoldout(), dataset, 1), drawn(RandomHoldout(), dataset, 2)
    assert keys(first.test) != keys(second.test)
    assert keys(first.test) == keys(drawn(RandomHoldout(), dataset, 1).test)


def test_every_row_is_tested_as_often(rng: np.random.Generator) -> None:
    dataset = histories(5, 10)
    tested = np.zeros(20)
    for _ in range(1000):
        split = RandomHoldout().split(dataset, 0, rng)
        tested[keys(split.test)] += 1
    shares = tested[np.array(keys(dataset.interactions))] / 1000
    # a fifth of 1,000 draws: standard error sqrt(0.2 * 0.8 / 1000) = 0.0126; 4 of them for 15 rows
    np.testing.assert_allclose(shares, 0.2, atol=4 * 0.0126)


def test_over_all_rows_the_share_is_exact() -> None:
    split = drawn(RandomHoldout(per="all", validation=0.1), histories(10, 4, 2, 1, 3))
    # 20 rows: floor(0.7 * 20) = 14, floor(0.8 * 20) - 14 = 2, 4
    assert split.validation is not None
    assert split.test is not None
    assert (len(split.train), len(split.validation), len(split.test)) == (14, 2, 4)


def test_what_it_says_of_itself() -> None:
    assert RandomHoldout().gives() == {"test"}
    assert RandomHoldout(validation=0.1, folds=5).gives() == {"test", "validation"}
    assert RandomHoldout(folds=5).folds == 5


def test_shares_of_everything_are_refused() -> None:
    with pytest.raises(Contradiction):
        RandomHoldout(test=0.5, validation=0.5)


def test_users_of_one_row_leave_nothing_to_test() -> None:
    with pytest.raises(NothingLeft, match="leaves the test part empty"):
        drawn(RandomHoldout(), histories(1, 1))


def test_no_rows_leave_nothing_to_train_on() -> None:
    for per in ("user", "all"):
        with pytest.raises(NothingLeft, match="of 0 interactions leaves the train part empty"):
            drawn(RandomHoldout(per=per), Dataset(rows([])))


def test_repeated_pairs_are_leakage() -> None:
    with pytest.raises(Leakage) as caught:
        drawn(RandomHoldout(), Dataset(rows([(0, 0)] * 5)))
    assert "deduplicate" in caught.value.remedy


def test_each_item_gives_up_its_share_and_repeated_rows_stay_together() -> None:
    # item 0 has ten users, user 0 with three rows of it; item 1 has one user, who stays
    pairs = [(user, 0) for user in range(10)] + [(0, 0), (0, 0), (5, 1)]
    dataset = Dataset(rows(pairs))
    for seed in range(20):
        split = drawn(RandomHoldout(test=0.1, validation=0.1, per="item"), dataset, seed)
        assert split.validation is not None
        assert split.test is not None
        parts = (split.train, split.validation, split.test)
        users = [set(each.users[each.items == 0].tolist()) for each in parts]
        assert [len(each) for each in users] == [8, 1, 1]
        assert set.union(*users) == set(range(10))
        whole = next(each for each in parts if 0 in each.users[each.items == 0])
        assert int((whole.users[whole.items == 0] == 0).sum()) == 3
        assert (split.train.items == 1).sum() == 1


def test_the_order_of_the_rows_does_not_change_a_split_by_items() -> None:
    pairs = [(user, item) for user in range(12) for item in range(3)]
    first, second = (
        drawn(RandomHoldout(per="item"), Dataset(rows(each, n_users=12, n_items=3)))
        for each in (pairs, pairs[::-1])
    )
    assert keys(first.test) == keys(second.test)
