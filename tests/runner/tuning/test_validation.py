from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from recbias.config.specs import PluginSpec
from recbias.core.dataset import Attributes, Dataset, Reviews, Split, TrainingData
from recbias.core.errors import MissingEvidence, UserError
from recbias.metrics.accuracy import NDCG
from recbias.metrics.labels import HitBad
from recbias.models.baselines import MostPop
from recbias.runner.stages import AnswerQueries, ItemLabels
from recbias.runner.tuning import ValidationScorer
from support.models.searches import make_metric_spec
from support.worlds.small_worlds import make_interactions


def test_a_model_is_scored_for_the_users_with_validation_rows() -> None:
    # u0 has item 0, u1 item 1; their validation items are 2 and 3
    train = make_interactions([(0, 0), (1, 1), (2, 2), (2, 3), (3, 2)], n_users=4, n_items=4)
    validation = make_interactions([(0, 2), (1, 3)], n_users=4, n_items=4)
    scorer = ValidationScorer(TrainingData(train, validation), make_metric_spec(NDCG(k=2)))

    @dataclass(frozen=True)
    class Fixed:
        provides: ClassVar[frozenset[str]] = frozenset({"lists"})

        def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
            assert data.validation is validation
            return self

        def recommend(self, queries: Any, k: int, data: TrainingData) -> Any:
            from recbias.core.evidence import RankedLists

            assert queries.ids.ids.tolist() == ["u0", "u1"]
            items = np.array([[2, 3]] * 2, dtype=np.int32)
            return RankedLists(items, np.array([[2, 1]] * 2, dtype=np.float32))

    # u0: 1 / log2(2) = 1; u1: 1 / log2(3) = 0.6309
    value = scorer.score(AnswerQueries(Fixed(), "Fixed", 2, 1, 1))
    assert value == pytest.approx((1 + 1 / math.log2(3)) / 2)


@pytest.mark.parametrize("validation", [None, []])
def test_a_search_without_validation_rows_is_refused(validation: Any) -> None:
    train = make_interactions([(0, 0)], n_users=1, n_items=2)
    validation_rows = None if validation is None else make_interactions([], n_users=1, n_items=2)
    with pytest.raises(MissingEvidence, match="no user has validation rows"):
        ValidationScorer(TrainingData(train, validation_rows), make_metric_spec()).check()


def make_labelled_search() -> tuple[TrainingData, PluginSpec]:
    """Return data of two users, and a metric of an item label that the items table lacks."""
    train = make_interactions(
        [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 3)], n_users=2, n_items=5
    )
    validation = make_interactions([(0, 4), (1, 4)], n_users=2, n_items=5)
    items = Attributes(train.item_ids, pd.DataFrame({"genre": list("abcde")}))
    metric = PluginSpec("metrics", "HIT_BAD", "HIT_BAD", HitBad(label="ngim.gender", k=2), {}, ())
    return TrainingData(train, validation, items=items), metric


def test_a_metric_may_read_labels_that_the_model_does_not_see() -> None:
    data, metric = make_labelled_search()
    labels = pd.DataFrame({"ngim.gender": [0.0, 0.0, 0.0, 1.0, 0.0]})

    @dataclass(frozen=True)
    class Popular(MostPop):
        def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
            assert data.items is not None
            assert data.items.names == ["genre"]
            return super().fit(data, rng)

    scorer = ValidationScorer(data, metric, (ItemLabels(labels),))
    scorer.check()
    # i4 has no training row; the only candidates are i3 (labelled) for u0 and i2 for u1
    assert scorer.score(AnswerQueries(Popular(), "Popular", 2, 1, 1)) == 0.5


def test_a_metric_without_its_labels_is_refused_before_any_training() -> None:
    with pytest.raises(UserError, match=r"ngim\.gender"):
        ValidationScorer(*make_labelled_search()).check()


def test_a_model_receives_training_and_validation_reviews() -> None:
    train, validation = (
        make_interactions([(0, 0), (1, 1)], n_items=3),
        make_interactions([(0, 2)], n_users=2),
    )
    dataset = Dataset(
        train,
        reviews=Reviews(
            np.array([0, 0, 1], dtype=np.int32),
            np.array([2, 0, 1], dtype=np.int32),
            np.array(["held out", "good", "bad"], dtype=object),
        ),
    )

    @dataclass(frozen=True)
    class Reader(MostPop):
        def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
            assert data.reviews is not None
            assert data.validation_reviews is not None
            assert data.reviews.texts.tolist() == ["good", "bad"]
            assert data.validation_reviews.texts.tolist() == ["held out"]
            return super().fit(data, rng)

    split = Split(train, None, validation)
    scorer = ValidationScorer(split.training_data(reviews=dataset.reviews), make_metric_spec())
    # i2 has no training row, so it is no candidate
    assert scorer.score(AnswerQueries(Reader(), "Reader", 2, 1, 1)) == 0.0
