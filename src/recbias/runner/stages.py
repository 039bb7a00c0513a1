"""What the stages of a run do: load, split, label, fit, recommend, re-rank and measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from recbias.core.context import get_context, stage_context, warn
from recbias.core.dataset import (
    Attributes,
    Dataset,
    FloatArray,
    Ids,
    Interactions,
    Odds,
    Queries,
    Reviews,
    Split,
    TrainingData,
    Vocabulary,
    select_reviews,
)
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.evidence import (
    REMEDIES,
    Embeddings,
    Evidence,
    Policy,
    Predictions,
    RankedLists,
    Responses,
    SentenceScores,
    check_lists,
)
from recbias.core.files import derive_seed, make_generator
from recbias.core.measures import Measurement
from recbias.core.plugins import (
    OUTPUTS,
    AsksAboutItems,
    Candidates,
    FittedRecommender,
    ReordersCandidates,
    Restores,
    SelectedModel,
    State,
    evaluates_texts,
    label_texts,
)
from recbias.runner.boundary import (
    call_embeddings,
    call_for,
    call_label,
    call_load,
    call_measure,
    call_rerank,
    call_state,
    require_outputs,
)


@dataclass(frozen=True, eq=False)
class ItemLabels:
    """The labels of a detector.

    Args:
        frame: One row per item and one column per kind of label.
        replies: One row per reply of a language model that the labels follow from; None without.
    """

    frame: pd.DataFrame
    replies: pd.DataFrame | None = None


@dataclass(frozen=True)
class LabelItems:
    """Label every item of a dataset with a detector: the columns are ``label.kind``."""

    detector: Any
    label: str
    seed: int
    values_digest: str = ""  # of what could change the values of a text, besides the text

    def __call__(self, dataset: Dataset) -> ItemLabels:
        """Return the labels of every item, by the stored values of their texts if it can."""
        detector, open_values = self.detector, get_context().open_values
        if isinstance(detector, AsksAboutItems):
            tables: list[pd.DataFrame] = []

            @wraps(detector.label_with_replies)
            def ask(items: Attributes, _: np.random.Generator) -> Mapping[str, FloatArray]:
                columns, replies = detector.label_with_replies(items)
                tables.append(replies)
                return columns

            return ItemLabels(self._name_columns(dataset, ask), *tables)
        if not evaluates_texts(detector) or open_values is None:
            return ItemLabels(self._name_columns(dataset, self.detector.label))
        stored = open_values(self.values_digest)

        @wraps(self.detector.label)
        def label(items: Attributes, _: np.random.Generator) -> Mapping[str, FloatArray]:
            return label_texts(detector, stored, items)

        return ItemLabels(self._name_columns(dataset, label))

    def rehearse(self, dataset: Dataset) -> ItemLabels:
        """Return label 0 for every item in place of those that a language model would give.

        Raises:
            UserError: The items do not have what the detector reads.
        """

        def label(items: Attributes, _: np.random.Generator) -> Mapping[str, FloatArray]:
            self.detector.plan_label_requests(items)
            kinds = self.detector.kinds
            columns = [column for kind in kinds for column in (kind, f"{kind}_score")]
            return {column: np.zeros(len(items.ids)) for column in columns}

        return ItemLabels(self._name_columns(dataset, label))

    def _name_columns(self, dataset: Dataset, label: Callable[..., Any]) -> pd.DataFrame:
        """Return one row per item and one column per kind of label."""
        if dataset.items is None:
            raise MissingEvidence("there is no items table to label", remedy=REMEDIES["items"])
        rng = make_generator(self.seed, "label", self.label)
        labels = call_label(label, self.detector.kinds, dataset.items, rng)
        columns = {f"{self.label}.{kind}": values for kind, values in labels.items()}
        if taken := [name for name in columns if name in dataset.items.names]:
            message = f"the items table already has a column {taken[0]!r}"
            raise BrokenContract(message, remedy="give the labels another name")
        return pd.DataFrame(columns)


def add_labels(dataset: Dataset, labels: Sequence[ItemLabels]) -> Dataset:
    """Return the dataset with the labels of detectors as columns of its items."""
    if dataset.items is None or not labels:
        return dataset
    frame = dataset.items.frame.reset_index(drop=True)
    columns = [item_labels.frame for item_labels in labels]
    items = replace(dataset.items, frame=pd.concat([frame, *columns], axis=1))
    return replace(dataset, items=items)


@dataclass(frozen=True, eq=False)
class ModelOutputs:
    """The outputs of a model; None for those that it does not provide."""

    lists: RankedLists | None
    embeddings: Embeddings | None
    sentence_scores: SentenceScores | None = None
    responses: Responses | None = None
    predictions: Predictions | None = None
    learning_curve: pd.DataFrame | None = None
    policy: Policy | None = None

    @property
    def shown(self) -> Policy | None:
        """The policy if it is what was shown."""
        return self.policy if self.policy is not None and self.policy.is_shown else None

    @property
    def evidence(self) -> Mapping[str, Any]:
        """The outputs that metrics measure, by name."""
        return {name: getattr(self, name) for name in OUTPUTS}


def _make_review_ids(reviews: Reviews, rows: Interactions) -> Ids:
    """Return an identifier of each review: user, item, and its number among those of the pair."""
    pairs = pd.DataFrame({"user": reviews.users, "item": reviews.items})
    numbers = pairs.groupby(["user", "item"]).cumcount().to_numpy() + 1
    users, items = rows.user_ids.ids[reviews.users], rows.item_ids.ids[reviews.items]
    triples = zip(users, items, numbers, strict=True)
    return np.array([f"{user}:{item}:{number}" for user, item, number in triples], dtype=object)


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
        dataset = call_load(self.source.load, self.data, rng)
        return _apply_filters(dataset, self.filters, "all", self.seed)


def _apply_filters(dataset: Dataset, filters: Sequence[Any], part: str, seed: int) -> Dataset:
    """Return a dataset after those of its filters that are for a part: all rows, or training."""
    for position, data_filter in enumerate(filters):
        if getattr(data_filter, "part", "all") == part:
            rng = make_generator(seed, "filter", position)
            dataset = call_for(Dataset, data_filter.apply, dataset, rng)
    return dataset


@dataclass(frozen=True)
class SplitDataset:
    """Make one fold; without a splitter all interactions are training interactions.

    ``filters`` are those of the dataset, of which some apply to the training part only.
    """

    splitter: Any
    fold: int
    seed: int
    filters: tuple[Any, ...] = ()

    def __call__(self, dataset: Dataset) -> Split:
        """Return the split."""
        split = Split(dataset.interactions, None)
        if self.splitter is not None:
            rng = make_generator(self.seed, "split", self.fold)
            split = call_for(Split, self.splitter.split, dataset, self.fold, rng)
        if self.filters:
            train = replace(align_dataset(dataset, split), interactions=split.train)
            rows = _apply_filters(train, self.filters, "train", self.seed).interactions
            rows = rows.recode(split.train.user_ids, split.train.item_ids)
            split = replace(split, train=rows)
        if split.test is not None:
            _question_test(split.train, split.test)
        return split


def _question_test(train: Interactions, test: Interactions) -> None:
    """Warn of a test part on which all models that recommend training items score 0, or 1."""
    is_candidate = train.item_counts() > 0
    tested = test.take(is_candidate[test.items])
    n_items, is_asked = np.count_nonzero(is_candidate), tested.user_counts() > 0
    n_users = np.count_nonzero(is_asked)
    if n_items and not n_users:
        problem = "no test item has a training interaction, and such items are no candidates"
        warn(f"{problem}: only lists and vectors of other tools can score above 0")
    if 0 < n_users * n_items < 2 * (len(train) + len(tested)):
        n_had = np.diff(train.binary.indptr) + np.diff(tested.binary.indptr)
        if 2 * (n := np.count_nonzero((n_had == n_items) & is_asked)) > n_users:
            problem = f"of {n:,} of {n_users:,} users all unseen candidates are test items"
            warn(f"{problem}, so that no list is wrong: a filter such as threshold selects rows")


@dataclass(frozen=True)
class SelectQueries:
    """Select the queries, the first ``limit`` of each fold.

    Args:
        needed: Whether there must be one: given embeddings and scores need no query.
        folds: The number of samples that the source returns one after another.
    """

    source: Any
    seed: int
    limit: int | None
    needed: bool = True
    folds: int = 1

    def __call__(self, dataset: Dataset, split: Split) -> Queries:
        """Return the queries."""
        aligned = align_dataset(dataset, split)
        if not self.needed and not len(aligned.user_ids):
            ids = Vocabulary.of([])
            labels = Attributes(ids, pd.DataFrame(), "query")
            return Queries(ids, labels, np.empty(0, dtype=np.int32))
        queries = call_for(Queries, self.source.ask, aligned, make_generator(self.seed, "queries"))
        if self.limit is None:
            return queries
        parts = np.array_split(np.arange(len(queries)), self.folds)
        return queries.take(np.concatenate([part[: self.limit] for part in parts]))


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
    ids = (train.user_ids, train.item_ids), (dataset.user_ids, dataset.item_ids)
    if ids[0] == ids[1] or all(a.digest == b.digest for a, b in zip(*ids, strict=True)):
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


TEXT_OUTPUTS: Mapping[str, Any] = {
    "sentence_scores": SentenceScores,
    "responses": Responses,
    "policy": Policy,
}
"""The outputs that a fitted model returns by a method of their name, with their types."""


@dataclass(frozen=True)
class FitModel:
    """Fit a model whose learned state consists of arrays.

    Args:
        dataset: The label of the dataset, for models that read files of other tools.
    """

    model: Any
    name: str
    seed: int
    fold: int
    dataset: str = ""

    def __call__(self, dataset: Dataset, split: Split) -> State:
        """Return the learned state."""
        rng = make_generator(self.seed, "fit", self.name, self.fold)
        fitted = self.model.fit(make_training_data(dataset, split, self.dataset), rng)
        return call_state(fitted, self.name)


@dataclass(frozen=True)
class AnswerQueries:
    """Run the queries on a model; a model that cannot be stored is fitted first.

    Args:
        split_part: The part of the split whose reviews are classified, for models that predict
            the item of a review.
        outputs: The outputs to compute, if the model provides them.
    """

    model: Any
    name: str
    k: int
    seed: int
    fold: int
    dataset: str = ""
    split_part: Literal["test", "validation"] = "test"
    outputs: frozenset[str] = OUTPUTS

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, state: State | None = None
    ) -> ModelOutputs:
        """Return the validated outputs."""
        data = make_training_data(dataset, split, self.dataset)
        fitted: Any = self.fit(data, state)
        needed = self.outputs & self.model.provides
        require_outputs(self.model.fit, fitted, needed)
        lists = self._recommend(fitted, queries, data) if "lists" in needed else None
        texts = {  # after the lists, since a chat model keeps the replies that they are read from
            name: call_for(kind, getattr(fitted, name), queries)
            for name, kind in TEXT_OUTPUTS.items()
            if name in needed
        }
        embeddings = predictions = None
        if "embeddings" in needed:
            embeddings = call_embeddings(fitted, data.train.n_users, data.train.n_items)
        if "predictions" in needed:
            predictions = self._predict(fitted, dataset, split, data)
        curve = fitted.learning_curve() if hasattr(fitted, "learning_curve") else None
        return ModelOutputs(
            lists, embeddings, predictions=predictions, learning_curve=curve, **texts
        )

    def fit(self, data: TrainingData, state: State | None) -> FittedRecommender:
        """Return the fitted model, restored if its learned state is stored.

        A model that reorders the candidates of another is wrapped around the other one, fitted
        with the generator that it has by itself.
        """
        return self._fit(SelectedModel(self.name, self.model), data, state)

    def _fit(
        self, selected: SelectedModel, data: TrainingData, state: State | None
    ) -> FittedRecommender:
        model, rng = selected.model, make_generator(self.seed, "fit", selected.name, self.fold)
        if isinstance(model, ReordersCandidates):
            return model.wrap(self._fit(model.candidates, data, state), data, rng)
        if state is not None and isinstance(model, Restores):
            return model.restore(state)
        fitted: FittedRecommender = model.fit(data, rng)
        return fitted

    def _predict(
        self, fitted: Any, dataset: Dataset, split: Split, data: TrainingData
    ) -> Predictions | None:
        """Return the items predicted for the held-out reviews, if any."""
        rows = split.test if self.split_part == "test" else split.validation
        reviews = select_reviews(align_dataset(dataset, split).reviews, rows)
        if reviews is None:
            return None
        ranked = call_for(np.ndarray, fitted.named, reviews.texts, data)
        if ranked.shape != (len(reviews), int(data.candidates.sum())):
            message = f"{self.name} ranks items of shape {ranked.shape} for {len(reviews):,} texts"
            raise BrokenContract(message, remedy="return every candidate for each text")
        return Predictions(_make_review_ids(reviews, data.train), reviews.items, ranked)

    def _recommend(
        self, fitted: FittedRecommender, queries: Queries, data: TrainingData
    ) -> RankedLists:
        with stage_context(writes_lists=True):
            lists = call_for(RankedLists, fitted.recommend, queries, self.k, data)
        keeps_seen = "seen" in vars(self.model) and self.model.seen == "keep"
        check_lists(
            lists,
            n_queries=len(queries),
            seen=None if keeps_seen else select_histories(queries, data),
            n_items=data.train.n_items,
            model=self.name,
        )
        return lists


@dataclass(frozen=True)
class TakeAnswers:
    """Take the outputs for the queries of one fold from those for the queries of all folds."""

    def __call__(self, sampled: Queries, outputs: ModelOutputs, queries: Queries) -> ModelOutputs:
        """Return the outputs without the lists of, and the responses to, other queries."""
        lists, responses = outputs.lists, outputs.responses
        inside = queries.ids.find(sampled.ids.ids) >= 0
        if lists is not None:
            lists = lists.take(np.flatnonzero(inside))
        if responses is not None:
            others = set(sampled.ids.ids[~inside].tolist())
            kept = [row for row, name in enumerate(responses.ids.tolist()) if name not in others]
            responses = responses.take(np.array(kept, dtype=np.int64))
        return replace(outputs, lists=lists, responses=responses)


@dataclass(frozen=True)
class ComputeMetric:
    """Compute one metric on the outputs of one model, if it has outputs, or on the dataset.

    Args:
        world: The dataset plug-in, for a metric that needs the odds or the log that it knows.
    """

    metric: Any
    name: str
    world: Any = None

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, *inputs: Any
    ) -> Sequence[Measurement]:
        """Return the values.

        ``inputs`` are the outputs of the model if any, those of the other model that the metric
        names if any, and the labels.
        """
        labels = [each for each in inputs if isinstance(each, ItemLabels)]
        outputs, *others = inputs[: len(inputs) - len(labels)] or [ModelOutputs(None, None)]
        evidence = build_evidence(dataset, split, queries, labels)
        for other in others:
            evidence = replace(
                evidence, choosing_embeddings=other.embeddings, other_policy=other.policy
            )
        if "log" in self.metric.needs:
            evidence = replace(evidence, log=self.world.open_log(dataset))
        elif self.world is not None:
            odds = call_for(Odds, self.world.compute_odds, evidence.users, evidence.items)
            evidence = replace(evidence, odds=odds)
        evidence = replace(evidence, **outputs.evidence, metric=self.name)
        return call_measure(self.metric.measure, evidence)


def build_evidence(
    dataset: Dataset,
    split: Split,
    queries: Queries,
    labels: Sequence[ItemLabels],
    *,
    is_judged: bool = True,
) -> Evidence:
    """Return the evidence of a metric without the outputs of a model, or test items either."""
    labelled = align_dataset(add_labels(dataset, labels), split)
    test = split.test if is_judged else None
    return Evidence(
        queries=queries,
        item_ids=split.train.item_ids,
        relevant=None if test is None else select_rows(test.binary, queries),
        train=split.train,
        item_counts=split.item_counts().astype(np.float64),
        items=labelled.items,
        users=labelled.users,
        candidates=split.train.item_counts() > 0 if len(split.train) else None,
        bootstrap_seed=derive_bootstrap_seed(queries.ids),
    )


def derive_bootstrap_seed(queries: Vocabulary) -> int:
    """Return the seed of bootstrap samples and permutations, the same for the same queries."""
    return derive_seed(0, "bootstrap", queries.digest)


def select_histories(queries: Queries, data: TrainingData) -> Any:
    """Return the training items of each query, CSR (q, n_items)."""
    return select_rows(data.train.binary, queries)


def select_rows(matrix: Any, queries: Queries) -> Any:
    """Return the row of each query's user; an empty row if the query is not a user."""
    from scipy.sparse import csr_array, vstack

    users = queries.users
    if (users >= 0).all():
        return matrix if np.array_equal(users, np.arange(matrix.shape[0])) else matrix[users]
    empty = csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
    return vstack([matrix, empty], format="csr")[users]


