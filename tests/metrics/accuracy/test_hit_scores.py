from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from recbias.core.dataset import FloatArray
from recbias.metrics import accuracy

SCORES: dict[str, Callable[..., FloatArray]] = {
    name.removeprefix("_"): getattr(accuracy, name)
    for name in (
        *("_ndcg", "_hit_rate", "_reciprocal_rank", "average_precision", "_mean_precision"),
        *("_precision", "_recall", "_r_precision", "_f1"),
    )
}


def score_list(name: str, hits: list[int], n_relevant: int, k: int) -> float:
    scores = SCORES[name](np.array([hits], dtype=bool), np.array([n_relevant]), k)
    return float(scores[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # list: miss, hit, miss, hit; three test items; k = 4
        # DCG 1/log2(3) + 1/log2(5) = 0.630930 + 0.430677 = 1.061606
        # ideal 1 + 0.630930 + 0.5 = 2.130930
        ("ndcg", 1.061606 / 2.130930),
        ("hit_rate", 1.0),
        ("reciprocal_rank", 1 / 2),
        ("average_precision", (1 / 2 + 2 / 4) / 3),
        ("mean_precision", (0 + 1 / 2 + 1 / 3 + 2 / 4) / 4),
        ("precision", 2 / 4),
        ("recall", 2 / 3),
        ("r_precision", 1 / 3),  # one hit among the first three
        ("f1", 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)),
    ],
)
def test_score_of_a_list_with_two_hits(name: str, expected: float) -> None:
    assert score_list(name, [0, 1, 0, 1], 3, 4) == pytest.approx(expected, abs=1e-6)
