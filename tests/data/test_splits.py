"""Splits: which rows are in which part, and files as parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset, Interactions, Split, Vocabulary, encode_pairs
from recbias.core.errors import (
    Contradiction,
    Leakage,
    NothingLeft,
    UnknownColumn,
    UnknownIdentifier,
    WrongType,
)
from recbias.data.filters_queries import KCore, Threshold
from recbias.data.splits import (
    ColdStart,
    LeaveOneOut,
    RandomHoldout,
    Temporal,
    Windows,
    count_training_rows,
    shuffle_within_users,
)
from recbias.data.tables import GivenSplit
from recbias.runner.stages import SplitDataset
from support.worlds.small_worlds import make_interactions


def make_histories(*lengths: int) -> Dataset:
    """Make users with the given numbers of items."""
    pairs = [(user, item) for user, length in enumerate(lengths) for item in range(length)]
    return Dataset(make_interactions(pairs, n_users=len(lengths), n_items=max(lengths)))


def list_keys(part: Interactions | None) -> list[int]:
    assert part is not None
    return sorted(encode_pairs(part).tolist())


def divide(splitter: Any, dataset: Dataset | None = None) -> Split:
    world = dataset or Dataset(make_interactions([], n_users=2, n_items=3))
    split: Split = splitter.split(world, 0, np.random.default_rng(7))
    return split


def test_the_training_rows_of_each_user_are_rounded_down() -> None:
    # floor(0.8 n) training rows of n = 10, 4, 2, 1: 8, 3, 1 and, at least one, 1
    split = divide(RandomHoldout(), make_histories(10, 4, 2, 1))
    assert split.train.user_counts().tolist() == [8, 3, 1, 1]
    assert split.test.user_counts().tolist() == [2, 1, 1, 0]
    assert split.validation is None
    assert split.test.n_users == 4


def test_validation_is_a_share_of_all_interactions() -> None:
    # n = 10: floor(0.7 * 10) = 7 train, 8 - 7 = 1 validation, 2 test
    # n = 20: 14, 16 - 14 = 2, 4;   n = 4: floor(2.8) = 2, 3 - 2 = 1, 1;   n = 1: 1, 0, 0
    split = divide(RandomHoldout(validation=0.1), make_histories(10, 20, 4, 1))
    assert split.train.user_counts().tolist() == [7, 14, 2, 1]
    assert split.validation.user_counts().tolist() == [1, 2, 1, 0]
    assert RandomHoldout(validation=0.1).gives() == {"test", "validation"}
    assert RandomHoldout().gives() == {"test"}
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
    settings: dict[str, Any] = {"test": test, "per": per}
    try:
        split = divide(RandomHoldout(validation=validation, **settings), dataset)
    except NothingLeft:
        return
    validation_keys = [] if split.validation is None else list_keys(split.validation)
    all_keys = sorted([*list_keys(split.train), *validation_keys, *list_keys(split.test)])
    assert all_keys == list_keys(dataset.interactions)
    unvalidated = divide(RandomHoldout(**settings), dataset)
    assert list_keys(unvalidated.test) == list_keys(split.test)
    assert list_keys(unvalidated.train) == sorted([*list_keys(split.train), *validation_keys])
    if per == "user":
        assert (split.train.user_counts() >= 1).all()


def test_an_empty_dataset_is_refused() -> None:
    for per in ("user", "all"):
        with pytest.raises(NothingLeft, match="the dataset has no interactions"):
            divide(RandomHoldout(per=per), Dataset(make_interactions([])))


def test_repeated_pairs_are_leakage() -> None:
    with pytest.raises(Leakage) as caught:
        divide(RandomHoldout(), Dataset(make_interactions([(0, 0)] * 5)))
    assert caught.value.remedy.startswith("write filters: [deduplicate] under dataset")


PAIRS = [(user, item) for user in range(2) for item in range(5)]


def make_dataset(times: list[int]) -> Dataset:
    return Dataset(make_interactions(PAIRS[: len(times)], n_users=2, n_items=5, times=times))


def list_times(split: Split) -> tuple[list[int], list[int], list[int]]:
    parts = (split.train, split.validation, split.test)
    return tuple([] if part is None else sorted(part.times.tolist()) for part in parts)  # type: ignore[return-value]


def test_a_global_cut_tests_on_the_latest_fifth() -> None:
    split = divide(Temporal(), make_dataset([5, 1, 9, 3, 7, 2, 8, 4, 10, 6]))
    assert list_times(split) == ([1, 2, 3, 4, 5, 6, 7, 8], [], [9, 10])


def test_validation_rows_are_the_latest_before_the_test() -> None:
    split = divide(Temporal(validation=0.3), make_dataset([5, 1, 9, 3, 7, 2, 8, 4, 10, 6]))
    assert list_times(split) == ([1, 2, 3, 4, 5], [6, 7, 8], [9, 10])


@pytest.mark.parametrize("at", [86_400, "1970-01-02", "1970-01-02T01:00+01:00"])
def test_the_cut_may_be_a_time_or_a_date(at: int | str) -> None:
    split = divide(Temporal(at=at), make_dataset([0, 86_399, 86_400, 90_000]))
    assert list_times(split) == ([0, 86_399], [], [86_400, 90_000])
    # a quarter of 4 rows is 1
    split = divide(Temporal(at=at, validation=0.25), make_dataset([0, 86_399, 86_400, 90_000]))
    assert list_times(split) == ([0], [86_399], [86_400, 90_000])


def test_the_latest_rows_of_each_user_are_tested() -> None:
    # user 0 has times 5 1 9 3 7: floor(0.8 * 5) = 4 are for training, not 9;
    # user 1 has 12 18 14 11 16
    split = divide(Temporal(per="user"), make_dataset([5, 1, 9, 3, 7, 12, 18, 14, 11, 16]))
    assert list_times(split) == ([1, 3, 5, 7, 11, 12, 14, 16], [], [9, 18])
    # with 0.2 for validation floor(0.6 * 5) = 3 are for training
    validated = divide(
        Temporal(per="user", validation=0.2), make_dataset([5, 1, 9, 3, 7, 12, 18, 14, 11, 16])
    )
    assert list_times(validated) == ([1, 3, 5, 11, 12, 14], [7, 16], [9, 18])


@given(st.lists(st.integers(0, 20), min_size=2, max_size=10), st.sampled_from([0.0, 0.1, 0.3]))
def test_nothing_in_training_is_later_than_the_test(times: list[int], validation: float) -> None:
    try:
        train, validation_times, test = list_times(
            divide(Temporal(validation=validation), make_dataset(times))
        )
    except NothingLeft:
        return
    assert sorted(train + validation_times + test) == sorted(times)
    assert max(train) < min(validation_times or test)
    assert max(train + validation_times) < min(test)
    assert list_times(divide(Temporal(), make_dataset(times)))[2] == test


@pytest.mark.parametrize("per", ["user", "global"])
def test_a_dataset_without_times_is_refused(per: str) -> None:
    with pytest.raises(UnknownColumn, match="needs times") as caught:
        divide(Temporal(per=per), Dataset(make_interactions([(0, 0), (0, 1)])))  # type: ignore[arg-type]
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


DAY = 86_400
FIRST = 1_000 * DAY


def make_dataset_windows(n: int = 40, *, times: bool = True) -> Dataset:
    """Return ``n`` rows of distinct pairs: row i is of user i % 5, item i % 8, on day i // 4."""
    rows = make_interactions([(i % 5, i % 8) for i in range(n)], n_users=5, n_items=8)
    stamps = FIRST + np.arange(n) // 4 * DAY + np.arange(n) % 4 * 3_600
    return Dataset(
        type(rows)(
            rows.users,
            rows.items,
            np.arange(n, dtype=np.float32) % 5 + 1,
            stamps if times else None,
            rows.user_ids,
            rows.item_ids,
        )
    )


