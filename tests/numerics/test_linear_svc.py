from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray
from recbias.metrics.embeddings import directions as linear_separator
from recbias.metrics.embeddings.directions import (
    Hyperplane,
    fit_svc,
    select_most_aligned,
    split_members,
    train_classifier,
)


def draw_groups(rng: np.random.Generator, *, shift: float, n: int = 100) -> list[np.ndarray]:
    vectors = rng.standard_normal((2, n, 4))
    vectors[0, :, 0] += shift
    vectors[1, :, 0] -= shift
    return list(vectors)


def test_the_margin_by_hand() -> None:
    # points 1 and -1: w_0 = 0 and w minimises w²/2 + 2 (1 - w)², so w - 4 (1 - w) = 0, w = 0.8
    plane = fit_svc(np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]]))
    np.testing.assert_allclose([*plane.weights, plane.intercept], [0.8, 0.0, 0.0], atol=1e-12)


def test_four_points_have_the_widest_margin() -> None:
    # at a high cost: the least (w, w_0) that is 1 or more at (1, 1) is (1/3, 1/3, 1/3), which is
    # -1 at (0, -4) and farther out at the other two
    plane = fit_svc(
        np.array([[1.0, 1.0], [5.0, 3.0]]), np.array([[0.0, -4.0], [-5.0, -2.0]]), cost=1e6
    )
    np.testing.assert_allclose([*plane.weights, plane.intercept], [1 / 3] * 3, atol=1e-6)
    axis = plane.weights / np.linalg.norm(plane.weights)
    np.testing.assert_allclose(axis, [np.sqrt(0.5)] * 2, atol=1e-6)


@pytest.mark.parametrize("length", [1.0, 10.0, 100.0])
def test_real_vectors_of_any_length_reach_the_minimum(real_data: Path, length: float) -> None:
    a, b = (length * vectors for vectors in load_women_and_men(real_data))
    chosen = select_most_aligned(a, b, 200)
    for first, second in ((a, b), (a[chosen[0]], b[chosen[1]])):
        plane = fit_svc(first, second)
        rows = np.column_stack(
            [np.concatenate([first, second]), np.ones(len(first) + len(second))]
        )
        signs = np.repeat([1.0, -1.0], [len(first), len(second)])
        weights = np.append(plane.weights, plane.intercept)
        slack = np.maximum(0.0, 1.0 - signs * (rows @ weights))
        slope = weights - 2.0 * rows.T @ (signs * slack)
        assert np.linalg.norm(slope) <= 1e-6 * np.linalg.norm(weights)


@cache
def load_women_and_men(real_data: Path) -> tuple[FloatArray, FloatArray]:
    """Return the vectors of PureSVD of the women and men of MovieLens-1M."""
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    text = (real_data / "ml-1m" / "ratings.dat").read_text(encoding="ascii")
    rows = np.array(text.replace("::", " ").split(), dtype=np.int64).reshape(-1, 4)
    liked = rows[rows[:, 2] >= 4]
    matrix = csr_array((np.ones(len(liked)), (liked[:, 0], liked[:, 1])))
    vectors = np.asarray(matrix @ svds(matrix, 22, rng=np.random.default_rng(1))[2].T)
    lines = (real_data / "ml-1m" / "users.dat").read_text(encoding="latin-1").splitlines()
    women = np.array([int(line.split("::")[0]) for line in lines if "::F::" in line])
    men = np.array([int(line.split("::")[0]) for line in lines if "::M::" in line])
    usable = np.asarray(vectors.any(axis=1))
    of_women, of_men = (users[users < len(vectors)] for users in (women, men))
    return vectors[of_women[usable[of_women]]], vectors[of_men[usable[of_men]]]


def test_the_positive_side_is_a() -> None:
    plane = Hyperplane(np.array([2.0, 0.0]), -1.0)
    assert plane.predict_a(np.array([[1.0, 5.0], [0.4, 9.0], [0.5, 0.0]])).tolist() == [
        *(True, False, False),
    ]


