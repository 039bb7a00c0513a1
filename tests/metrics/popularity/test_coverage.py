from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics.popularity import Entropy, Gini, ItemCoverage
from support.worlds.evidence_worlds import make_evidence, make_lists

METRICS = (ItemCoverage, Gini, Entropy)
CANDIDATES = np.array([True, True, True, True, False])


def make_lists_evidence(items: list[list[int]], **fields: Any) -> Evidence:
    """Return lists over five items, of which the last is not a candidate."""
    return make_evidence(make_lists(items), n_items=5, **{"candidates": CANDIDATES, **fields})


def measure(metric: Any, evidence: Evidence) -> Measurement:
    (measurement,) = metric.measure(evidence)
    assert isinstance(measurement, Measurement)
    return measurement


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # lists 0 1 | 0 2 | 0: counts 3, 1, 1, 0 of the four candidates
        (ItemCoverage(), 3 / 4),
        # ascending 0, 1, 1, 3: (-3 x 0 - 1 x 1 + 1 x 1 + 3 x 3) / (4 x 5)
        (Gini(), 9 / 20),
        # shares 0.6, 0.2, 0.2: 0.6 x 0.736966 + 0.4 x 2.321928 = 1.370951 bits
        (Entropy(), 1.370951),
        # cut to one rank: counts 3, 0, 0, 0
        (ItemCoverage(k=1), 1 / 4),
        (Gini(k=1), 3 / 4),
        (Entropy(k=1), 0.0),
    ],
)
def test_values_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    measurement = measure(metric, make_lists_evidence([[0, 1], [0, 2], [0]]))
    assert measurement.value == pytest.approx(expected, abs=1e-6)
    assert (measurement.n, measurement.undefined) == (3, 0)


@pytest.mark.parametrize("metric", METRICS)
def test_items_that_are_not_candidates_are_excluded_with_a_warning(metric: Any) -> None:
    lists = make_lists(
        [[0, 4, 5], [1, 2]], outside=["new"]
    )  # 4 is not a candidate, 5 not even an item
    with collect_warnings() as warnings:
        measurement = measure(metric(), make_evidence(lists, n_items=5, candidates=CANDIDATES))
    assert measurement.value == measure(metric(), make_lists_evidence([[0], [1, 2]])).value
    message = "positions of the lists hold an item that is not a candidate and are excluded"
    assert warnings == [f"the metric: 2 {message}"]


@pytest.mark.parametrize("metric", METRICS)
def test_replicates_are_sums_of_what_each_list_changes(metric: Any) -> None:
    rng = np.random.default_rng(3)
    items = [rng.permutation(4)[: rng.integers(1, 3)].tolist() for _ in range(12)]
    measurement = measure(metric(), make_lists_evidence(items, n_bootstrap=40, bootstrap_seed=11))
    left = np.array(
        [
            measure(metric(), make_lists_evidence(items[:query] + items[query + 1 :])).value
            for query in range(12)
        ]
    )
    parts = math.sqrt(11 / 12) * (left.mean() - left)
    samples = np.random.default_rng(11)
    expected = np.array([parts[samples.integers(12, size=12)].sum() for _ in range(40)])
    assert measurement.df == 11
    assert measurement.replicates is not None
    deviations = measurement.replicates - measurement.value
    if metric is not ItemCoverage:
        assert deviations == pytest.approx(expected, abs=1e-12)
    half = 2.200985160 * float(np.std(measurement.replicates, ddof=1))  # t(0.975; 11)
    assert measurement.ci_low == pytest.approx(measurement.value - half, rel=1e-8)
    high = measurement.value + half
    high = min(high, 2.0) if metric is Entropy else high  # log2 of 4 candidates
    assert measurement.ci_high == pytest.approx(high, rel=1e-8)


def test_standard_error_of_gini_equals_one_worked_by_hand() -> None:
    # lists 0 1 | 0 2 | 0: the counts without each are 2 0 1 0 (7/12), 2 1 0 0 (7/12) and 2 1 1 0
    # (3/8); the deviations from their mean are 5/72, 5/72 and -10/72
    evidence = make_lists_evidence([[0, 1], [0, 2], [0]], n_bootstrap=20_000)
    replicates = measure(Gini(), evidence).replicates
    assert replicates is not None
    by_hand = math.sqrt(2 / 3 * (25 + 25 + 100)) / 72
    assert float(np.std(replicates)) == pytest.approx(by_hand, rel=0.02)
    assert float(np.mean(replicates)) == pytest.approx(9 / 20, abs=0.005)


@pytest.mark.parametrize("metric", METRICS)
def test_bootstrap_spread_equals_the_spread_over_new_users(metric: Any) -> None:
    """The standard error of one world equals the standard deviation over new worlds."""
    chances = 1 / np.arange(1, 301) ** 0.8

    def sample_lists(seed: int) -> np.ndarray:
        scores = np.random.default_rng(seed).gumbel(size=(400, 300)) + np.log(chances)
        return np.argsort(-scores, axis=1)[:, :5]

    def measure_world(seed: int, samples: int) -> Any:
        lists = make_lists(sample_lists(seed).tolist())
        everything = np.ones(300, dtype=bool)
        evidence = make_evidence(lists, n_items=300, candidates=everything, n_bootstrap=samples)
        return measure(metric(), evidence)

    truth = np.std([measure_world(seed, 1).value for seed in range(60)], ddof=1)
    bootstrap = np.mean([np.std(measure_world(seed, 200).replicates, ddof=1) for seed in range(5)])
    most = 1.8 if metric is ItemCoverage else 1.4  # items of few lists: it is conservative
    assert 0.7 < bootstrap / truth < most
    measurement = measure_world(0, 200)
    assert measurement.ci_low < measurement.value < measurement.ci_high
