from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.numerics.directions import (
    centroid_difference,
    chance_of_cosine,
    oriented,
    pair_component,
    principal_components,
    random_cosines,
    random_direction,
    unit,
    unit_rows,
)


def test_rows_of_length_one() -> None:
    found = unit_rows(np.array([[3.0, 4.0], [0.0, -2.0]]))
    assert found.tolist() == [[0.6, 0.8], [0.0, -1.0]]


@pytest.mark.parametrize("size", [1e-300, 1e-20, 1.0, 1e200])
def test_a_length_does_not_overflow_or_vanish(size: float) -> None:
    np.testing.assert_allclose(unit(np.array([3.0, 4.0]) * size), [0.6, 0.8], rtol=1e-12)


def test_a_vector_of_zero_has_no_direction() -> None:
    assert np.isnan(unit(np.zeros(3))).all()


def test_centroid_difference_by_hand() -> None:
    # means (2, 2) and (-0.5, 1)
    a, b = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [-1.0, 0.0]])
    assert centroid_difference(a, b).tolist() == [2.5, 1.0]


def test_groups_of_one_centroid_have_no_difference() -> None:
    # 0.1 + 0.2 + 0.3 is not three times 0.2 in floating point
    a = np.array([[0.1, 1.0], [0.2, 1.0], [0.3, 1.0]])
    assert centroid_difference(a, np.array([[0.2, 1.0]])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("centred", [True, False])
def test_the_component_is_that_of_every_pair(centred: bool, rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((7, 4)) + np.eye(4)[0], rng.standard_normal((9, 4)) * [1, 3, 1, 1]
    every = (a[:, None, :] - b[None, :, :]).reshape(-1, 4)
    (expected,) = principal_components(every, 1, centred=centred)
    assert abs(pair_component(a, b, centred=centred) @ expected) == pytest.approx(1.0)


def test_pairs_that_do_not_differ_have_no_component() -> None:
    same = np.full((3, 2), 0.1)
    for centred in (True, False):
        assert pair_component(same, same[:2], centred=centred).tolist() == [0.0, 0.0]
    # all differ by (1, 0): it is their mean, and nothing is left without it
    assert np.abs(pair_component(same + np.eye(2)[0], same, centred=False)).tolist() == [1.0, 0.0]
    assert pair_component(same + np.eye(2)[0], same, centred=True).tolist() == [0.0, 0.0]


def test_the_mean_is_a_component_unless_it_is_taken_away() -> None:
    # all rows are (10, ±1): from 0 they stretch along x, from their mean along y
    rows = np.array([[10.0, 1.0], [10.0, -1.0]])
    assert np.abs(principal_components(rows, 1, centred=False)).tolist() == [[1.0, 0.0]]
    np.testing.assert_allclose(np.abs(principal_components(rows, 1)), [[0.0, 1.0]], atol=1e-12)


def test_components_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    from sklearn.decomposition import PCA

    rows = rng.standard_normal((50, 6)) * [5, 4, 3, 2, 1, 1]
    found, expected = principal_components(rows, 2), PCA(2).fit(rows).components_
    np.testing.assert_allclose(np.abs((found * expected).sum(axis=1)), 1.0, rtol=1e-9)


@pytest.mark.parametrize(("rows", "n"), [([[1.0, 2.0]] * 3, 0), ([[0.0, 1.0], [0.0, 3.0]], 1)])
def test_rows_that_do_not_vary_have_no_component(rows: list[list[float]], n: int) -> None:
    assert len(principal_components(np.array(rows), 2)) == n


def test_a_direction_is_turned_to_a() -> None:
    # a is ahead of b by (0, 1): 0 along x, 1 along y
    a, b = np.array([[0.6, 0.8]]), np.array([[0.6, -0.2]])
    assert oriented(np.array([0.0, -3.0]), a, b).tolist() == [0.0, 1.0]
    assert oriented(np.array([0.0, 3.0]), a, b).tolist() == [0.0, 1.0]
    assert oriented(np.array([2.0, 0.0]), a, b).tolist() == [1.0, 0.0]
    assert np.isnan(oriented(np.zeros(2), a, b)).all()


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
def test_chance_of_a_cosine(cosine: float, d: int, expected: float) -> None:
    assert chance_of_cosine(cosine, d) == pytest.approx(expected)


def test_the_chance_of_no_cosine_is_none() -> None:
    assert math.isnan(chance_of_cosine(math.nan, 3))


@pytest.mark.parametrize("d", [1, 2, 7, 64])
def test_random_cosines_are_those_of_random_vectors(d: int, rng: np.random.Generator) -> None:
    from scipy.stats import ks_2samp

    axis = random_direction(d, rng)
    vectors = unit_rows(rng.standard_normal((4000, d))) @ axis
    drawn = random_cosines(4000, d, rng)
    assert np.abs(drawn).max() <= 1.0
    # on a line they are ±1 up to rounding
    assert ks_2samp(drawn.round(9), vectors.round(9)).pvalue > 0.001


def test_random_cosines_are_as_frequent_as_their_chance(rng: np.random.Generator) -> None:
    drawn = np.abs(random_cosines(40_000, 22, rng))
    for cosine in (0.1, 0.3, 0.5):
        share = float(np.mean(drawn >= cosine))
        assert share == pytest.approx(chance_of_cosine(cosine, 22), abs=0.01)


def test_a_random_direction_has_length_one(rng: np.random.Generator) -> None:
    assert np.linalg.norm(random_direction(9, rng)) == pytest.approx(1.0)


@given(st.integers(1, 5), st.integers(0, 10**6))
def test_a_is_never_behind(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (unit_rows(rng.standard_normal((4, d))) for _ in range(2))
    axis = oriented(rng.standard_normal(d), a, b)
    assert (a @ axis).mean() >= (b @ axis).mean() - 1e-12
