from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import TrainingData
from recbias.models.lenskit import LensKitBias, LensKitPopular
from support.worlds.small_worlds import make_interactions

# item 0 has three rows, item 1 one, item 2 two; ratings 5 4 3 | 5 | 1 1
PAIRS = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 2), (2, 2)]
RATINGS = [5.0, 4.0, 3.0, 5.0, 1.0, 1.0]


def fit_item_scores(model: Any) -> list[float]:
    data = TrainingData(make_interactions(PAIRS, n_users=4, values=RATINGS))
    scores: list[float] = model.fit(data, np.random.default_rng(0)).item_scores.tolist()
    return scores


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("count", [3, 1, 2]),
        ("rank", [3, 1, 2]),
        # cumulative counts in ascending order: 1, 1 + 2 and 1 + 2 + 3 of 6 rows
        ("quantile", [6 / 6, 1 / 6, 3 / 6]),
    ],
)
def test_popularity_scores_by_hand(score: Any, expected: list[float]) -> None:
    assert fit_item_scores(LensKitPopular(score=score)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("damping", "expected"),
    [
        # mean 19 / 6; the means of the items are 4, 5, 1
        (0.0, [4, 5, 1]),
        # 19/6 + (12 - 19/2) / 4,   19/6 + (5 - 19/6) / 2,   19/6 + (2 - 19/3) / 3
        (1.0, [19 / 6 + 2.5 / 4, 19 / 6 + 11 / 12, 19 / 6 - 13 / 9]),
    ],
)
def test_bias_scores_by_hand(damping: float, expected: list[float]) -> None:
    assert fit_item_scores(LensKitBias(damping=damping)) == pytest.approx(expected)
