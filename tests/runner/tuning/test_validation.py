from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from recbias.config.plugin_spec import PluginSpec
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import MissingEvidence, UserError
from recbias.metrics.accuracy.ranking import NDCG
from recbias.metrics.stereotype import HitBad
from recbias.models.unpersonalised import MostPop
from recbias.runner.stages.model import AnswerQueries
from recbias.runner.tuning.validation import Judge
from support.searches import make_metric_spec
from support.worlds import make_interactions


def test_a_model_is_judged_on_the_validation_rows_of_those_who_have_some() -> None:
    # users 0 and 1 have item 0 and 1; u0's validation item is 2, which MostPop-like lists lead
    train = make_interactions([(0, 0), (1, 1), (2, 2), (2, 3), (3, 2)], n_users=4, n_items=4)
    validation = make_interactions([(0, 2), (1, 3)], n_users=4, n_items=4)
    judge = Judge(TrainingData(train, validation), make_metric_spec(NDCG(k=2)))

    @dataclass(frozen=True)
    class Fixed:
        provides: ClassVar[frozenset[str]] = frozenset({"lists"})

        def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
            assert data.validation is validation
            return self

        def recommend(self, queries: Any, k: int, data: TrainingData) -> Any:
            from recbias.core.outputs.ranked_lists import RankedLists

            assert queries.ids.ids.tolist() == ["u0", "u1"]
            items = np.array([[2, 3]] * 2, dtype=np.int32)
            return RankedLists(items, np.array([[2, 1]] * 2, dtype=np.float32))

    # u0: 1 / log2(2) = 1; u1: 1 / log2(3) = 0.6309
    found = judge.value(AnswerQueries(Fixed(), "Fixed", 2, 1, 1))
    assert found == pytest.approx((1 + 1 / math.log2(3)) / 2)


@pytest.mark.parametrize("validation", [None, []])
def test_without_validation_rows_there_is_nothing_to_judge_by(validation: Any) -> None:
    train = make_interactions([(0, 0)], n_users=1, n_items=2)
    part = None if validation is None else make_interactions([], n_users=1, n_items=2)
    with pytest.raises(MissingEvidence, match="no user has validation rows"):
        Judge(TrainingData(train, part), make_metric_spec()).check()


def labelled() -> tuple[TrainingData, PluginSpec]:
    """Two users; the metric reads an item label that the items table does not have."""
    train = make_interactions(
        [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 3)], n_users=2, n_items=5
    )
    validation = make_interactions([(0, 4), (1, 4)], n_users=2, n_items=5)
    items = Attributes(train.item_ids, pd.DataFrame({"genre": list("abcde")}))
    chosen = PluginSpec("metrics", "HIT_BAD", "HIT_BAD", HitBad(label="ngim.gender", k=2), {}, ())
    return TrainingData(train, validation, items=items), chosen


def test_a_metric_may_read_labels_that_the_model_does_not_see() -> None:
    data, chosen = labelled()
    labels = pd.DataFrame({"ngim.gender": [0.0, 0.0, 0.0, 1.0, 0.0]})

    @dataclass(frozen=True)
    class Popular(MostPop):
        def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
            assert data.items is not None
            assert data.items.names == ["genre"]
            return super().fit(data, rng)

    judge = Judge(data, chosen, (labels,))
    judge.check()
    # i4 has no training row and is no candidate; u0 is left i3, which is labelled, and u1 i2
    assert judge.value(AnswerQueries(Popular(), "Popular", 2, 1, 1)) == 0.5


def test_without_the_labels_the_metric_is_refused_before_anything_is_fitted() -> None:
    with pytest.raises(UserError, match=r"ngim\.gender"):
        Judge(*labelled()).check()


def test_the_model_has_the_reviews_of_both_parts() -> None:
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
    judge = Judge(split.training_data(reviews=dataset.reviews), make_metric_spec())
    # i2 has no training row, so nobody can be recommended it
    assert judge.value(AnswerQueries(Reader(), "Reader", 2, 1, 1)) == 0.0
