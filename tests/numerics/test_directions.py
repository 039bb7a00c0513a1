from __future__ import annotations

import math

import numpy as np
import pytest

from recbias.metrics.embeddings.sets import (
    centroid_difference,
    compute_cosine_tail,
    fit_pair_component,
    is_component_tied,
    normalize_rows,
    principal_components,
    sample_cosines,
    sample_direction,
)


def test_centroid_difference_matches_hand_computation() -> None:
    # means (2, 2) and (-0.5, 1)
    a, b = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [-1.0, 0.0]])
    assert centroid_difference(a, b).tolist() == [2.5, 1.0]


@pytest.mark.parametrize("centred", [True, False])
def test_pair_component_equals_that_of_all_pairs(centred: bool, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((7, 4)) + np.eye(4)[0], rng.standard_normal((9, 4)) * [1, 3, 1, 1]
    every = (a[:, None, :] - b[None, :, :]).reshape(-1, 4)
    expected = np.linalg.svd(every - centred * every.mean(axis=0))[2][0]
    assert abs(fit_pair_component(a, b, centred=centred) @ expected) == pytest.approx(1.0)


def test_components_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    from sklearn.decomposition import PCA

    rows = rng.standard_normal((50, 6)) * [5, 4, 3, 2, 1, 1]
    components, expected = principal_components(rows, 2), PCA(2).fit(rows).components_
    np.testing.assert_allclose(np.abs((components * expected).sum(axis=1)), 1.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("cosine", "d", "expected"),
    [
        (math.sqrt(0.5), 2, 0.5),  # within 45 degrees of a line: half of the plane
        (0.25, 3, 0.75),  # in space the cosine is uniform on [-1, 1]
        (-0.25, 3, 0.75),
        (0.0, 5, 1.0),
        (1.0, 5, 0.0),
        (1.0, 1, 1.0),  # on a line there are two directions only
    ],
)
def test_cosine_tail_matches_hand_computation(cosine: float, d: int, expected: float) -> None:
    assert compute_cosine_tail(cosine, d) == pytest.approx(expected)


@pytest.mark.parametrize("d", [1, 2, 7, 64])
def test_sampled_cosines_have_the_distribution_of_random_vectors(
    d: int, rng: np.random.Generator
) -> None:
    from scipy.stats import ks_2samp

    axis = sample_direction(d, rng)
    vectors = normalize_rows(rng.standard_normal((4000, d))) @ axis
    cosines = sample_cosines(4000, d, rng)
    assert np.abs(cosines).max() <= 1.0
    # on a line they are ±1 up to rounding
    assert ks_2samp(cosines.round(9), vectors.round(9)).pvalue > 0.001


def test_the_difference_of_the_means_may_determine_the_first_component() -> None:
    rng = np.random.default_rng(0)
    groups = [rows - rows.mean(axis=0) for rows in rng.standard_normal((2, 300, 3))]
    assert is_component_tied(groups)
    assert is_component_tied(groups, np.array([0.1, 0.0, 0.0]))
    assert not is_component_tied(groups, np.array([4.0, 0.0, 0.0]))
