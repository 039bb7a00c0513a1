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
from support.evidence_worlds import make_evidence, make_lists, make_user_queries, make_vocabulary

METRICS = (ItemCoverage, Gini, Entropy)
CANDIDATES = np.array([True, True, True, True, False])


def facts(items: list[list[int]], **others: Any) -> Evidence:
    """Lists over five items, of which the last is no candidate."""
    return make_evidence(make_lists(items), n_items=5, **{"candidates": CANDIDATES, **others})


def only(metric: Any, of: Evidence) -> Measurement:
    (found,) = metric.measure(of)
    assert isinstance(found, Measurement)
    return found


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # lists 0 1 | 0 2 | 0: counts 3, 1, 1, 0 of the four candidates
        (ItemCoverage(), 3 / 4),
        # ascending 0, 1, 1, 3: (-3 x 0 - 1 x 1 + 1 x 1 + 3 x 3) / (4 x 5)
        (Gini(), 9 / 20),
        # shares 0.6, 0.2, 0.2: 0.6 x 0.736966 + 0.4 x 2.321928 = 1.370951 bits
        (Entropy(), 1.370951),
        # cut to one place: counts 3, 0, 0, 0
        (ItemCoverage(k=1), 1 / 4),
        (Gini(k=1), 3 / 4),
        (Entropy(k=1), 0.0),
    ],
)
def test_worked_example(metric: Any, expected: float) -> None:
    found = only(metric, facts([[0, 1], [0, 2], [0]]))
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert (found.n, found.undefined) == (3, 0)


@pytest.mark.parametrize(
    ("metric", "expected"), [(ItemCoverage(), 1.0), (Gini(), 0.0), (Entropy(), 2.0)]
)
def test_every_candidate_alike_is_the_best_there_is(metric: Any, expected: float) -> None:
    assert only(metric, facts([[0, 1], [2, 3]])).value == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_items_that_are_no_candidates_are_left_out_and_said(metric: Any) -> None:
    lists = make_lists(
        [[0, 4, 5], [1, 2]], outside=["new"]
    )  # 4 is no candidate, 5 not even an item
    with collect_warnings() as notes:
        found = only(metric(), make_evidence(lists, n_items=5, candidates=CANDIDATES))
    assert found.value == only(metric(), facts([[0], [1, 2]])).value
    assert notes == ["the metric: 2 places hold no candidate, and are left out"]


@pytest.mark.parametrize("metric", METRICS)
def test_without_training_rows_the_catalogue_is_the_candidates(metric: Any) -> None:
    lists = [[0, 1], [2, 4]]
    every = np.ones(5, dtype=bool)
    bare = only(metric(), facts(lists, candidates=None))
    assert bare.value == only(metric(), facts(lists, candidates=every)).value


@pytest.mark.parametrize("metric", METRICS)
def test_it_is_one_figure_of_all_queries_that_were_asked(metric: Any) -> None:
    found = only(metric(), facts([[0, 1], [], [2]]))
    assert (found.n, found.undefined) == (3, 0)
    assert math.isnan(found.std)
    assert found.units is None


@pytest.mark.parametrize(
    ("metric", "expected"), [(ItemCoverage(), 0.0), (Gini(), math.nan), (Entropy(), math.nan)]
)
def test_lists_without_an_item_cover_nothing_and_spread_nothing(
    metric: Any, expected: float
) -> None:
    found = only(metric, facts([[], []], n_bootstrap=5))
    assert found.value == pytest.approx(expected, nan_ok=True)
    assert (found.n, found.undefined) == ((0, 2) if math.isnan(expected) else (2, 0))
    assert found.replicates is not None
    assert found.replicates == pytest.approx(np.full(5, expected), nan_ok=True)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "of",
    [facts([], n_bootstrap=5), facts([[0]], candidates=np.zeros(5, dtype=bool), n_bootstrap=5)],
    ids=["no query", "no candidate"],
)
def test_nothing_to_count_is_nan(metric: Any, of: Evidence) -> None:
    found = only(metric(), of)
    assert math.isnan(found.value)
    assert found.replicates is not None
    assert np.isnan(found.replicates).all()
    assert found.replicates.shape == (5,)


