from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray
from recbias.core.errors import (
    BrokenContract,
    MalformedLine,
    MissingFile,
    NothingLeft,
    UnknownIdentifier,
)
from recbias.metrics.embeddings.directions import (
    check_directions,
    find_direction,
    name_direction,
    read_direction,
)
from recbias.metrics.embeddings.sets import select_sets
from support.worlds.vector_worlds import GENDER, make_vectors, plant_association

FOUND = ("centroid", "svc", "csvc", "pca", "pca_centred")


def find_axis(choice: Any, facts: Any = None, **settings: Any) -> FloatArray:
    world = make_vectors() if facts is None else facts
    return find_direction(choice, select_sets(world, GENDER), world, **settings)


def test_the_centroid_direction_by_hand() -> None:
    # (2, 2) - (-0.5, 1) = (2.5, 1)
    np.testing.assert_allclose(find_axis("centroid"), np.array([2.5, 1.0]) / np.sqrt(7.25))


def test_a_file_is_turned_towards_a(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.array([-3.0, -4.0]))
    np.testing.assert_allclose(find_axis(path), [0.6, 0.8])
    assert name_direction(path) == "v.npy"


@pytest.mark.parametrize("choice", [*FOUND, "random"])
def test_it_has_length_one_and_a_lies_ahead(choice: str) -> None:
    facts = plant_association(np.random.default_rng(4), shift=0.4)
    axis = find_axis(choice, facts, top_n=20)
    a, b = select_sets(facts, GENDER)
    assert np.linalg.norm(axis) == pytest.approx(1.0)
    assert (a.directions @ axis).mean() > (b.directions @ axis).mean()


@pytest.mark.parametrize("choice", ["centroid", "svc", "csvc", "pca"])
def test_the_planted_direction_is_found(choice: str) -> None:
    facts = plant_association(np.random.default_rng(4), shift=1.5, n=500)
    assert find_axis(choice, facts)[0] > 0.93


def test_the_mean_of_the_differences_is_the_centroid_difference() -> None:
    # without it, what is left of the differences of pairs is alike in all directions
    facts = plant_association(np.random.default_rng(4), shift=1.5, n=500)
    assert find_axis("pca", facts)[0] > 0.93
    assert abs(find_axis("pca_centred", facts)[0]) < 0.8


@pytest.mark.parametrize("choice", ["svc", "csvc", "random"])
def test_every_metric_gets_the_same_one(choice: str) -> None:
    facts = plant_association(np.random.default_rng(4), shift=0.4)
    assert find_axis(choice, facts).tolist() == find_axis(choice, facts).tolist()
    other = plant_association(np.random.default_rng(4), shift=0.4, bootstrap_seed=9)
    assert find_axis(choice, other).tolist() != find_axis(choice, facts).tolist()


@pytest.mark.parametrize("choice", ["pca", "pca_centred"])
def test_a_principal_component_leaves_nothing_to_chance(choice: str) -> None:
    facts = plant_association(np.random.default_rng(4), shift=0.4)
    other = replace(facts, bootstrap_seed=9)
    assert find_axis(choice, other).tolist() == find_axis(choice, facts).tolist()


@pytest.mark.parametrize("choice", ["centroid", "svc", "csvc", "pca", "pca_centred"])
def test_groups_of_the_same_vectors_have_no_direction(choice: str) -> None:
    facts = make_vectors(users=[[1.0, 2.0]] * 4)
    with collect_warnings() as notes:
        assert np.isnan(find_axis(choice, facts)).all()
    message = f"the vectors of gender=F and gender=M have no {choice} direction"
    assert notes == [f"the metric: {message}"]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (np.ones((2, 2)), MalformedLine, r"an array float64\[2, 2\], not one vector"),
        (np.array(["a"]), MalformedLine, "not one vector of numbers"),
        (np.array([1.0, np.nan]), BrokenContract, "contains NaN"),
        (np.zeros(2), BrokenContract, "is 0, so it has no direction"),
    ],
)
def test_a_file_that_is_no_vector(
    tmp_path: Path, content: Any, error: type[Exception], message: str
) -> None:
    path = tmp_path / "v.npy"
    np.save(path, content)
    with pytest.raises(error, match=message):
        read_direction(path)


