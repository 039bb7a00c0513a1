from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.evidence import Evidence
from recbias.metrics.popularity import (
    CorrectedEntropy,
    CorrectedFSat,
    CorrectedGini,
    CorrectedJain,
    CorrectedQF,
    Entropy,
    FSat,
    Gini,
    IndividualExposure,
    ItemCoverage,
    Jain,
    OverallExposure,
)
from support.worlds.evidence_worlds import make_evidence, make_lists, measure_one

PAIRS = (
    (Jain, CorrectedJain),
    (ItemCoverage, CorrectedQF),
    (Entropy, CorrectedEntropy),
    (Gini, CorrectedGini),
)
"""The measures whose published correction is their reachable range, each with the corrected form.
"""
CORRECTED = (*(corrected for _, corrected in PAIRS), CorrectedFSat)


def make_lists_evidence(items: list[list[int]], n_items: int = 5, **fields: Any) -> Evidence:
    candidates = np.ones(n_items, dtype=bool)
    fields = {"candidates": candidates, "n_bootstrap": 5, **fields}
    return make_evidence(make_lists(items), n_items=n_items, **fields)


LISTS = [[0, 1], [0, 2], [0, 1]]
"""The counts of five candidates are 3, 2, 1, 0, 0; k = 2, S = 6, f = 1, r = 1."""


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (Jain(), 36 / (5 * 14)),
        (FSat(), 3 / 5),
        # J_min = 2/5, J_max = 36 / (5 (5 + 1 x 3)) = 0.9
        (CorrectedJain(), (36 / 70 - 0.4) / (0.9 - 0.4)),
        (CorrectedQF(), (3 - 2) / (5 - 2)),
        # H = 1/2 log 2 + 1/3 log 3 + 1/6 log 6; the most even counts are 2, 1, 1, 1, 1
        (
            CorrectedEntropy(),
            (math.log(2) / 2 + math.log(3) / 3 + math.log(6) / 6 - math.log(2))
            / (math.log(3) / 3 + 4 * math.log(6) / 6 - math.log(2)),
        ),
        # G = (0 + 2 x 2 + 4 x 3) / (5 x 6) = 16/30; G_min = 4 x 1 / (5 x 6); G_max = 1 - 2/5
        (CorrectedGini(), (16 / 30 - 4 / 30) / (18 / 30 - 4 / 30)),
        (CorrectedFSat(), (3 / 5 - 2 / 5) / (1 - 2 / 5)),
        # cut to one rank: counts 3, 0, ...: the same item for everybody
        *((metric(k=1), 0.0) for metric in (CorrectedJain, CorrectedQF, CorrectedEntropy)),
        (CorrectedGini(k=1), 1.0),
        # three recommendations for five candidates: the maximin share is 0
        (FSat(k=1), 1.0),
        (CorrectedFSat(k=1), 1.0),
    ],
)
def test_values_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    measurement = measure_one(metric, make_lists_evidence(LISTS))
    assert measurement.value == pytest.approx(expected, abs=1e-9)
    assert (measurement.n, measurement.undefined) == (3, 0)


def list_all_lists(lengths: tuple[int, ...], n_items: int) -> list[list[list[int]]]:
    """Return all lists of these lengths; the first is fixed, as items are interchangeable."""
    choices = [[list(c) for c in itertools.combinations(range(n_items), k)] for k in lengths]
    return [list(lists) for lists in itertools.product(choices[0][:1], *choices[1:])]


@pytest.mark.parametrize("lengths", [(2, 2, 2), (2, 2, 1), (3, 1, 1), (1, 1, 0)])
@pytest.mark.parametrize(("plain", "corrected"), PAIRS)
def test_corrected_values_are_rescaled_to_all_lists_that_are_possible(
    plain: Any, corrected: Any, lengths: tuple[int, ...]
) -> None:
    worlds = [make_lists_evidence(lists, 4, n_bootstrap=1) for lists in list_all_lists(lengths, 4)]
    plain_values = np.array([measure_one(plain(), world).value for world in worlds])
    low, high = plain_values.min(), plain_values.max()
    values = [measure_one(corrected(), world).value for world in worlds]
    assert values == pytest.approx((plain_values - low) / (high - low), abs=1e-9)


def test_the_published_correction_of_fsat_can_fall_below_0() -> None:
    # 20 recommendations of 10 candidates: share 2; items 0 to 3 are in 4 lists, 4 to 7 in one
    lists = [[0, 1, 2, 3, 4 + query] for query in range(4)]
    evidence = make_lists_evidence(lists, 10)
    assert measure_one(FSat(), evidence).value == 0.4
    assert measure_one(CorrectedFSat(), evidence).value == pytest.approx((0.4 - 0.5) / 0.5)


@pytest.mark.parametrize("metric", CORRECTED)
@pytest.mark.parametrize("lists", [[[]], [[], []], [[0, 1, 2, 3, 4]]])
def test_without_a_range_the_value_is_undefined(metric: Any, lists: list[list[int]]) -> None:
    measurement = measure_one(metric(), make_lists_evidence(lists))
    assert math.isnan(measurement.value)
    assert (measurement.n, measurement.undefined) == (0, len(lists))
    none = make_lists_evidence(lists, candidates=np.zeros(5, dtype=bool))
    with pytest.warns(UserWarning, match="not a candidate") if lists[0] else _expect_nothing():
        assert math.isnan(measure_one(metric(), none).value)


def _expect_nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.parametrize("metric", [FSat, CorrectedFSat])
def test_replicates_are_the_values_of_resampled_lists(metric: Any) -> None:
    rng = np.random.default_rng(3)
    items = [rng.permutation(6)[: rng.integers(1, 4)].tolist() for _ in range(20)]
    measurement = measure_one(
        metric(), make_lists_evidence(items, 6, n_bootstrap=20, bootstrap_seed=11)
    )
    samples = np.random.default_rng(11)
    expected = [
        measure_one(
            metric(),
            make_lists_evidence([items[query] for query in samples.integers(20, size=20)], 6),
        ).value
        for _ in range(20)
    ]
    assert measurement.replicates == pytest.approx(np.array(expected), abs=1e-9)


METRICS = (IndividualExposure, OverallExposure)


def make_world(lists: list[list[int]], relevant: list[list[int]], **fields: Any) -> Evidence:
    fields = {"candidates": np.ones(4, dtype=bool), "n_bootstrap": 5, **fields}
    return make_evidence(make_lists(lists, outside=["new"]), relevant, n_items=4, **fields)


def test_values_by_hand() -> None:
    # gamma 0.5: exposures 1 and 0.5; targets: item 0 alone 1; items 1 and 2 (1 + 0.5) / 2 = 0.75
    # query 0: (0, 0.5, 0, 0): 0.25 / 4;  query 1: (0.5, -0.75, 0.25, 0): 0.875 / 4
    evidence = make_world([[0, 1], [2, 0]], [[0], [1, 2]])
    (individual,) = IndividualExposure(gamma=0.5).measure(evidence)
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
