"""The stages that all models of a data context share: dataset, labels, split and queries."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.queries.queries import Queries
from recbias.core.seeds import make_generator
from recbias.runner.stages.returned_values import call_for, require_dataset

DEFAULT_SOURCE = "users"
"""The source of the queries of a spec without ``queries``."""


@dataclass(frozen=True)
class LoadDataset:
    """Load a dataset and apply its filters in order."""

    source: Any
    filters: tuple[Any, ...]
    data: Path
    seed: int

    def __call__(self) -> Dataset:
        """Return the filtered dataset."""
        rng = make_generator(self.seed, "dataset")
        dataset = require_dataset(self.source.load, self.data, rng)
        for position, data_filter in enumerate(self.filters):
            rng = make_generator(self.seed, "filter", position)
            dataset = call_for(Dataset, data_filter.apply, dataset, rng)
        return dataset


@dataclass(frozen=True)
class SplitDataset:
    """Make one fold; without a splitter all interactions are training interactions."""

    splitter: Any
    fold: int
    seed: int

    def __call__(self, dataset: Dataset) -> Split:
        """Return the split."""
        if self.splitter is None:
            return Split(dataset.interactions, None)
        rng = make_generator(self.seed, "split", self.fold)
        return call_for(Split, self.splitter.split, dataset, self.fold, rng)


@dataclass(frozen=True)
class SelectQueries:
    """Select the queries, the first ``limit`` of each fold.

    Args:
        lists_needed: Whether a model recommends lists: given embeddings and scores need no query.
        folds: The number of samples that the source returns one after another.
        name: The name of the source.
    """

    source: Any
    seed: int
    limit: int | None
    lists_needed: bool = True
    folds: int = 1
    name: str = DEFAULT_SOURCE

    def __call__(self, dataset: Dataset, split: Split) -> Queries:
        """Return the queries."""
        aligned = align_dataset(dataset, split)
        if not self.lists_needed and not len(aligned.user_ids) and self._has_default_source:
            ids = Vocabulary.of([])
            labels = Attributes(ids, pd.DataFrame(), "query")
            return Queries(ids, labels, np.empty(0, dtype=np.int32))
        queries = call_for(Queries, self.source.ask, aligned, make_generator(self.seed, "queries"))
        if self.limit is None:
            return queries
        parts = np.array_split(np.arange(len(queries)), self.folds)
        return queries.take(np.concatenate([part[: self.limit] for part in parts]))

    @property
    def _has_default_source(self) -> bool:
        """Whether the source is every user, the default of a spec without ``queries``."""
        if not is_dataclass(self.source) or self.name != DEFAULT_SOURCE:
            return False
        settings = vars(self.source)
        return all(settings[field.name] == field.default for field in fields(self.source))


@dataclass(frozen=True)
class TakeQueries:
    """Take the queries of one fold from those of all folds, which have the same number each."""

    fold: int
    folds: int

    def __call__(self, queries: Queries) -> Queries:
        """Return the queries of the fold."""
        return queries.take(np.array_split(np.arange(len(queries)), self.folds)[self.fold])


def align_dataset(dataset: Dataset, split: Split) -> Dataset:
    """Return the dataset with the training interactions and the vocabularies of the split."""
    train = split.train
    if (train.user_ids.digest, train.item_ids.digest) == (
        dataset.user_ids.digest,
        dataset.item_ids.digest,
    ):
        return replace(dataset, interactions=train)
    users = dataset.users.align(train.user_ids) if dataset.users else None
    items = dataset.items.align(train.item_ids) if dataset.items else None
    reviews = dataset.reviews or None
    if reviews is not None:
        user_codes = train.user_ids.find(dataset.user_ids.ids)[reviews.users]
        item_codes = train.item_ids.find(dataset.item_ids.ids)[reviews.items]
        reviews = Reviews(user_codes, item_codes, reviews.texts)
    return replace(dataset, interactions=train, users=users, items=items, reviews=reviews)


def make_training_data(dataset: Dataset, split: Split, label: str = "") -> TrainingData:
    """Return the data that a model is fitted on."""
    aligned = align_dataset(dataset, split)
    return split.training_data(
        users=aligned.users,
        items=aligned.items,
        reviews=aligned.reviews,
        dataset=label,
        sentences=aligned.sentences,
    )
