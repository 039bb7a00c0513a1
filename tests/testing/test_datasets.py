from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Dataset, Reviews, Vocabulary
from recbias.core.errors import BrokenContract
from recbias.data.demo import Demo
from recbias.testing import check_dataset
from support.worlds.small_worlds import make_interactions

Change = Callable[[Dataset, np.random.Generator], Dataset]


def keep(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    return dataset


@dataclass(frozen=True, kw_only=True)
class Source:
    """Three interactions with attributes of the items, changed."""

    parts: frozenset[str] = frozenset({"train", "items"})
    change: Change = keep
    paths: tuple[str, ...] = ()

    def gives(self) -> frozenset[str]:
        return self.parts

    def files(self, data: Path) -> Sequence[Path]:
        return [data / path for path in self.paths]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        rows = make_interactions([(0, 0), (1, 1), (2, 0)])
        items = Attributes(rows.item_ids, pd.DataFrame({"price": [1.0, 2.0]}))
        return self.change(Dataset(rows, items=items), rng)


def drop_items(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    return replace(dataset, items=None)


def add_users(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    users = Attributes(dataset.user_ids, pd.DataFrame(index=range(3)), "user")
    return replace(dataset, users=users)


def shift_codes(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    rows = dataset.interactions
    return replace(dataset, interactions=replace(rows, users=rows.users + np.int32(1)))


def widen_codes(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    rows = dataset.interactions
    wide = rows.items.astype(np.int64)
    return replace(dataset, interactions=replace(rows, items=wide))  # type: ignore[arg-type]


def widen_values(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    rows = dataset.interactions
    wide = rows.values.astype(np.float64)
    return replace(dataset, interactions=replace(rows, values=wide))  # type: ignore[arg-type]


def drop_value(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    rows = dataset.interactions
    return replace(dataset, interactions=replace(rows, values=rows.values[1:].copy()))


def repeat_identifier(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    ids = Vocabulary(np.array(["a", "a", "b"], dtype=object))
    return replace(dataset, interactions=replace(dataset.interactions, user_ids=ids))


def number_identifiers(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    ids = Vocabulary(np.array([1, 2, 3], dtype=object))
    return replace(dataset, interactions=replace(dataset.interactions, user_ids=ids))


def reverse_items(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    ids = dataset.item_ids.take(np.array([1, 0]))
    return replace(dataset, items=dataset.items and dataset.items.align(ids))


def add_review_of_no_item(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    users, items = np.array([0], dtype=np.int32), np.array([2], dtype=np.int32)
    reviews = Reviews(users, items, np.array(["good"], dtype=object))
    return replace(dataset, reviews=reviews)


def add_texts_without_reviewers(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    codes = np.array([0], dtype=np.int32)
    reviews = Reviews(codes, codes, np.array(["good", "bad"], dtype=object))
    return replace(dataset, reviews=reviews)


VALUES = iter(range(10_000))


def change_values(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    rows = dataset.interactions
    values = rows.values + np.float32(next(VALUES))
    return replace(dataset, interactions=replace(rows, values=values))


def test_a_correct_dataset_passes(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").touch()
    check_dataset(Source(paths=("ratings.csv",)), data=tmp_path)


@pytest.mark.parametrize("reviews", [False, True])
def test_the_demo_dataset_passes(reviews: bool) -> None:
    check_dataset(Demo(n_users=30, n_items=20, reviews=reviews))


REVIEWED = frozenset({"train", "items", "reviews"})


@pytest.mark.parametrize(
    ("source", "violation"),
    [
        (Source(parts=frozenset({"test"})), "gives other parts than"),
        (Source(paths=("none.csv",)), r"lists the file none.csv, which does not exist"),
        (Source(change=drop_items), "gives items but does not load them"),
        (Source(change=add_users), "loads users but does not give them"),
        (Source(parts=frozenset({"items"})), "loads train but does not give them"),
        (Source(change=shift_codes), "has codes of users outside 0 to 2"),
        (Source(change=widen_codes), "has codes of items of type int64, not int32"),
        (Source(change=widen_values), "has values of type float64"),
        (Source(change=drop_value), "has interaction columns of different lengths"),
        (Source(change=repeat_identifier), "has a user identifier twice"),
        (Source(change=number_identifiers), "has a user identifier that is not text"),
        (Source(change=reverse_items), "has attributes of items that are not aligned"),
        (Source(parts=REVIEWED, change=add_review_of_no_item), "reviewed items outside 0 to 1"),
        (
            Source(parts=REVIEWED, change=add_texts_without_reviewers),
            "review columns of different",
        ),
        (Source(change=change_values), "loads other rows the second time"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_violation_is_named(source: Source, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_dataset(source)
