"""What is done with a model: train it, ask it, measure its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split, TrainingData, select_reviews
from recbias.core.errors import BrokenContract
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Embeddings, Evidence
from recbias.core.outputs.list_checks import check_lists
from recbias.core.outputs.predictions import Predictions
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.sentences import Responses, SentenceScores
from recbias.core.protocols import OUTPUTS, FittedRecommender, Restores, State, Storable
from recbias.core.queries.queries import Queries
from recbias.core.seeds import derive_seed, make_generator
from recbias.runner.stages.shared import over, training_data, with_labels


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model gave, each None where it does not provide it."""

    lists: RankedLists | None
    embeddings: Embeddings | None
    sentence_scores: SentenceScores | None = None
    responses: Responses | None = None
    predictions: Predictions | None = None


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
        rng = make_generator(self.seed, "fit", self.name, self.fold)
        fitted = self.model.fit(training_data(dataset, split, self.dataset), rng)
        if not isinstance(fitted, Storable):
            found = f"{self.name} has restore() but what it fits has no state()"
            raise BrokenContract(found, remedy="give the fitted object a state() of arrays")
        return checked_state(fitted.state(), self.name)


def checked_state(state: Any, who: str) -> State:
    """Return what a fitted model gives to be stored.

    Raises:
        BrokenContract: It is not arrays of plain values, each under a name.
    """
    remedy = "give the fitted object a state() of arrays"
    if not isinstance(state, Mapping):
        found = f"state() of what {who} fits gives {type(state).__name__}, not named arrays"
        raise BrokenContract(found, remedy=remedy)
    for name, array in state.items():
        if not isinstance(name, str):
            found = f"state() of what {who} fits has an array under {name!r}, which is no text"
            raise BrokenContract(found, remedy=remedy)
        if np.asarray(array).dtype.hasobject:
            found = f"state() of what {who} fits has Python objects under {name!r}, no numbers"
            raise BrokenContract(found, remedy=remedy)
    return state


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
        wanted: What it is asked for, of what it provides.
    """

    model: Any
    name: str
    k: int
    seed: int
    fold: int
    dataset: str = ""
    held: Literal["test", "validation"] = "test"
    wanted: frozenset[str] = OUTPUTS

    def __call__(
        self, dataset: Dataset, split: Split, queries: Queries, state: State | None = None
    ) -> Answers:
        """Return the lists, checked, and the vectors."""
        data = training_data(dataset, split, self.dataset)
        if state is not None and isinstance(self.model, Restores):
            fitted: Any = self.model.restore(state)
        else:
            fitted = self.model.fit(data, make_generator(self.seed, "fit", self.name, self.fold))
        asked = self.wanted & self.model.provides
        return Answers(
            lists=self._lists(fitted, queries, data) if "lists" in asked else None,
            embeddings=fitted.embeddings() if "embeddings" in asked else None,
            sentence_scores=(
                fitted.sentence_scores(queries) if "sentence_scores" in asked else None
            ),
            responses=fitted.responses(queries) if "responses" in asked else None,
            predictions=self._named(fitted, self._held(dataset, split), data)
            if "predictions" in asked
            else None,
        )

    def _held(self, dataset: Dataset, split: Split) -> Reviews | None:
        rows = split.test if self.held == "test" else split.validation
        return select_reviews(over(dataset, split).reviews, rows)

    def _named(self, fitted: Any, held: Reviews | None, data: TrainingData) -> Predictions | None:
        """Return what a model says held-out reviews are about, where there are some."""
        if held is None:
            return None
        ranked = fitted.named(held.texts, data)
        if ranked.shape != (len(held), int(data.candidates.sum())):
            found = f"{self.name} names items of shape {ranked.shape} for {len(held):,} texts"
            raise BrokenContract(found, remedy="return every candidate for each text")
        return Predictions(review_ids(held, data.train), held.items, ranked)

    def _lists(
        self, fitted: FittedRecommender, queries: Queries, data: TrainingData
    ) -> RankedLists:
        lists = fitted.recommend(queries, self.k, data)
        check_lists(
            lists,
            n_queries=len(queries),
            seen=None if _keeps_seen(self.model) else histories(queries, data),
            n_items=data.train.n_items,
            model=self.name,
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
    return derive_seed(0, "bootstrap", queries.ids.digest)


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
