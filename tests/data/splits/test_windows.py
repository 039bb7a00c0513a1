"""Windows over a timeline, cold items and users, and filters of the training part only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Dataset, Split
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn
from recbias.data.filters_queries import KCore, Threshold
from recbias.data.splits import ColdStart, RandomHoldout, Windows
from recbias.runner.stages import SplitDataset
from support.worlds.small_worlds import make_interactions

DAY = 86_400
FIRST = 1_000 * DAY


def make_dataset(n: int = 40, *, times: bool = True) -> Dataset:
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
    splits = [source.split(make_dataset(), fold, rng) for fold in range(source.folds)]
    assert [list_days(split) for split in splits] == folds


def test_windows_that_cannot_be_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(Contradiction, match="not in the order of time"):
        Windows(at=("2000-02-01", "2000-01-01"))
    with pytest.raises(UnknownColumn, match="needs times"):
        Windows().split(make_dataset(times=False), 0, rng)
    with pytest.raises(NothingLeft, match=r"window 1 .* leaves the test part empty"):
        Windows(at=(FIRST + 100 * DAY,), end=FIRST + 101 * DAY).split(make_dataset(), 0, rng)
    with pytest.raises(NothingLeft, match="window 1 has no interactions"):
        Windows(at=(FIRST - 2 * DAY,), end=FIRST - DAY).split(make_dataset(), 0, rng)


def test_windows_are_the_global_splits_of_lenskit(rng: np.random.Generator) -> None:
    data = pytest.importorskip("lenskit.data")
    splitting = pytest.importorskip("lenskit.splitting")
    rows = make_dataset().interactions
    frame = pd.DataFrame({"user_id": rows.users, "item_id": rows.items, "timestamp": rows.times})
    cuts = [FIRST + 4 * DAY, FIRST + 7 * DAY]
    moments = [pd.Timestamp(cut, unit="s").to_pydatetime() for cut in cuts]
    theirs = splitting.split_global_time(data.from_interactions_df(frame), moments)
    for fold, other in enumerate(theirs):
        ours = Windows(at=tuple(cuts)).split(make_dataset(), fold, rng)
        assert ours.test is not None
        test = zip(ours.test.users.tolist(), ours.test.items.tolist(), strict=True)
        items = [(key.user_id, item) for key, part in other.test for item in part.ids().tolist()]
        assert sorted(test) == sorted(items)
        assert len(ours.train) == other.train.interaction_count


@pytest.mark.parametrize(("of", "sizes"), [("items", (5, 1, 2)), ("users", (3, 1, 1))])
def test_cold_items_and_users_have_no_training_rows(
    of: Any, sizes: tuple[int, ...], rng: np.random.Generator
) -> None:
    split = ColdStart(of=of, test=0.25, validation=0.2).split(make_dataset(), 0, rng)
    assert split.validation is not None
    assert split.test is not None
    parts = (split.train, split.validation, split.test)
    codes = [set((rows.items if of == "items" else rows.users).tolist()) for rows in parts]
    assert tuple(map(len, codes)) == sizes
    assert not codes[0] & codes[1] | codes[0] & codes[2] | codes[1] & codes[2]
    assert sum(map(len, parts)) == 40


def test_a_filter_of_the_training_part_leaves_the_test_part(rng: np.random.Generator) -> None:
    dataset, splitter = make_dataset(), RandomHoldout(test=0.25)
    whole = SplitDataset(splitter, 0, 1)(dataset)
    filters = (Threshold(at_least=3, part="train"), KCore(k=2, part="train"))
    split = SplitDataset(splitter, 0, 1, filters)(dataset)
    assert split.test is not None
    assert whole.test is not None
    assert split.test.items.tolist() == whole.test.items.tolist()
    assert 0 < len(split.train) < len(whole.train)
    assert set(split.train.values.tolist()) == {1.0}
    assert min(count for count in split.train.item_counts() if count) >= 2
    assert split.train.n_items == split.test.n_items == 8
    pairs = set(zip(whole.train.users.tolist(), whole.train.items.tolist(), strict=True))
    assert set(zip(split.train.users.tolist(), split.train.items.tolist(), strict=True)) <= pairs


def test_a_filter_of_all_rows_is_not_applied_again(rng: np.random.Generator) -> None:
    filters = (Threshold(at_least=3), Threshold(at_least=1, part="train"))
    split = SplitDataset(RandomHoldout(test=0.25), 0, 1, filters)(make_dataset())
    assert len(split.train) == 30