def list_days(split: Split) -> list[list[int]]:
    parts = [split.train, split.validation, split.test]
    return [
        sorted({int((time - FIRST) // DAY) for time in rows.times})
        for rows in parts
        if rows is not None and rows.times is not None
    ]


@pytest.mark.parametrize(
    ("settings", "folds"),
    [
        ({"days": 2, "windows": 2}, [[[*range(6)], [6, 7]], [[*range(8)], [8, 9]]]),
        (
            {"at": (FIRST + 4 * DAY, FIRST + 7 * DAY)},
            [[[0, 1, 2, 3], [4, 5, 6]], [[*range(7)], [7, 8, 9]]],
        ),
        (
            {"at": ("1972-10-03", FIRST + 8 * DAY), "end": FIRST + 9 * DAY, "train_days": 3},
            [[[3, 4, 5], [6, 7]], [[5, 6, 7], [8]]],
        ),
        ({"days": 1, "windows": 1, "validation": 0.25}, [[[*range(7)], [6, 7, 8], [9]]]),
    ],
)
def test_nothing_of_a_window_or_later_is_in_training(
    settings: dict[str, Any], folds: list[list[list[int]]], rng: np.random.Generator
) -> None:
    source = Windows(**settings)
    assert source.folds == len(folds)
    splits = [source.split(make_dataset_windows(), fold, rng) for fold in range(source.folds)]
    assert [list_days(split) for split in splits] == folds


def test_windows_that_cannot_be_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(Contradiction, match="not in the order of time"):
        Windows(at=("2000-02-01", "2000-01-01"))
    with pytest.raises(UnknownColumn, match="needs times"):
        Windows().split(make_dataset_windows(times=False), 0, rng)
    with pytest.raises(NothingLeft, match=r"window 1 .* leaves the test part empty"):
        Windows(at=(FIRST + 100 * DAY,), end=FIRST + 101 * DAY).split(
            make_dataset_windows(), 0, rng
        )
    with pytest.raises(NothingLeft, match="window 1 has no interactions"):
        Windows(at=(FIRST - 2 * DAY,), end=FIRST - DAY).split(make_dataset_windows(), 0, rng)


def test_windows_are_the_global_splits_of_lenskit(rng: np.random.Generator) -> None:
    data = pytest.importorskip("lenskit.data")
    splitting = pytest.importorskip("lenskit.splitting")
    rows = make_dataset_windows().interactions
    frame = pd.DataFrame({"user_id": rows.users, "item_id": rows.items, "timestamp": rows.times})
    cuts = [FIRST + 4 * DAY, FIRST + 7 * DAY]
    moments = [pd.Timestamp(cut, unit="s").to_pydatetime() for cut in cuts]
    theirs = splitting.split_global_time(data.from_interactions_df(frame), moments)
    for fold, other in enumerate(theirs):
        ours = Windows(at=tuple(cuts)).split(make_dataset_windows(), fold, rng)
        test = zip(ours.test.users.tolist(), ours.test.items.tolist(), strict=True)
        items = [(key.user_id, item) for key, part in other.test for item in part.ids().tolist()]
        assert sorted(test) == sorted(items)
        assert len(ours.train) == other.train.interaction_count


@pytest.mark.parametrize(("of", "sizes"), [("items", (5, 1, 2)), ("users", (3, 1, 1))])
def test_cold_items_and_users_have_no_training_rows(
    of: Any, sizes: tuple[int, ...], rng: np.random.Generator
) -> None:
    split = ColdStart(of=of, test=0.25, validation=0.2).split(make_dataset_windows(), 0, rng)
    assert split.validation is not None
    assert split.test is not None
    parts = (split.train, split.validation, split.test)
    codes = [set((rows.items if of == "items" else rows.users).tolist()) for rows in parts]
    assert tuple(map(len, codes)) == sizes
    assert not codes[0] & codes[1] | codes[0] & codes[2] | codes[1] & codes[2]
    assert sum(map(len, parts)) == 40


@pytest.mark.parametrize(
    ("train", "test", "warning"),
    [
        ([(0, 0), (1, 1)], [(0, 2), (1, 3)], "no test item has a training interaction"),
        ([(0, 0), (1, 1), (2, 2)], [(0, 1), (0, 2), (1, 0), (1, 2)], "of 2 of 2 users all unseen"),
        ([(0, 0), (1, 1), (2, 2)], [(0, 1), (1, 0), (1, 2)], None),
    ],
)
def test_a_test_part_on_which_all_models_are_equal_is_warned_about(
    train: list[tuple[int, int]], test: list[tuple[int, int]], warning: str | None
) -> None:
    class Splitter:
        def split(self, *_: Any) -> Split:
            is_test = np.arange(len(rows)) >= len(train)
            return Split(rows.take(~is_test), rows.take(is_test))

    rows = make_interactions(train + test)
    with collect_warnings() as notes:
        SplitDataset(Splitter(), 0, 1)(Dataset(rows))
    assert [note[: len(warning or "")] for note in notes] == [warning] * (warning is not None)


@pytest.mark.filterwarnings("ignore:of 5 of 5 users")
def test_a_filter_of_the_training_part_leaves_the_test_part(rng: np.random.Generator) -> None:
    dataset, splitter = make_dataset_windows(), RandomHoldout(test=0.25)
    whole = SplitDataset(splitter, 0, 1)(dataset)
    filters = (Threshold(at_least=3, part="train"), KCore(k=2, part="train"))
    split = SplitDataset(splitter, 0, 1, filters)(dataset)
    assert split.test.items.tolist() == whole.test.items.tolist()
    assert 0 < len(split.train) < len(whole.train)
    assert set(split.train.values.tolist()) == {1.0}
    assert min(count for count in split.train.item_counts() if count) >= 2
    assert split.train.n_items == split.test.n_items == 8
    pairs = set(zip(whole.train.users.tolist(), whole.train.items.tolist(), strict=True))
    assert set(zip(split.train.users.tolist(), split.train.items.tolist(), strict=True)) <= pairs


@pytest.mark.filterwarnings("ignore:of 5 of 5 users")
def test_a_filter_of_all_rows_is_not_applied_again(rng: np.random.Generator) -> None:
    filters = (Threshold(at_least=3), Threshold(at_least=1, part="train"))
    split = SplitDataset(RandomHoldout(test=0.25), 0, 1, filters)(make_dataset_windows())
    assert len(split.train) == 30


def list_items(part: Interactions | None) -> list[list[int]]:
    return [part.items[part.users == user].tolist() for user in range(part.n_users)]


def test_the_last_row_by_time_is_held_out_with_ties_by_row_order() -> None:
    # user 0: items 0 1 2 at times 5 9 7 -> 1; user 1: items 3 4 5 at 2 8 8 -> 5, the later row;
    # user 2 has one row, which is a training row
    pairs = [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5), (2, 0)]
    world = Dataset(make_interactions(pairs, times=[5, 9, 7, 2, 8, 8, 1]))
    split = LeaveOneOut().split(world, 0, np.random.default_rng(0))
    assert list_items(split.test) == [[1], [5], []]
    assert list_items(split.train) == [[0, 2], [3, 4], [0]]
    validated = LeaveOneOut(validation=1).split(world, 0, np.random.default_rng(0))
    assert list_items(validated.test) == list_items(split.test)
    assert list_items(validated.validation) == [[2], [4], []]
    assert list_items(validated.train) == [[0], [3], [0]]


def test_rows_are_held_out_but_at_least_one_is_for_training() -> None:
    # n = 2 of users with 4, 2 and 1 rows: 2, 1 and 0 are tested
    pairs = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 0)]
    world = Dataset(make_interactions(pairs, times=list(range(7))))
    split = LeaveOneOut(n=2, validation=3).split(world, 0, np.random.default_rng(0))
    assert list_items(split.test) == [[2, 3], [1], []]
    assert list_items(split.validation) == [[1], [], []]
    assert list_items(split.train) == [[0], [0], [0]]


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(0, 99),
)
def test_the_number_of_random_test_rows_is_that_of_the_formula(
    lengths: list[int], n: int, validation: int, seed: int
) -> None:
    pairs = [(user, item) for user, length in enumerate(lengths) for item in range(length)]
    world = Dataset(make_interactions(pairs))
    splitter = LeaveOneOut(which="random", n=n, validation=validation)
    try:
        split = splitter.split(world, 0, np.random.default_rng(seed))
    except NothingLeft:
        return
    counts = world.interactions.user_counts()
    assert split.test.user_counts().tolist() == np.minimum(n, counts - 1).tolist()
    assert (split.train.user_counts() >= 1).all()
    unvalidated = LeaveOneOut(which="random", n=n).split(world, 0, np.random.default_rng(seed))
    assert list_items(unvalidated.test) == list_items(split.test)


