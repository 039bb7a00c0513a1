"""The stages of a model: fit it, run the queries, compute the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.odds import Odds
from recbias.core.dataset.split import Split, TrainingData, select_reviews
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import BrokenContract
from recbias.core.measurements.scores import Measurement
from recbias.core.models.learning_curves import HasLearningCurve
from recbias.core.models.selected_models import ReordersCandidates, SelectedModel
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.list_checks import check_lists
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.text_outputs import Predictions, Responses, SentenceScores
from recbias.core.protocols import (
    OUTPUTS,
    FittedRecommender,
    Restores,
    State,
)
from recbias.core.queries.queries import Queries
from recbias.core.seeds import derive_seed, make_generator
from recbias.core.stage_context import stage_context
from recbias.runner.stages.labels import ItemLabels, add_labels
from recbias.runner.stages.model_outputs import ModelOutputs, make_review_ids
from recbias.runner.stages.returned_values import (
    call_for,
    require_embeddings,
    require_measurements,
    require_outputs,
    require_state,
)
from recbias.runner.stages.shared import align_dataset, make_training_data

TEXT_OUTPUTS: Mapping[str, Any] = {"sentence_scores": SentenceScores, "responses": Responses}
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
        return require_state(fitted, self.name)


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
        return ModelOutputs(
            learning_curve=(
                fitted.learning_curve() if isinstance(fitted, HasLearningCurve) else None
            ),
            lists=lists,
            embeddings=require_embeddings(fitted, data) if "embeddings" in needed else None,
            predictions=(
                self._predict(fitted, dataset, split, data) if "predictions" in needed else None
            ),
            **texts,
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
        return Predictions(make_review_ids(reviews, data.train), reviews.items, ranked)

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
        world: The dataset plug-in, for a metric that needs the odds that it knows.
    """

    metric: Any
    name: str
    has_outputs: bool = True
    has_choice: bool = False
    world: Any = None

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, *inputs: Any
    ) -> Sequence[Measurement]:
        """Return the values.

        ``inputs`` are the outputs of the model if any, those of the model that chooses members if
        any, and the labels.
        """
        outputs = inputs[0] if self.has_outputs else ModelOutputs(None, None)
        labels = inputs[self.has_outputs + self.has_choice :]
        evidence = build_evidence(dataset, split, queries, labels)
        if self.has_choice:
            evidence = replace(evidence, choosing_embeddings=inputs[1].embeddings)
        if self.world is not None:
            odds = call_for(Odds, self.world.compute_odds, evidence.users, evidence.items)
            evidence = replace(evidence, odds=odds)
        evidence = replace(evidence, **outputs.evidence, metric=self.name)
        return require_measurements(self.metric.measure, self.metric.measure(evidence))


def build_evidence(
    dataset: Dataset, split: Split, queries: Queries, labels: Sequence[ItemLabels]
) -> Evidence:
    """Return the evidence of a metric without the outputs of a model."""
    labelled = align_dataset(add_labels(dataset, labels), split)
    return Evidence(
        queries=queries,
        item_ids=split.train.item_ids,
        relevant=None if split.test is None else _select_rows(split.test.binary, queries),
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
    return _select_rows(data.train.binary, queries)


def _select_rows(matrix: Any, queries: Queries) -> Any:
    """Return the row of each query's user; an empty row if the query is not a user."""
    from scipy.sparse import csr_array, vstack

    users = queries.users
    if (users >= 0).all():
        return matrix if np.array_equal(users, np.arange(matrix.shape[0])) else matrix[users]
    empty = csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
    return vstack([matrix, empty], format="csr")[users]
