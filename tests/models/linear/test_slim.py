from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from recbias.core.context import collect_warnings
from recbias.core.dataset import Split
from recbias.models.fitted import restore_matrix
from recbias.models.linear import SLIM
from support.models.recommending import compute_mean_ndcg, make_random_data, query_all_users


@pytest.mark.usefixtures("stage_warnings")
def test_weights_match_scikit_learns_elastic_net(rng: np.random.Generator) -> None:
    data = make_random_data(rng, 120, 30)
    model = SLIM(alpha=0.01, l1_ratio=0.1, neighbors=30, max_iter=2_000, tolerance=1e-6)
    weights = restore_matrix(model.fit(data, rng).state()).toarray()
    matrix = data.train.binary.toarray().astype(np.float64)
    elastic_net = ElasticNet(
        alpha=0.01, l1_ratio=0.1, positive=True, fit_intercept=False, max_iter=9_999, tol=1e-10
    )
    for item in range(30):
        predictors = matrix.copy()
        predictors[:, item] = 0
        elastic_net.fit(predictors, matrix[:, item])
        np.testing.assert_allclose(weights[:, item], elastic_net.coef_, atol=1e-4)


@pytest.mark.usefixtures("stage_warnings")
def test_elliot_variant_keeps_the_diagonal_and_drops_the_smallest_weight(
    rng: np.random.Generator,
) -> None:
    data = make_random_data(rng, 120, 30)
    matrix = data.train.binary.toarray().astype(np.float64)
    elastic_net = ElasticNet(
        alpha=0.01, l1_ratio=0.1, positive=True, fit_intercept=False, max_iter=9_999, tol=1e-10
    )
    coefficients = [elastic_net.fit(matrix, matrix[:, item]).coef_.copy() for item in range(30)]
    settings = SLIM(alpha=0.01, l1_ratio=0.1, max_iter=2_000, tolerance=1e-6, variant="elliot")
    for neighbors in (30, 4):
        model = replace(settings, neighbors=neighbors)
        weights = restore_matrix(model.fit(data, rng).state()).toarray()
        for item, column in enumerate(coefficients):
            n_dropped = max(1, (column > 0).sum() - neighbors)
            dropped = np.argsort(np.where(column > 0, column, np.inf))[:n_dropped]
            expected = column.copy()
            expected[dropped] = 0
            np.testing.assert_allclose(weights[:, item], expected, atol=1e-4)
        assert weights.diagonal().max() > 0.1


def test_a_warning_reports_items_that_have_not_converged(rng: np.random.Generator) -> None:
    with collect_warnings() as warnings:
        SLIM(max_iter=1, tolerance=1e-9).fit(make_random_data(rng), rng)
    assert len(warnings) == 1
    assert "have not converged after 1 pass" in warnings[0]


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
@pytest.mark.slow
def test_ndcg_on_movielens_is_close_to_the_published_value(movielens: Split) -> None:
    model = SLIM(alpha=0.2334318, l1_ratio=0.0017297, neighbors=542, variant="elliot")
    data = movielens.training_data()
    lists = model.fit(data, np.random.default_rng(1)).recommend(query_all_users(data), 10, data)
    assert compute_mean_ndcg(lists, movielens) == pytest.approx(0.3389, abs=0.01)
