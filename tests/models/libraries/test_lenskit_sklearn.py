from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.stage_context import collect_warnings
from recbias.models.libraries.lenskit_adapter import as_dataset, trained
from recbias.models.libraries.lenskit_sklearn import (
    LensKitBiasedSVD,
    LensKitNMF,
    global_numpy_seed,
)
from recbias.testing import check_recommender, make_checkerboard


def test_nmf_keeps_the_contract() -> None:
    check_recommender(LensKitNMF(embedding_size=2))


@pytest.mark.parametrize("algorithm", ["randomized", "arpack"])
def test_the_model_of_ratings_keeps_the_contract(algorithm: Any) -> None:
    check_recommender(LensKitBiasedSVD(embedding_size=4, algorithm=algorithm), learns=False)


def test_nmf_has_no_negative_part() -> None:
    found = LensKitNMF(embedding_size=3).fit(make_checkerboard(), np.random.default_rng(0))
    assert found.user_factors.min() >= 0
    assert found.item_factors.min() >= 0


def test_nmf_that_does_not_converge_says_so() -> None:
    with collect_warnings() as notes:
        LensKitNMF(embedding_size=3, epochs=1).fit(make_checkerboard(), np.random.default_rng(0))
    assert any("Maximum number of iterations" in each for each in notes)


def test_scores_are_the_library_s_but_for_a_constant_a_user() -> None:
    from lenskit.data import ItemList, RecQuery
    from lenskit.sklearn.svd import BiasedSVDScorer

    data, rng = make_checkerboard(), np.random.default_rng(0)
    scorer = BiasedSVDScorer(embedding_size=4)
    with global_numpy_seed(rng):
        trained(scorer, data, rng)
    model = LensKitBiasedSVD(embedding_size=4)
    ours = model.fit(data, np.random.default_rng(0)).scores(np.array([4], dtype=np.int32))[0]
    items = ItemList(
        item_nums=np.arange(data.train.n_items), vocabulary=as_dataset(data.train).items
    )
    gap = ours - scorer(RecQuery(user_id=4), items).scores()
    assert np.ptp(gap) < 1e-5


def test_numpy_s_global_generator_goes_on_as_if_nothing_was() -> None:
    numpy_global = np.random.mtrand._rand
    before = numpy_global.get_state()
    with global_numpy_seed(np.random.default_rng(5)):
        first = numpy_global.random_sample(3)
    with global_numpy_seed(np.random.default_rng(5)):
        second = numpy_global.random_sample(3)
    after = numpy_global.get_state()
    assert first.tolist() == second.tolist()
    assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))