def test_groups_far_apart_are_told_apart(rng: np.random.Generator) -> None:
    a, b = draw_groups(rng, shift=6.0)
    classifier = train_classifier(a, b, rng=rng)
    first, second = classifier.test
    assert classifier.separator.predict_a(a[first]).all()
    assert not classifier.separator.predict_a(b[second]).any()


def test_the_accuracy_of_a_planted_shift(rng: np.random.Generator) -> None:
    # the best plane errs where a standard normal is beyond the shift: Φ(0.6745) = 0.75
    a, b = draw_groups(rng, shift=0.6745, n=4000)
    classifier = train_classifier(a, b, rng=rng)
    first, second = classifier.test
    right = (
        classifier.separator.predict_a(a[first]).mean()
        + 1
        - classifier.separator.predict_a(b[second]).mean()
    )
    assert right / 2 == pytest.approx(0.75, abs=0.03)
    axis = classifier.separator.weights / np.linalg.norm(classifier.separator.weights)
    assert axis[0] > 0.99


def test_it_turns_with_the_space(rng: np.random.Generator) -> None:
    a, b = draw_groups(rng, shift=0.5)
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    plane, turned = fit_svc(a, b), fit_svc(a @ turn, b @ turn)
    np.testing.assert_allclose(turned.weights, plane.weights @ turn, atol=1e-9)


@pytest.mark.parametrize(
    ("sizes", "sample", "train", "test"),
    [
        ((10, 20), None, (8, 16), (2, 4)),
        ((10, 20), 5, (4, 4), (1, 1)),
        ((2, 3), None, (1, 2), (1, 1)),  # at least one to learn from and one to test on
    ],
)
def test_a_fifth_of_each_group_is_tested_on(
    sizes: tuple[int, int],
    sample: int | None,
    train: tuple[int, int],
    test: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    fitted, tested = split_members(sizes, sample, rng)
    assert tuple(rows.size for rows in fitted) == train
    assert tuple(rows.size for rows in tested) == test
    for train_rows, test_rows in zip(fitted, tested, strict=True):
        assert not set(train_rows) & set(test_rows)


def test_all_classifiers_have_one_test_set(rng: np.random.Generator) -> None:
    a, b = draw_groups(rng, shift=0.5)
    plain = train_classifier(a, b, rng=np.random.default_rng(5))
    few = train_classifier(a, b, rng=np.random.default_rng(5), top_n=10)
    assert [rows.tolist() for rows in plain.test] == [rows.tolist() for rows in few.test]
    assert [rows.size for rows in few.train] == [10, 10]
    assert not set(few.train[0]) & set(few.test[0])


def test_the_most_aligned_by_hand() -> None:
    # centroids (2, 0) and (-1, 0): the axis is x
    # cosines of A with it: 1, 0, 0.8; of B: -1, 0, -0.8
    a = np.array([[2.0, 0.0], [0.0, 3.0], [4.0, -3.0]])
    b = np.array([[-1.0, 0.0], [0.0, -3.0], [-4.0, 3.0]])
    first, second = select_most_aligned(a, b, 2)
    assert (first.tolist(), second.tolist()) == ([0, 2], [0, 2])
    whole, _ = select_most_aligned(a, b, 9)
    assert whole.tolist() == [0, 2, 1]


def test_groups_alike_have_none_that_is_aligned() -> None:
    same = np.ones((3, 2))
    assert [rows.tolist() for rows in select_most_aligned(same, same, 2)] == [[0, 1], [0, 1]]


def test_a_solver_that_is_stopped_is_said(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_separator, "MAX_STEPS", 1)
    with collect_warnings() as notes:
        fit_svc(*draw_groups(rng, shift=0.1))
    assert notes == ["the support vector classifier has not converged after 1 steps"]