@dataclass(frozen=True)
class RerankLists:
    """Select lists from the candidates of a model.

    Args:
        model: The re-ranker.
        k: The length of the lists.
    """

    model: Any
    k: int

    def __call__(
        self,
        dataset: Dataset,
        split: Split,
        queries: Queries,
        candidates: ModelOutputs,
        *labels: ItemLabels,
    ) -> ModelOutputs:
        """Return the lists; ``labels`` are columns of the items by detectors."""
        data = make_training_data(add_labels(dataset, labels), split)
        if candidates.lists is None:
            raise BrokenContract("the model returned no lists to re-rank")
        return ModelOutputs(self.rerank(candidates.lists, queries, data), None)

    def rerank(self, lists: RankedLists, queries: Queries, data: TrainingData) -> RankedLists:
        """Return the first k items by the re-ranker; the score at a rank is 1 / rank.

        Raises:
            BrokenContract: The positions that it returns are not those of candidates.
        """
        candidates = Candidates(lists, select_histories(queries, data), data)
        positions = call_rerank(self.model.rerank, candidates, self.k)
        filled = positions >= 0
        items = np.take_along_axis(lists.items, np.maximum(positions, 0), axis=1)
        reciprocal_ranks = 1 / np.arange(1, self.k + 1, dtype=np.float32)
        return RankedLists(
            np.where(filled, items, -1).astype(np.int32),
            np.where(filled, reciprocal_ranks, np.float32(np.nan)),
            lists.outside,
        )
