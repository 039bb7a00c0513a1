"""What each kind of stage does: plain data in, plain data out, a plug-in in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.dataset import Dataset, Reviews
from recbias.core.errors import BrokenContract
from recbias.core.evidence import Embeddings, Evidence
from recbias.core.interactions import Interactions
from recbias.core.list_checks import check_lists
from recbias.core.protocols import (
    FittedRecommender,
    HasEmbeddings,
    Restores,
    State,
    Storable,
)
from recbias.core.queries import Queries
from recbias.core.ranked_lists import RankedLists
from recbias.core.scores import Measurement
from recbias.core.seeds import derived_seed, generator
from recbias.core.split import Split, TrainingData


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model gave: lists, and vectors where it has them."""

    lists: RankedLists | None
    embeddings: Embeddings | None


@dataclass(frozen=True)
class LoadDataset:
    """Read a dataset and apply its filters, in order."""

    source: Any
    filters: tuple[Any, ...]
    data: Path
    seed: int

    def __call__(self) -> Dataset:
        """Return the filtered dataset."""
        dataset: Dataset = self.source.load(self.data, generator(self.seed, "dataset"))
        for place, each in enumerate(self.filters):
            dataset = each.apply(dataset, generator(self.seed, "filter", place))
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
            dataset, self.fold, generator(self.seed, "split", self.fold)
        )
        return split


@dataclass(frozen=True)
class AskQueries:
    """Say who is asked; the first ``limit`` of them."""

    source: Any
    seed: int
    limit: int | None

    def __call__(self, dataset: Dataset, split: Split) -> Queries:
        """Return the queries."""
        queries: Queries = self.source.ask(over(dataset, split), generator(self.seed, "queries"))
        return (
            queries if self.limit is None else queries.take(np.arange(len(queries))[: self.limit])
        )


@dataclass(frozen=True)
class FitModel:
    """Train a model whose learned state is plain arrays."""

    model: Any
    name: str
    seed: int
    fold: int

    def __call__(self, dataset: Dataset, split: Split) -> State:
        """Return what it learned."""
        rng = generator(self.seed, "fit", self.name, self.fold)
        fitted = self.model.fit(training_data(dataset, split), rng)
        if not isinstance(fitted, Storable):
            found = f"{self.name} has restore() but what it fits has no state()"
            raise BrokenContract(found, remedy="give the fitted object a state() of arrays")
        return fitted.state()


@dataclass(frozen=True)
class AnswerQueries:
    """Ask a model; one that cannot be stored is trained here."""

    model: Any
    name: str
    k: int
    seed: int
    fold: int

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, state: State | None = None
    ) -> Answers:
        """Return the lists, checked, and the vectors."""
        data = training_data(dataset, split)
        if state is not None and isinstance(self.model, Restores):
            fitted = self.model.restore(state)
        else:
            fitted = self.model.fit(data, generator(self.seed, "fit", self.name, self.fold))
        lists = self._lists(fitted, queries, data) if "lists" in self.model.provides else None
        vectors = fitted.embeddings() if isinstance(fitted, HasEmbeddings) else None
        return Answers(lists, vectors)

    def _lists(
        self, fitted: FittedRecommender, queries: Queries, data: TrainingData
    ) -> RankedLists:
        lists = fitted.recommend(queries, self.k, data)
        check_lists(
            lists,
            n_queries=len(queries),
            seen=None if _keeps_seen(self.model) else histories(queries, data),
            n_items=data.train.n_items,
            who=self.name,
        )
        return lists


@dataclass(frozen=True)
class MeasureAnswers:
    """Work out one metric on one model's answers."""

    metric: Any
    name: str
    seed: int
    fold: int

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, answers: Answers
    ) -> Sequence[Measurement]:
        """Return the figures."""
        world = over(dataset, split)
        evidence = Evidence(
            queries=queries,
            item_ids=split.train.item_ids,
            lists=answers.lists,
            relevant=None if split.test is None else _rows_of(split.test.binary, queries),
            train=split.train,
            items=world.items,
            users=world.users,
            embeddings=answers.embeddings,
            candidates=split.train.item_counts() > 0 if len(split.train) else None,
            bootstrap_seed=derived_seed(0, "bootstrap", queries.ids.digest),
            metric=self.name,
        )
        return tuple(self.metric.measure(evidence))


def over(dataset: Dataset, split: Split) -> Dataset:
    """Return the dataset with the training rows, its tables over the split's vocabularies."""
    train = split.train
    same = (
        train.user_ids.digest == dataset.user_ids.digest
        and train.item_ids.digest == dataset.item_ids.digest
    )
    if same:
        return replace(dataset, interactions=train)
    users = dataset.users.aligned(train.user_ids) if dataset.users else None
    items = dataset.items.aligned(train.item_ids) if dataset.items else None
    reviews = _moved(dataset, train) if dataset.reviews else None
    return replace(dataset, interactions=train, users=users, items=items, reviews=reviews)


def _moved(dataset: Dataset, train: Interactions) -> Reviews | None:
    if dataset.reviews is None:
        return None
    users = train.user_ids.find(dataset.user_ids.ids)[dataset.reviews.users]
    items = train.item_ids.find(dataset.item_ids.ids)[dataset.reviews.items]
    return Reviews(users, items, dataset.reviews.texts)


def training_data(dataset: Dataset, split: Split) -> TrainingData:
    """Return what a model may see."""
    world = over(dataset, split)
    return split.training_data(users=world.users, items=world.items, reviews=world.reviews)


def histories(queries: Queries, data: TrainingData) -> Any:
    """Return the training items of each query, CSR (q, n_items)."""
    return _rows_of(data.train.binary, queries)


def _rows_of(matrix: Any, queries: Queries) -> Any:
    """Return the row of each query's user; an empty row where the query is not a user."""
    from scipy.sparse import csr_array, vstack

    if (queries.users >= 0).all():
        if queries.users.size == matrix.shape[0] and _in_order(queries.users):
            return matrix
        return matrix[queries.users]
    empty = csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
    return vstack([matrix, empty], format="csr")[queries.users]


def _in_order(codes: Any) -> bool:
    return bool((codes == np.arange(codes.size)).all())


def _keeps_seen(model: Any) -> bool:
    return "seen" in vars(model) and model.seen == "keep"