@pytest.mark.parametrize("metric", METRICS)
def test_lists_are_needed(metric: Any) -> None:
    assert metric.unit == ""
    with pytest.raises(MissingEvidence, match="needs lists"):
        metric().measure(Evidence(queries=make_user_queries(1), item_ids=make_vocabulary("i", 2)))


@pytest.mark.parametrize("metric", METRICS)
def test_samples_are_the_figure_of_resampled_lists(metric: Any) -> None:
    rng = np.random.default_rng(3)
    items = [rng.permutation(5)[: rng.integers(0, 4)].tolist() for _ in range(30)]
    found = only(metric(), facts(items, n_bootstrap=40, bootstrap_seed=11))
    draws = np.random.default_rng(11)
    expected = []
    for _ in range(40):
        sample = [items[place] for place in draws.integers(30, size=30)]
        expected.append(only(metric(), facts(sample, n_bootstrap=1)).value)
    assert found.replicates == pytest.approx(np.array(expected), rel=1e-12)
    half = 1.959963984540054 * float(np.std(expected, ddof=1))
    assert found.ci_low == pytest.approx(found.value - half, rel=1e-9)
    assert found.ci_high == pytest.approx(found.value + half, rel=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_the_spread_of_the_samples_is_that_of_other_users(metric: Any) -> None:
    """In worlds drawn anew the figure spreads as the samples of one world say it does."""
    chances = 1 / np.arange(1, 301) ** 0.8

    def world(seed: int) -> np.ndarray:
        drawn = np.random.default_rng(seed).gumbel(size=(400, 300)) + np.log(chances)
        return np.argsort(-drawn, axis=1)[:, :5]

    def measured(seed: int, samples: int) -> Any:
        lists = make_lists(world(seed).tolist())
        everything = np.ones(300, dtype=bool)
        of = make_evidence(lists, n_items=300, candidates=everything, n_bootstrap=samples)
        return only(metric(), of)

    truth = np.std([measured(seed, 1).value for seed in range(60)], ddof=1)
    said = np.mean([np.std(measured(seed, 200).replicates, ddof=1) for seed in range(5)])
    assert 0.7 < said / truth < 1.4
    one = measured(0, 200)
    assert one.ci_low < one.value < one.ci_high


@pytest.mark.parametrize("metric", METRICS)
def test_samples_depend_on_the_seed(metric: Any) -> None:
    rng = np.random.default_rng(3)
    items = [rng.permutation(4)[:2].tolist() for _ in range(20)]
    one, again, other = (
        only(metric(), facts(items, n_bootstrap=50, bootstrap_seed=seed)).replicates
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert one is not None
    assert not np.array_equal(one, np.array(other))


def test_two_models_see_the_same_samples() -> None:
    # a model whose lists hold one item more, 3, covers one candidate more on the very samples
    # that hold query 0
    one, two = [[0], [1], [0]], [[0, 3], [1], [0]]
    less, more = (
        only(ItemCoverage(), facts(items, n_bootstrap=50)).replicates for items in (one, two)
    )
    draws = np.random.default_rng(0)
    held = [0 in draws.integers(3, size=3) for _ in range(50)]
    assert less is not None
    assert more is not None
    assert (more - less).tolist() == [0.25 if each else 0.0 for each in held]


@given(seed=st.integers(0, 2**32 - 1))
def test_figures_stay_in_their_range_and_do_not_know_names(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = [rng.permutation(4)[: rng.integers(1, 4)].tolist() for _ in range(6)]
    renamed = rng.permutation(4)
    for metric, most in ((ItemCoverage(), 1.0), (Gini(), 0.75), (Entropy(), 2.0)):
        found = only(metric, facts(items, n_bootstrap=3))
        assert 0 <= found.value <= most + 1e-12
        other = facts([renamed[each].tolist() for each in items], n_bootstrap=3)
        assert only(metric, other).value == pytest.approx(found.value, rel=1e-12)
