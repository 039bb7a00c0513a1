from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.dataset import Dataset, Reviews, Split, TrainingData
from recbias.models.baselines import MostPop
from recbias.runner.stages import AnswerQueries
from recbias.runner.tuning import ValidationScorer
from support.models.searches import make_metric_spec
from support.worlds.small_worlds import make_interactions


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
