from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MissingEvidence
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import collect_warnings
from recbias.metrics.popularity.coverage import Entropy, Gini, ItemCoverage
from support.worlds.evidence_worlds import (
    make_evidence,
    make_lists,
    make_user_queries,
    make_vocabulary,
)

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


@pytest.mark.parametrize(
    ("metric", "expected"), [(ItemCoverage(), 1.0), (Gini(), 0.0), (Entropy(), 2.0)]
)
def test_value_is_best_if_all_candidates_are_recommended_equally_often(
    metric: Any, expected: float
) -> None:
    assert measure(metric, make_lists_evidence([[0, 1], [2, 3]])).value == pytest.approx(expected)


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
def test_all_items_are_candidates_without_training_interactions(metric: Any) -> None:
    lists = [[0, 1], [2, 4]]
    every = np.ones(5, dtype=bool)
    bare = measure(metric(), make_lists_evidence(lists, candidates=None))
    assert bare.value == measure(metric(), make_lists_evidence(lists, candidates=every)).value


@pytest.mark.parametrize("metric", METRICS)
def test_queries_with_empty_lists_count(metric: Any) -> None:
    measurement = measure(metric(), make_lists_evidence([[0, 1], [], [2]]))
    assert (measurement.n, measurement.undefined) == (3, 0)
    assert math.isnan(measurement.std)
    assert measurement.units is None


@pytest.mark.parametrize(
    ("metric", "expected"), [(ItemCoverage(), 0.0), (Gini(), math.nan), (Entropy(), math.nan)]
)
def test_empty_lists_have_coverage_0_and_undefined_inequality(
    metric: Any, expected: float
) -> None:
    measurement = measure(metric, make_lists_evidence([[], []], n_bootstrap=5))
    assert measurement.value == pytest.approx(expected, nan_ok=True)
    assert (measurement.n, measurement.undefined) == ((0, 2) if math.isnan(expected) else (2, 0))
    assert measurement.replicates is not None
    assert measurement.replicates == pytest.approx(np.full(5, expected), nan_ok=True)


@pytest.mark.filterwarnings("ignore:.*not a candidate")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "evidence",
    [
        make_lists_evidence([], n_bootstrap=5),
        make_lists_evidence([[0]], candidates=np.zeros(5, dtype=bool), n_bootstrap=5),
    ],
    ids=["no query", "no candidate"],
)
def test_estimate_is_nan_without_queries_or_candidates(metric: Any, evidence: Evidence) -> None:
    measurement = measure(metric(), evidence)
    assert math.isnan(measurement.value)
    assert measurement.replicates is not None
    assert np.isnan(measurement.replicates).all()
    assert measurement.replicates.shape == (5,)


@pytest.mark.parametrize("metric", METRICS)
def test_missing_lists_raise_missing_evidence(metric: Any) -> None:
    assert metric.unit == ""
    with pytest.raises(MissingEvidence, match="needs lists"):
        metric().measure(Evidence(queries=make_user_queries(1), item_ids=make_vocabulary("i", 2)))


@pytest.mark.filterwarnings("ignore:.*not a candidate")
@pytest.mark.parametrize("metric", METRICS)
def test_replicates_equal_the_estimates_of_resampled_lists(metric: Any) -> None:
    rng = np.random.default_rng(3)
    items = [rng.permutation(5)[: rng.integers(0, 4)].tolist() for _ in range(30)]
    measurement = measure(metric(), make_lists_evidence(items, n_bootstrap=40, bootstrap_seed=11))
    rng_samples = np.random.default_rng(11)
    expected = []
    for _ in range(40):
        sample = [items[query] for query in rng_samples.integers(30, size=30)]
        expected.append(measure(metric(), make_lists_evidence(sample, n_bootstrap=1)).value)
    assert measurement.replicates == pytest.approx(np.array(expected), rel=1e-12)
    half = 1.959963984540054 * float(np.std(expected, ddof=1))
    assert measurement.ci_low == pytest.approx(measurement.value - half, rel=1e-9)
    assert measurement.ci_high == pytest.approx(measurement.value + half, rel=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.rotating
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
    assert 0.7 < bootstrap / truth < 1.4
    measurement = measure_world(0, 200)
    assert measurement.ci_low < measurement.value < measurement.ci_high


@pytest.mark.parametrize("metric", METRICS)
def test_replicates_depend_on_the_seed(metric: Any) -> None:
    rng = np.random.default_rng(3)
    items = [rng.permutation(4)[:2].tolist() for _ in range(20)]
    first_run, second_run, other_seed = (
        measure(
            metric(), make_lists_evidence(items, n_bootstrap=50, bootstrap_seed=seed)
        ).replicates
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first_run, second_run)
    assert first_run is not None
    assert not np.array_equal(first_run, np.array(other_seed))


def test_models_share_their_bootstrap_samples() -> None:
    # a model whose lists hold one item more, 3, covers one candidate more on the very samples
    # that hold query 0
    lists_a, lists_b = [[0], [1], [0]], [[0, 3], [1], [0]]
    less, more = (
        measure(ItemCoverage(), make_lists_evidence(items, n_bootstrap=50)).replicates
        for items in (lists_a, lists_b)
    )
    rng = np.random.default_rng(0)
    has_query_0 = [0 in rng.integers(3, size=3) for _ in range(50)]
    assert less is not None
    assert more is not None
    assert (more - less).tolist() == [0.25 if has_query else 0.0 for has_query in has_query_0]


@given(seed=st.integers(0, 2**32 - 1))
def test_values_stay_in_range_and_do_not_depend_on_item_codes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = [rng.permutation(4)[: rng.integers(1, 4)].tolist() for _ in range(6)]
    renamed = rng.permutation(4)
    for metric, most in ((ItemCoverage(), 1.0), (Gini(), 0.75), (Entropy(), 2.0)):
        measurement = measure(metric, make_lists_evidence(items, n_bootstrap=3))
        assert 0 <= measurement.value <= most + 1e-12
        permuted = make_lists_evidence([renamed[row].tolist() for row in items], n_bootstrap=3)
        assert measure(metric, permuted).value == pytest.approx(measurement.value, rel=1e-12)