def test_a_file_that_is_no_array(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    path.write_text("1 2 3")
    with pytest.raises(MalformedLine, match=r"not a \.npy file"):
        read_direction(path)
    with pytest.raises(MissingFile):
        read_direction(tmp_path / "none.npy")


def test_a_vector_of_another_space(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones(3, dtype=np.int64))
    assert read_direction(tmp_path / "v.npy").tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(BrokenContract, match="3 dimensions, but those of the model have 2"):
        find_axis(tmp_path / "v.npy")


def test_what_needs_no_file_is_not_checked() -> None:
    check_directions(("svc",), GENDER, None, make_vectors())
    assert name_direction("svc") == "svc"


def write_pairs(folder: Path, *rows: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text("\n".join(["a,b", *rows, ""]), encoding="utf-8")
    return path


def test_the_component_of_given_pairs_by_hand(tmp_path: Path) -> None:
    # u0 - u2 = (1, -2), u1 - u3 = (4, 4); the moment matrix is ((17, 14), (14, 20)) and its first
    # component has the slope t of 14 t² - 3 t - 14 = 0
    pairs = write_pairs(tmp_path, "u0,u2", "u1,u3")
    slope = (3 + np.sqrt(9 + 4 * 14 * 14)) / 28
    expected = np.array([1.0, slope]) / np.hypot(1.0, slope)
    np.testing.assert_allclose(find_axis("pca", pairs=pairs), expected)
    # after subtracting the mean (2.5, 1): (-1.5, -3) and (1.5, 3), towards the women (2.5, 1)
    expected = np.array([1.0, 2.0]) / np.sqrt(5.0)
    np.testing.assert_allclose(find_axis("pca_centred", pairs=pairs), expected)


def test_all_pairs_are_the_default(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path, "u0,u2", "u0,u3", "u1,u2", "u1,u3")
    for choice in ("pca", "pca_centred"):
        np.testing.assert_allclose(find_axis(choice, pairs=pairs), find_axis(choice))
    np.testing.assert_allclose(find_axis("centroid", pairs=pairs), find_axis("centroid"))


def test_pairs_without_a_vector_are_excluded_and_counted(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path, "u0,u3", "u1,u3", "u0,u4", "u2,u4")
    users = [[1.0, 0.0], [3.0, 4.0], [0.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]
    world = make_vectors(users, gender=["F", "F", "F", "M", "M"])
    few = write_pairs(tmp_path, "u0,u3", "u1,u3", "u0,u4")
    with collect_warnings():
        expected = find_axis("pca", world, pairs=few)
    pairs = write_pairs(tmp_path, "u0,u3", "u1,u3", "u0,u4", "u2,u4")
    with collect_warnings() as messages:
        np.testing.assert_allclose(find_axis("pca", world, pairs=pairs), expected)
    assert "1 of the 4 pairs of pairs.csv lack a vector: excluded" in messages


@pytest.mark.parametrize(
    ("rows", "choice", "error", "message"),
    [
        (["u0,u2", "u2,u3"], "pca", UnknownIdentifier, r"pairs\.csv:3: 'u2' is not in group A"),
        (["u0,u2", "u1,nobody"], "pca", UnknownIdentifier, "'nobody' is not in group B"),
        (["u0,u2"], "pca", NothingLeft, "1 pair"),
    ],
)
def test_faults_of_pairs_are_found_before_training(
    tmp_path: Path, rows: list[str], choice: Any, error: type[Exception], message: str
) -> None:
    pairs = write_pairs(tmp_path, *rows)
    with pytest.raises(error, match=message):
        check_directions((choice,), GENDER, pairs, make_vectors())
