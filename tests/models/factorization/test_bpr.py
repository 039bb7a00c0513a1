from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from recbias.core.dataset import Split, TrainingData
from recbias.models.factorization import BPRMF
from support.models import recommending
from support.worlds.small_worlds import make_interactions


def test_elliot_variant_samples_users_uniformly() -> None:
    # user 0 has one of 40 pairs: about one triple of 40 in an epoch, with the variant about 20
    data = TrainingData(
        make_interactions([(0, 0), *((1, item) for item in range(39))], n_items=41)
    )

    def move(variant: str) -> float:
        model = BPRMF(variant=variant, epochs=10, learning_rate=0.01, reg_user=0)  # type: ignore[arg-type]
        start = replace(model, epochs=1, learning_rate=1e-12)
        first, last = (part.fit(data, np.random.default_rng(3)) for part in (start, model))
        return float(np.linalg.norm((last.user_factors - first.user_factors)[0]))

    assert 10 < move("elliot") / move("paper") < 40


def test_one_step_matches_a_hand_computation() -> None:
    # one user with item 0 of two: the only triple is (0, 0, 1). With biases of 0 the first step
    # moves them by lr σ(-(s_00 - s_01)), and the vectors by as much times the other's
    data = TrainingData(make_interactions([(0, 0)], n_items=2))
    start = BPRMF(embedding_size=1, epochs=1, learning_rate=1e-12, device="cpu")
    first = start.fit(data, np.random.default_rng(3))
    p, (q0, q1) = first.user_factors[0, 0], first.item_factors[:, 0]
    model = BPRMF(embedding_size=1, epochs=1, learning_rate=0.5, reg_user=0.1, device="cpu")
    fitted = model.fit(data, np.random.default_rng(3))
    pull = 1 / (1 + math.exp(p * (q0 - q1)))
    assert fitted.item_bias is not None
    np.testing.assert_allclose(fitted.item_bias, [0.5 * pull, -0.5 * pull], rtol=1e-5)
    expected = p + 0.5 * (pull * (q0 - q1) - 0.1 * p)
    assert fitted.user_factors[0, 0] == pytest.approx(expected, rel=1e-5)
    expected = q0 + 0.5 * (pull * p - 0.01 * q0)
    assert fitted.item_factors[0, 0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.real_data
def test_ndcg_on_movielens_exceeds_a_minimum(movielens: Split) -> None:
    # a twentieth of the default epochs, which reach the published 0.2765
    data = movielens.training_data()
    fitted = BPRMF(epochs=5, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.15