TRAIN = "user_id,item_id,rating\nu0,i1,4\nu1,i0,2\n"
TEST = "user_id,item_id\nu0,i0\n"


def write_files(folder: Path, **files: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for name, text in files.items():
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text(text, encoding="utf-8")
    return paths


def list_pairs(part: Interactions | None) -> list[tuple[str, str]]:
    users, items = part.user_ids.ids[part.users], part.item_ids.ids[part.items]
    return list(zip(users.tolist(), items.tolist(), strict=True))


def test_the_parts_are_those_of_the_files(tmp_path: Path) -> None:
    splitter = GivenSplit(**write_files(tmp_path, train=TRAIN, test=TEST))
    split = divide(splitter)
    assert list_pairs(split.train) == [("u0", "i1"), ("u1", "i0")]
    assert list_pairs(split.test) == [("u0", "i0")]
    assert split.validation is None
    assert split.train.values.tolist() == [4.0, 2.0]
    assert split.test.values.tolist() == [1.0]
    assert splitter.gives() == {"train", "test"}
    assert splitter.folds == 1


def test_columns_are_renamed_where_a_file_has_them(tmp_path: Path) -> None:
    files = write_files(tmp_path, train=TRAIN.replace("user_id", "customer"), test=TEST)
    with pytest.raises(UnknownColumn, match="no column 'user_id'") as caught:
        divide(GivenSplit(**files))
    assert "columns: {customer: user_id}" in caught.value.remedy
    split = divide(GivenSplit(**files, columns={"customer": "user_id"}))
    assert list_pairs(split.train) == [("u0", "i1"), ("u1", "i0")]
    with pytest.raises(UnknownColumn, match="no table has a column 'custmer'") as caught:
        divide(GivenSplit(**files, columns={"custmer": "user_id"}))
    assert caught.value.where == "columns"
    assert "customer" in caught.value.remedy


def test_a_validation_file_is_a_validation_part(tmp_path: Path) -> None:
    validation = "user_id,item_id\nu1,i2\n"
    splitter = GivenSplit(**write_files(tmp_path, train=TRAIN, test=TEST, validation=validation))
    assert list_pairs(divide(splitter).validation) == [("u1", "i2")]
    assert splitter.gives() == {"train", "test", "validation"}


def test_new_identifiers_are_added_in_natural_order(tmp_path: Path) -> None:
    texts = {"train": "user_id,item_id\n10,7\n9,007\n", "test": "user_id,item_id\n10,b\n"}
    ids = Vocabulary.of(["2", "7", "9"])
    world = Dataset(replace(make_interactions([]), user_ids=ids, item_ids=ids))
    with collect_warnings():  # 007 is written 7
        split = divide(GivenSplit(**write_files(tmp_path, **texts)), world)
    assert split.train.user_ids.ids.tolist() == ["2", "7", "9", "10"]
    assert split.train.item_ids.ids.tolist() == ["007", "2", "7", "9", "b"]
    assert list_pairs(split.train) == [("10", "7"), ("9", "007")]
    assert split.test.user_ids is split.train.user_ids


def test_a_pair_in_two_files_is_refused_with_its_identifiers(tmp_path: Path) -> None:
    validation = "user_id,item_id\nu0,i0\n" + "".join(f"u9,i{item}\n" for item in range(5))
    texts = {
        "train": TRAIN + "u9,i0,1\nu9,i1,1\nu9,i2,1\nu9,i3,1\n",
        "test": TEST,
        "validation": validation,
    }
    with pytest.raises(Leakage) as caught:
        divide(GivenSplit(**write_files(tmp_path, **texts)))
    assert caught.value.message == (
        "4 (user, item) pairs stand in train.csv and validation.csv: "
        "('u9', 'i0'), ('u9', 'i1'), ('u9', 'i2'), ...; "
        "1 (user, item) pairs stand in test.csv and validation.csv: ('u0', 'i0')"
    )
    assert "remove them" in caught.value.remedy


def write_judgements(folder: Path, text: str, name: str = "test.qrels") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_relevance_judgements_may_be_the_test_part(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train=TRAIN)
    qrels = write_judgements(tmp_path, "u0 0 i0 2\nu0 0 i2 1\nu1 0 i1 0\n")
    with collect_warnings():
        split = divide(GivenSplit(train=paths["train"], test=qrels))
        strict = divide(GivenSplit(train=paths["train"], test=qrels, least_grade=2))
    assert list_pairs(split.test) == [("u0", "i0"), ("u0", "i2")]
    assert list_pairs(strict.test) == [("u0", "i0")]


@pytest.mark.parametrize("name", ["test.csv", "test.tsv", "test.inter", "test.qrels"])
def test_least_grade_selects_test_rows_by_their_rating_in_every_layout(
    tmp_path: Path, name: str
) -> None:
    """``u1`` has no relevant item and is excluded; the training part keeps its rating of 1."""
    heads = {"test.csv": "user_id,item_id,rating\n"}
    heads["test.inter"] = "user_id:token\titem_id:token\trating:float\n"
    rows = [("u0", "i1", "5"), ("u0", "i2", "3.5"), ("u1", "i0", "1")]
    if name == "test.qrels":
        rows = [(user, f"0\t{item}", rating) for user, item, rating in rows]
    separator = "," if name == "test.csv" else "\t"
    text = heads.get(name, "") + "".join(f"{separator.join(row)}\n" for row in rows)
    train = write_files(tmp_path, train="user_id,item_id,rating\nu0,i0,1\nu1,i1,5\n")["train"]
    test = write_judgements(tmp_path, text, name)
    for least_grade, relevant in [(4.0, ["i1"]), (3.5, ["i1", "i2"])]:
        with collect_warnings() as warnings:
            split = divide(GivenSplit(train=train, test=test, least_grade=least_grade))
        assert list_pairs(split.test) == [("u0", item) for item in relevant]
        assert warnings[-1].startswith(f"{name}: 1 of 2 queries have no item of grade")
        assert len(split.train) == 2
    with pytest.raises(NothingLeft, match="no item of grade 6 or more"), collect_warnings():
        divide(GivenSplit(train=train, test=test, least_grade=6.0))


def test_queries_without_training_rows_have_a_warning(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train=TRAIN)
    qrels = write_judgements(tmp_path, "u0 0 i0 1\nu7 0 i0 1\nu8 0 i0 1\n")
    with collect_warnings() as warnings:
        split = divide(GivenSplit(train=paths["train"], test=qrels))
    assert warnings == ["test.qrels: 2 of 3 queries have no row in the training file: 'u7', 'u8'"]
    assert list_pairs(split.test) == [("u0", "i0"), ("u7", "i0"), ("u8", "i0")]


def test_judgements_of_only_unknown_users_are_refused(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train=TRAIN)
    qrels = write_judgements(tmp_path, "U-0 0 I-0 1\nU-1 0 I-0 1\n")
    with pytest.raises(UnknownIdentifier, match="none of the 2 users") as caught:
        divide(GivenSplit(train=paths["train"], test=qrels))
    assert caught.value.where == str(qrels)
    assert caught.value.remedy.endswith("did you mean u0?")


@pytest.mark.parametrize("train", [TRAIN, "user_id,item_id\nnobody,nothing\n"])
def test_all_users_may_be_new_if_their_items_are_known_or_one_user_stands_for_training(
    tmp_path: Path, train: str
) -> None:
    paths = write_files(tmp_path, train=train, test="user_id,item_id\nnew,i0\n")
    with collect_warnings() as warnings:
        split = divide(GivenSplit(**paths), Dataset(make_interactions([])))
    assert warnings == ["test.csv: 1 of 1 queries have no row in the training file: 'new'"]
    assert list_pairs(split.test) == [("new", "i0")]


def test_judgements_may_be_of_users_of_the_dataset_without_training_rows(tmp_path: Path) -> None:
    paths = write_files(tmp_path, train="user_id,item_id\nu0,i1\n")
    qrels = write_judgements(tmp_path, "u1 0 i0 1\n")
    with collect_warnings():
        split = divide(GivenSplit(train=paths["train"], test=qrels))
    assert list_pairs(split.test) == [("u1", "i0")]


def test_all_orders_within_a_user_are_equally_likely(rng: np.random.Generator) -> None:
    interactions = make_interactions([(0, 0), (0, 1), (0, 2)])
    orders = [tuple(shuffle_within_users(interactions, rng).tolist()) for _ in range(3000)]
    counts = [orders.count(order) for order in sorted(set(orders))]
    # 6 orders, expected 500 each: chi-square (5 d.f.) exceeds 20.5 with probability 0.001
    assert len(counts) == 6
    assert sum((count - 500) ** 2 / 500 for count in counts) < 20.5


@pytest.mark.parametrize(
    ("count", "test_share", "n_train"),
    [
        (10, 0.2, 8),
        (9, 0.2, 7),
        (4, 0.2, 3),
        (2, 0.2, 1),
        (1, 0.2, 1),
        (3, 0.99, 1),
        (20, 0.9, 2),  # in binary, (1 - 0.9) * 20 is a little less than 2
    ],
)
def test_the_training_rows_are_rounded_down_to_at_least_one(
    count: int, test_share: float, n_train: int
) -> None:
    assert count_training_rows(np.array([count]), test_share).tolist() == [n_train]


def test_a_column_that_may_hold_grades_is_warned_of(tmp_path: Path) -> None:
    test = "user_id,item_id,label\nu0,i0,1\nu1,i1,0\n"
    train = "user_id,item_id\nu0,i1\nu1,i0\n"
    with collect_warnings() as warnings:
        divide(GivenSplit(**write_files(tmp_path, train=train, test=test)))
    assert [warning for warning in warnings if "columns: {label: rating}" in warning]
