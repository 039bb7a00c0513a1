"""What each kind of stage does: plain data in, plain data out, a plug-in in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.attributes import Attributes
from recbias.core.dataset import Dataset, Reviews
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.evidence import REMEDIES, Embeddings, Evidence
from recbias.core.interactions import Interactions
from recbias.core.list_checks import check_lists
from recbias.core.predictions import Predictions
from recbias.core.protocols import (
    FittedRecommender,
    HasEmbeddings,
    HasResponses,
    HasSentenceScores,
    NamesItems,
    Restores,
    State,
    Storable,
)
from recbias.core.queries import Queries
from recbias.core.ranked_lists import RankedLists
from recbias.core.scores import Measurement
from recbias.core.seeds import derived_seed, generator
from recbias.core.sentences import Responses, SentenceScores
from recbias.core.split import Split, TrainingData, reviews_of
from recbias.core.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model gave, each None where it does not provide it."""

    lists: RankedLists | None
    embeddings: Embeddings | None
    sentence_scores: SentenceScores | None = None
    responses: Responses | None = None
    predictions: Predictions | None = None


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
        queries: Queries = self.source.ask(world, generator(self.seed, "queries"))
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
        found = self.detector.label(dataset.items, generator(self.seed, "label", self.label))
        columns = {f"{self.label}.{kind}": np.asarray(each) for kind, each in found.items()}
        for name, column in columns.items():
            if column.shape != (len(dataset.item_ids),):
                raise BrokenContract(f"{name} has shape {column.shape}, not one value an item")
            if name in dataset.items.names:
                found_ = f"the items have a column {name!r} already"
                raise BrokenContract(found_, remedy="give the labels another name")
        return pd.DataFrame(columns)


@dataclass(frozen=True)
class FitModel:
    """Train a model whose learned state is plain arrays.

    Args:
        model: The model.
        name: Its name.
        seed: The experiment's seed.
        fold: The fold.
        dataset: The dataset's label, where the model reads files made elsewhere.
    """

    model: Any
    name: str
    seed: int
    fold: int
    dataset: str = ""

    def __call__(self, dataset: Dataset, split: Split) -> State:
        """Return what it learned."""
        rng = generator(self.seed, "fit", self.name, self.fold)
        fitted = self.model.fit(training_data(dataset, split, self.dataset), rng)
        if not isinstance(fitted, Storable):
            found = f"{self.name} has restore() but what it fits has no state()"
            raise BrokenContract(found, remedy="give the fitted object a state() of arrays")
        return fitted.state()


@dataclass(frozen=True)
class AnswerQueries:
    """Ask a model; one that cannot be stored is trained here.

    Args:
        model: The model.
        name: Its name.
        k: The length of the lists.
        seed: The experiment's seed.
        fold: The fold.
        dataset: The dataset's label, where the model reads files made elsewhere.
        held: The part whose reviews it names the items of, where it is a model that does so.
    """

    model: Any
    name: str
    k: int
    seed: int
    fold: int
    dataset: str = ""
    held: Literal["test", "validation"] = "test"

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, state: State | None = None
    ) -> Answers:
        """Return the lists, checked, and the vectors."""
        data = training_data(dataset, split, self.dataset)
        if state is not None and isinstance(self.model, Restores):
            fitted = self.model.restore(state)
        else:
            fitted = self.model.fit(data, generator(self.seed, "fit", self.name, self.fold))
        lists = self._lists(fitted, queries, data) if "lists" in self.model.provides else None
        vectors = fitted.embeddings() if isinstance(fitted, HasEmbeddings) else None
        scores = fitted.sentence_scores(queries) if isinstance(fitted, HasSentenceScores) else None
        replies = fitted.responses(queries) if isinstance(fitted, HasResponses) else None
        return Answers(lists, vectors, scores, replies, self._named(fitted, dataset, split))

    def _named(self, fitted: Any, dataset: Dataset, split: Split) -> Predictions | None:
        """Return what a model says held-out reviews are about, where it says such things."""
        rows = split.test if self.held == "test" else split.validation
        held = reviews_of(over(dataset, split).reviews, rows)
        if held is None or not isinstance(fitted, NamesItems):
            return None
        data = training_data(dataset, split, self.dataset)
        ranked = fitted.named(held.texts, data)
        if ranked.shape != (len(held), int(data.candidates.sum())):
            found = f"{self.name} names items of shape {ranked.shape} for {len(held):,} texts"
            raise BrokenContract(found, remedy="return every candidate for each text")
        return Predictions(review_ids(held, split.train), held.items, ranked)

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
    """Work out one metric on one model's answers, or on what is known without a model.

    Args:
        metric: The metric.
        name: Its name.
        has_answers: Whether a model's answers are among the inputs, behind the queries.
    """

    metric: Any
    name: str
    has_answers: bool = True

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, *others: Any
    ) -> Sequence[Measurement]:
        """Return the figures."""
        answers = others[0] if self.has_answers else Answers(None, None)
        labels = others[1:] if self.has_answers else others
        evidence = evidence_of(dataset, split, queries, labels)
        evidence = replace(
            evidence,
            lists=answers.lists,
            embeddings=answers.embeddings,
            sentence_scores=answers.sentence_scores,
            responses=answers.responses,
            predictions=answers.predictions,
            metric=self.name,
        )
        return tuple(self.metric.measure(evidence))


def evidence_of(
    dataset: Dataset, split: Split, queries: Queries, labels: Sequence[pd.DataFrame]
) -> Evidence:
    """Return everything a metric is handed but what models give."""
    world = over(with_labels(dataset, labels), split)
    return Evidence(
        queries=queries,
        item_ids=split.train.item_ids,
        relevant=None if split.test is None else _rows_of(split.test.binary, queries),
        train=split.train,
        items=world.items,
        users=world.users,
        candidates=split.train.item_counts() > 0 if len(split.train) else None,
        bootstrap_seed=bootstrap_seed(queries),
    )


def bootstrap_seed(queries: Queries) -> int:
    """Return the seed of samples and permutations: one for all that ask the same queries."""
    return derived_seed(0, "bootstrap", queries.ids.digest)


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


def training_data(dataset: Dataset, split: Split, label: str = "") -> TrainingData:
    """Return what a model may see."""
    world = over(dataset, split)
    return split.training_data(
        users=world.users, items=world.items, reviews=world.reviews, dataset=label
    )


def review_ids(reviews: Reviews, rows: Interactions) -> Ids:
    """Return an identifier for each review: its user, its item, and which one of theirs it is."""
    pairs = pd.DataFrame({"user": reviews.users, "item": reviews.items})
    again = pairs.groupby(["user", "item"]).cumcount().to_numpy()
    parts = zip(
        rows.user_ids.ids[reviews.users], rows.item_ids.ids[reviews.items], again, strict=True
    )
    return np.array([f"{user}:{item}:{n + 1}" for user, item, n in parts], dtype=object)


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
