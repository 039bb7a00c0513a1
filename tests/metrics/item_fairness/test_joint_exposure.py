from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.evidence import Evidence
from recbias.metrics.item_fairness import IndividualExposure, OverallExposure
from support.worlds.evidence_worlds import make_evidence, make_lists

METRICS = (IndividualExposure, OverallExposure)


def make_world(lists: list[list[int]], relevant: list[list[int]], **fields: Any) -> Evidence:
    fields = {"candidates": np.ones(4, dtype=bool), "n_bootstrap": 5, **fields}
    return make_evidence(make_lists(lists, outside=["new"]), relevant, n_items=4, **fields)


def test_values_by_hand() -> None:
    # gamma 0.5: exposures 1 and 0.5; targets: item 0 alone 1; items 1 and 2 (1 + 0.5) / 2 = 0.75
    # query 0: (0, 0.5, 0, 0): 0.25 / 4;  query 1: (0.5, -0.75, 0.25, 0): 0.875 / 4
    evidence = make_world([[0, 1], [2, 0]], [[0], [1, 2]])
    (individual,) = IndividualExposure(gamma=0.5).measure(evidence)
    assert individual.units is not None
    assert individual.units.values == pytest.approx([0.0625, 0.21875], abs=1e-9)
    # means: (0.25, -0.125, 0.125, 0): (0.0625 + 0.015625 + 0.015625) / 4
    (overall,) = OverallExposure(gamma=0.5).measure(evidence)
    assert overall.value == pytest.approx(0.0234375, abs=1e-9)
    assert (overall.n, overall.undefined) == (2, 0)


@pytest.mark.parametrize("gamma", [0.8, 0.3])
def test_values_equal_those_of_dense_matrices(gamma: float, rng: np.random.Generator) -> None:
    lists = [rng.permutation(4)[: rng.integers(1, 4)].tolist() for _ in range(30)]
    relevant = [rng.permutation(4)[: rng.integers(1, 4)].tolist() for _ in range(30)]
    exposure, target = np.zeros((30, 4)), np.zeros((30, 4))
    for query, (listed, items) in enumerate(zip(lists, relevant, strict=True)):
        for rank, item in enumerate(listed):
            exposure[query, item] = gamma**rank
        target[query, items] = sum(gamma**rank for rank in range(len(items))) / len(items)
    evidence = make_world(lists, relevant)
    (individual,) = IndividualExposure(gamma=gamma).measure(evidence)
    assert individual.value == pytest.approx(((exposure - target) ** 2).mean(), abs=1e-9)
    (overall,) = OverallExposure(gamma=gamma).measure(evidence)
    mean_difference = (exposure - target).mean(axis=0)
    assert overall.value == pytest.approx((mean_difference**2).mean(), abs=1e-9)
    samples = np.random.default_rng(0)
    expected = []
    for _ in range(5):
        rows = samples.integers(30, size=30)
        expected.append((((exposure - target)[rows].mean(axis=0)) ** 2).mean())
    assert overall.replicates == pytest.approx(expected, abs=1e-9)


def test_queries_without_a_relevant_candidate_are_undefined() -> None:
    candidates = np.array([True, True, True, False])
    with collect_warnings() as warnings:
        evidence = make_world([[0], [1, 3], [4]], [[0], [3], []], candidates=candidates)
        (individual,) = IndividualExposure().measure(evidence)
        (overall,) = OverallExposure().measure(evidence)
    assert (individual.value, individual.n, individual.undefined) == (0.0, 1, 2)
    assert (overall.value, overall.n, overall.undefined) == (0.0, 1, 2)
    message = "positions of the lists hold an item that is not a candidate and are excluded"
    assert warnings == [f"the metric: 2 {message}"] * 2
    for metric in METRICS:
        (measurement,) = metric().measure(make_world([[0], [1]], [[], []]))
        assert math.isnan(measurement.value)


def test_an_item_that_no_user_needs_costs_the_square_of_its_exposure() -> None:
    (plain,) = IndividualExposure(k=1).measure(make_world([[0, 1]], [[0]]))
    (more,) = IndividualExposure(k=2).measure(make_world([[0, 1]], [[0]]))
    assert (plain.value, more.value) == pytest.approx((0.0, 0.64 / 4))


def test_exposure_that_changes_between_users_is_fair_overall() -> None:
    # each of two relevant items is first once: means 0.9 for both, the target (1 + 0.8) / 2
    evidence = make_world([[0, 1], [1, 0]], [[0, 1], [0, 1]])
    (overall,) = OverallExposure().measure(evidence)
    assert overall.value == pytest.approx(0.0, abs=1e-12)
    (individual,) = IndividualExposure().measure(evidence)
    assert individual.value == pytest.approx(2 * 0.1**2 / 4)


@given(seed=st.integers(0, 2**32 - 1), gamma=st.floats(0.05, 0.95))
def test_overall_differences_are_at_most_the_individual_ones(seed: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(4)[: rng.integers(0, 4)].tolist() for _ in range(6)]
    relevant = [rng.permutation(4)[: rng.integers(1, 4)].tolist() for _ in range(6)]
    evidence = make_world(lists, relevant)
    individual, overall = (metric(gamma=gamma).measure(evidence)[0].value for metric in METRICS)
    assert 0 <= overall <= individual + 1e-12
    renamed = rng.permutation(4)
    permuted = make_world(
        [renamed[row].tolist() for row in lists], [renamed[row].tolist() for row in relevant]
    )
    assert IndividualExposure(gamma=gamma).measure(permuted)[0].value == pytest.approx(individual)
