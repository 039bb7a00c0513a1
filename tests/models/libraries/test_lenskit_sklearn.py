from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.stage_context import collect_warnings
from recbias.models.libraries.lenskit_adapter import to_lenskit_dataset, train_scorer
from recbias.models.libraries.lenskit_sklearn import (
    LensKitBiasedSVD,
    LensKitNMF,
    seed_global_numpy,
)
from recbias.testing import check_recommender, make_checkerboard


def test_nmf_fulfils_the_recommender_contract() -> None:
    check_recommender(LensKitNMF(embedding_size=2))


@pytest.mark.parametrize("algorithm", ["randomized", "arpack"])
def test_biased_svd_fulfils_the_recommender_contract(algorithm: Any) -> None:
    check_recommender(LensKitBiasedSVD(embedding_size=4, algorithm=algorithm), learns=False)


def test_nmf_factors_are_not_negative() -> None:
    factors = LensKitNMF(embedding_size=3).fit(make_checkerboard(), np.random.default_rng(0))
    assert factors.user_factors.min() >= 0
    assert factors.item_factors.min() >= 0


def test_nmf_reports_that_it_has_not_converged() -> None:
    with collect_warnings() as messages:
        LensKitNMF(embedding_size=3, epochs=1).fit(make_checkerboard(), np.random.default_rng(0))
    assert any("Maximum number of iterations" in message for message in messages)


def test_scores_equal_those_of_the_library_up_to_a_constant_per_user() -> None:
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


def test_state_of_numpys_global_generator_is_restored() -> None:
    numpy_global = np.random.mtrand._rand
    before = numpy_global.get_state()
    with seed_global_numpy(np.random.default_rng(5)):
        first = numpy_global.random_sample(3)
    with seed_global_numpy(np.random.default_rng(5)):
        second = numpy_global.random_sample(3)
    after = numpy_global.get_state()
    assert first.tolist() == second.tolist()
    assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
