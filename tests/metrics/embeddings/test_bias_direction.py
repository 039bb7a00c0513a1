from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import FloatArray
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    NothingLeft,
    UnknownIdentifier,
)
from recbias.metrics.embeddings.directions import (
    check_directions,
    find_direction,
    read_direction,
)
from recbias.metrics.embeddings.sets import select_sets
from support.worlds.vector_worlds import GENDER, make_vectors, plant_association


def find_axis(choice: Any, facts: Any = None, **settings: Any) -> FloatArray:
    world = make_vectors() if facts is None else facts
    return find_direction(choice, select_sets(world, GENDER), world, **settings)


def test_the_centroid_direction_by_hand() -> None:
    # (2, 2) - (-0.5, 1) = (2.5, 1)
    np.testing.assert_allclose(find_axis("centroid"), np.array([2.5, 1.0]) / np.sqrt(7.25))


@pytest.mark.parametrize("choice", ["centroid", "svc", "csvc", "pca"])
def test_the_planted_direction_is_found(choice: str) -> None:
    facts = plant_association(np.random.default_rng(4), shift=1.5, n=500)
    assert find_axis(choice, facts)[0] > 0.93


def test_the_mean_of_the_differences_is_the_centroid_difference() -> None:
    # without it, what is left of the differences of pairs is alike in all directions
    facts = plant_association(np.random.default_rng(4), shift=1.5, n=500)
    assert find_axis("pca", facts)[0] > 0.93
    assert abs(find_axis("pca_centred", facts)[0]) < 0.8


def test_a_vector_of_another_space(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones(3, dtype=np.int64))
    assert read_direction(tmp_path / "v.npy").tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(BrokenContract, match="3 dimensions, but those of the model have 2"):
        find_axis(tmp_path / "v.npy")


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


@pytest.mark.parametrize(
    ("rows", "choice", "error", "message"),
    [
        (["u0,u2", "u2,u3"], "pca", UnknownIdentifier, r"pairs\.csv:3: 'u2' is not in group A"),
        (["u0,u2", "u1,nobody"], "pca", UnknownIdentifier, "'nobody' is not in group B"),
        (["u0,u2"], "pca", NothingLeft, "1 pair"),
        (["u0,u2", "u1,u3"], "svc", Contradiction, "no direction is estimated from pairs"),
    ],
)
def test_faults_of_pairs_are_found_before_training(
    tmp_path: Path, rows: list[str], choice: Any, error: type[Exception], message: str
) -> None:
    pairs = write_pairs(tmp_path, *rows)
    with pytest.raises(error, match=message):
        check_directions((choice,), GENDER, pairs, make_vectors())
