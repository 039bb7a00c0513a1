from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.evidence import Evidence
from recbias.metrics.embeddings.directions import (
    DirectionEstimator,
    ResampledDirections,
    estimate_stretch,
)
from recbias.metrics.embeddings.sets import select_sets
from support.worlds.vector_worlds import GENDER, plant_association


def make_estimator(
    facts: Evidence, choice: Any = "centroid", refits: int = 12
) -> DirectionEstimator:
    return DirectionEstimator(choice, select_sets(facts, GENDER), facts, 20, None, refits)


@pytest.mark.parametrize("choice", ["centroid", "svc", "csvc", "pca"])
def test_samples_lie_around_the_direction(choice: str, rng: np.random.Generator) -> None:
    estimator = make_estimator(
        plant_association(np.random.default_rng(1), shift=1.0, n=300), choice, refits=30
    )
    axis = estimator.estimate()
    axes = estimator.resample(axis, rng).axes
    assert len(axes) == (200 if choice == "centroid" else 10)
    assert np.linalg.norm(axes, axis=1) == pytest.approx(np.ones(len(axes)))
    assert (axes @ axis > (0.0 if choice == "csvc" else 0.9)).all()  # it learns from 40
    assert (axes @ axis < 1.0 - 1e-9).all()


@pytest.mark.parametrize("choice", ["centroid", "svc", "pca"])
def test_a_planted_direction_is_none_of_random_groups(
    choice: str, rng: np.random.Generator
) -> None:
    estimator = make_estimator(plant_association(np.random.default_rng(1), shift=1.0), choice)
    assert estimator.compute_p_value(np.eye(8)[0], 12, rng) == 1 / 13
    assert estimator.compute_p_value(np.eye(8)[1], 12, rng) > 1 / 13


def test_the_excess_by_hand() -> None:
    # squares 4 and 9; variances of (2, 3) and (0, 0): 0.5; 4 / (4 - 1) and 9 / (9 - 1)
    stretch = estimate_stretch(np.array([[2.0, 0.0], [3.0, 0.0]]))
    assert stretch.tolist() == pytest.approx([math.sqrt(4 / 3), math.sqrt(9 / 8)])
    # chance alone: squares 1, variances of (1, -1): 2
    assert estimate_stretch(np.array([[1.0], [-1.0]])).tolist() == [math.inf, math.inf]
    assert estimate_stretch(np.array([[1.0]])).tolist() == [1.0]


def test_an_unknown_direction_has_the_widest_interval() -> None:
    # the mean vector has length 5: no direction is farther from it
    axes, means = np.array([[1.0, 0.0]] * 4), np.array([[3.0, 4.0]] * 4)
    assert ResampledDirections(axes, np.full(4, np.inf)).compute_interval(3.0, means) == (
        -5.0,
        5.0,
    )
    assert ResampledDirections(axes, np.ones(4)).compute_interval(3.0, means) == (3.0, 3.0)
    assert ResampledDirections(axes, np.full(4, 9.0)).compute_interval(3.0, means) == (5.0, 5.0)
    assert ResampledDirections(axes).compute_interval(3.0, means) is None
    assert ResampledDirections(np.full((4, 2), np.nan), np.ones(4)).compute_interval(
        3.0, means
    ) == (
        -5.0,
        5.0,
    )


def test_the_interval_is_corrected_by_the_agreement_of_the_directions() -> None:
    # the samples are 1 and 2: se = √½; x / c = 3 / 0.6 = 5; t(0.975; 1) = 12.7062
    axes, means = np.eye(2), np.array([[1.0, 0.0], [0.0, 2.0]])
    low, high = ResampledDirections(axes, agreement=0.6).compute_interval(3.0, means) or (0, 0)
    half_width = 12.7062 * np.sqrt(0.5 / 0.36 + 4.0)
    assert (low, high) == pytest.approx((5.0 - half_width, 5.0 + half_width), abs=1e-3)
    assert ResampledDirections(axes, agreement=0.6).compute_interval(3.0, means[:1]) is None
    chosen = ResampledDirections(axes, agreement=0.6, is_chosen=True)
    half_width = 12.7062 * np.sqrt(0.5 / 0.36 + (3 / 0.36 - 3) ** 2)
    ends = chosen.compute_interval(3.0, means)
    assert ends == pytest.approx((5.0 - half_width, 5.0 + half_width), abs=1e-3)
    component = ResampledDirections(axes, agreement=0.6, is_component=True)
    for direction, power in ((component, 3), (replace(component, is_centred=True), 2)):
        half_width = 12.7062 * np.sqrt(0.5 + (3 / 0.6**power - 3) ** 2)
        ends = direction.compute_interval(3.0, means)
        assert ends == pytest.approx((3.0 - half_width, 3.0 + half_width), abs=1e-3)
    uncertain = ResampledDirections(axes, agreement=0.49).compute_interval(3.0, means)
    assert np.isnan(uncertain or 0.0).all()


def test_the_agreement_is_the_cosine_with_the_planted_direction() -> None:
    agreements, cosines = [], []
    for seed in range(6):
        facts = plant_association(np.random.default_rng(seed), shift=0.8, n=60, d=8)
        estimator = make_estimator(facts, choice="svc", refits=6)
        axis = estimator.estimate()
        agreements.append(estimator.resample(axis, np.random.default_rng(1)).agreement or 0.0)
        cosines.append(axis[0])
    assert np.mean(agreements) == pytest.approx(np.mean(cosines), abs=0.08)


def test_a_direction_that_is_chance_has_no_interval_and_a_warning() -> None:
    facts = plant_association(np.random.default_rng(0), shift=0.0, n=20, d=60)
    estimator = make_estimator(facts, choice="svc", refits=30)
    axis = estimator.estimate()
    with collect_warnings() as messages:
        directions = estimator.resample(axis, np.random.default_rng(1))
    assert directions.agreement is not None
    assert directions.agreement < 0.5
    assert any("no interval, because the agreement of svc directions" in m for m in messages)
