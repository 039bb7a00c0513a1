"""What the models of a world share: its dataset, labels, split and queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.outputs.evidence import REMEDIES
from recbias.core.queries.queries import Queries
from recbias.core.seeds import make_generator


@dataclass(frozen=True)
class LoadDataset:
    """Read a dataset and apply its filters, in order."""

    source: Any
    filters: tuple[Any, ...]
    data: Path
    seed: int

    def __call__(self) -> Dataset:
        """Return the filtered dataset."""
        dataset: Dataset = self.source.load(self.data, make_generator(self.seed, "dataset"))
        for place, each in enumerate(self.filters):
            dataset = each.apply(dataset, make_generator(self.seed, "filter", place))
        return dataset


@dataclass(frozen=True)
class DivideDataset:
    """Make one fold; without a splitter all interactions are the history."""

    splitter: Any
    fold: int
    seed: int

    def __call__(self, dataset: Dataset) -> Split:
        """Return the split."""
        if self.splitter is None:
            return Split(dataset.interactions, None)
        split: Split = self.splitter.split(
            dataset, self.fold, make_generator(self.seed, "split", self.fold)
        )
        return split


@dataclass(frozen=True)
class AskQueries:
    """Say who is asked; the first ``limit`` of them.

    Args:
        source: The query source.
        seed: The experiment's seed.
        limit: How many are asked at most.
        needed: Whether a model gives lists: vectors and scores made elsewhere need nobody.
    """

    source: Any
    seed: int
    limit: int | None
    needed: bool = True

    def __call__(self, dataset: Dataset, split: Split) -> Queries:
        """Return the queries."""
        world = over(dataset, split)
        if not self.needed and not len(world.user_ids) and self._asks_users:
            return nobody()
        queries: Queries = self.source.ask(world, make_generator(self.seed, "queries"))
        return (
            queries if self.limit is None else queries.take(np.arange(len(queries))[: self.limit])
        )

    @property
    def _asks_users(self) -> bool:
        """Whether the spec left open who is asked: every user, as it is by default."""
        if not is_dataclass(self.source):
            return False
        return all(vars(self.source)[each.name] == each.default for each in fields(self.source))


def nobody() -> Queries:
    """Return no query."""
    ids = Vocabulary.of([])
    return Queries(ids, Attributes(ids, pd.DataFrame(), "query"), np.empty(0, dtype=np.int32))


@dataclass(frozen=True)
class LabelItems:
    """Label every item of a dataset by a detector.

    Args:
        detector: The detector.
        label: What the labels are called: the columns are ``label.kind``.
        seed: The experiment's seed.
    """

    detector: Any
    label: str
    seed: int

    def __call__(self, dataset: Dataset) -> pd.DataFrame:
        """Return one row an item, one column a kind of label."""
        if dataset.items is None:
            raise MissingEvidence("there is no items table to label", remedy=REMEDIES["items"])
        found = self.detector.label(dataset.items, make_generator(self.seed, "label", self.label))
        columns = {f"{self.label}.{kind}": np.asarray(each) for kind, each in found.items()}
        for name, column in columns.items():
            if column.shape != (len(dataset.item_ids),):
                raise BrokenContract(f"{name} has shape {column.shape}, not one value an item")
            if name in dataset.items.names:
                found_ = f"the items have a column {name!r} already"
                raise BrokenContract(found_, remedy="give the labels another name")
        return pd.DataFrame(columns)


def with_labels(dataset: Dataset, labels: Sequence[pd.DataFrame]) -> Dataset:
    """Return the dataset with the columns of the detectors beside those of its items."""
    if dataset.items is None or not labels:
        return dataset
    frame = dataset.items.frame.reset_index(drop=True)
    items = replace(dataset.items, frame=pd.concat([frame, *labels], axis=1))
    return replace(dataset, items=items)


def over(dataset: Dataset, split: Split) -> Dataset:
    """Return the dataset with the training rows, its tables over the split's vocabularies."""
    train = split.train
    same = (
        train.user_ids.digest == dataset.user_ids.digest
        and train.item_ids.digest == dataset.item_ids.digest
    )
    if same:
        return replace(dataset, interactions=train)
    users = dataset.users.align(train.user_ids) if dataset.users else None
    items = dataset.items.align(train.item_ids) if dataset.items else None
    reviews = _moved(dataset, train) if dataset.reviews else None
    return replace(dataset, interactions=train, users=users, items=items, reviews=reviews)


def _moved(dataset: Dataset, train: Interactions) -> Reviews | None:
    if dataset.reviews is None:
        return None
    users = train.user_ids.find(dataset.user_ids.ids)[dataset.reviews.users]
    items = train.item_ids.find(dataset.item_ids.ids)[dataset.reviews.items]
    return Reviews(users, items, dataset.reviews.texts)


def training_data(dataset: Dataset, split: Split, label: str = "") -> TrainingData:
    """Return what a model may see."""
    world = over(dataset, split)
    return split.training_data(
        users=world.users, items=world.items, reviews=world.reviews, dataset=label
    )
