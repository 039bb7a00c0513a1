from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import AnyArray, Split, TrainingData
from recbias.models.lenskit import (
    LensKitBiasedMF,
    LensKitBiasedSVD,
    LensKitFunkSVD,
    LensKitImplicitMF,
    seed_global_numpy,
    to_lenskit_dataset,
    train_scorer,
)
from recbias.testing import make_checkerboard
from support.models import recommending
from support.worlds.small_worlds import make_interactions


def fit_model(model: Any, seed: int = 0) -> Any:
    return model.fit(make_checkerboard(), np.random.default_rng(seed))


def score_by_library(scorer: Any, data: TrainingData, user: int) -> AnyArray:
    from lenskit.data import ItemList, RecQuery

    dataset = to_lenskit_dataset(data.train)
    items = ItemList(item_nums=np.arange(data.train.n_items), vocabulary=dataset.items)
    scores: AnyArray = scorer(RecQuery(user_id=user), items).scores()
    return scores


def test_implicit_mf_of_one_pair_equals_the_closed_form() -> None:
    # p = q c / (c q² + reg), c = 1 + weight, and the same for q: p = q, p q = 1 - reg / c
    data = TrainingData(make_interactions([(0, 0)]))
    model = LensKitImplicitMF(embedding_size=1, weight=3.0, reg=1.0, epochs=30)
    factors = model.fit(data, np.random.default_rng(0))
    assert factors.scores(np.array([0], dtype=np.int32))[0, 0] == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize(
    ("model", "library"),
    [
        (LensKitImplicitMF(embedding_size=4), "als:ImplicitMFScorer"),
        (LensKitBiasedMF(embedding_size=4), "als:BiasedMFScorer"),
        (LensKitFunkSVD(embedding_size=4, epochs=10), "funksvd:FunkSVDScorer"),
    ],
)
def test_scores_equal_those_of_the_library_up_to_a_constant_per_user(
    model: Any, library: str
) -> None:
    import importlib

    module, _, name = library.partition(":")
    scorer = getattr(importlib.import_module(f"lenskit.{module}"), name)(
        embedding_size=4, epochs=model.epochs
    )
    data = make_checkerboard()
    train_scorer(scorer, data, np.random.default_rng(0))
    ours = fit_model(model).scores(np.arange(5, dtype=np.int32))
    for user in range(5):
        gap = ours[user, :-1] - score_by_library(scorer, data, user)[:-1]
        assert np.ptp(gap) < 1e-5


def test_use_ratings_weights_pairs_by_rating() -> None:
    plain = fit_model(LensKitImplicitMF(epochs=2))
    weighted = fit_model(LensKitImplicitMF(epochs=2, use_ratings=True))
    assert not np.allclose(plain.item_factors, weighted.item_factors)


@pytest.mark.slow
@pytest.mark.real_data
def test_quality_on_movielens(movielens: Split) -> None:
    # the library itself on another split: 0.303
    data = movielens.training_data()
    model = LensKitImplicitMF(embedding_size=64, weight=1.0, reg=10.0, epochs=15)
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert 0.295 < recommending.compute_mean_ndcg(lists, movielens) < 0.305


def test_biased_svd_scores_equal_those_of_the_library_up_to_a_constant_per_user() -> None:
    from lenskit.data import ItemList, RecQuery
    from lenskit.sklearn.svd import BiasedSVDScorer

    data, rng = make_checkerboard(), np.random.default_rng(0)
    scorer = BiasedSVDScorer(embedding_size=4)
    with seed_global_numpy(rng):
        train_scorer(scorer, data, rng)
    model = LensKitBiasedSVD(embedding_size=4)
    ours = model.fit(data, np.random.default_rng(0)).scores(np.array([4], dtype=np.int32))[0]
    items = ItemList(
        item_nums=np.arange(data.train.n_items), vocabulary=to_lenskit_dataset(data.train).items
    )
    gap = ours - scorer(RecQuery(user_id=4), items).scores()
    assert np.ptp(gap) < 1e-5
