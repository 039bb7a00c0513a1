from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from recbias.core.dataset import Attributes
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.data.demo import Demo
from recbias.metrics.popularity import (
    GiniDifference,
    HerfindahlDifference,
    PopularityRankCorrelation,
)
from support.worlds.evidence_worlds import make_evidence, make_lists, make_user_queries
from support.worlds.popularity_worlds import (
    TRAIN,
    make_item_counts,
    make_popularity_evidence,
    measure_popularity_lists,
    measure_queries,
)
from support.worlds.small_worlds import make_interactions

HISTORY_METRICS = (GiniDifference, HerfindahlDifference)
METRICS = (*HISTORY_METRICS, PopularityRankCorrelation)

POPULARITIES = st.lists(st.integers(1, 10**6), min_size=1, max_size=12)


def test_gini_difference_by_hand() -> None:
    # list {0, 1}: popularities 4 2; ascending (-1 x 2 + 1 x 4) / (2 x 6) = 1/6
    # history of u0 {0, 1, 2}: ascending 1 2 4: (-2 x 1 + 2 x 4) / (3 x 7) = 2/7
    # list {2, 3}: 1 1: 0; history of u1 {0, 1}: 1/6
    values = measure_queries(GiniDifference(), make_popularity_evidence([[0, 1], [2, 3]]))
    assert values == pytest.approx([1 / 6 - 2 / 7, -1 / 6])


def test_herfindahl_difference_by_hand() -> None:
    # list {0, 1}: (4/6)² + (2/6)² = 20/36; history of u0: (16 + 4 + 1) / 49 = 21/49
    # list {2, 3}: 1/2; history of u1: 20/36
    values = measure_queries(HerfindahlDifference(), make_popularity_evidence([[0, 1], [2, 3]]))
    assert values == pytest.approx([20 / 36 - 21 / 49, 1 / 2 - 20 / 36])


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([0, 1, 2], 1.0),  # popularities 4 2 1, falling from the top
        ([2, 1, 0], -1.0),
        # 2 4 1: ranks 2 3 1 against heights 3 2 1: 1 - 6 (1 + 1 + 0) / (3 x 8) = 0.5
        ([1, 0, 2], 0.5),
        # 1 1 2, ranks 1.5 1.5 3 against 3 2 1: covariance -1.5, spreads √1.5 and √2
        ([2, 3, 1], -1.5 / math.sqrt(3)),
        ([2, 3], math.nan),  # as popular
        ([0], math.nan),
        ([], math.nan),
    ],
)
def test_rank_correlation_by_hand(items: list[int], expected: float) -> None:
    values = measure_queries(
        PopularityRankCorrelation(), make_popularity_evidence([items, [0, 1]])
    )
    assert values == pytest.approx([expected, 1.0], nan_ok=True)


def test_undefined_queries_are_counted() -> None:
    (measurement,) = PopularityRankCorrelation().measure(
        make_popularity_evidence([[0, 1], [2, 3], [0]])
    )
    assert (measurement.value, measurement.n, measurement.undefined) == (1.0, 1, 2)


def test_rank_correlation_over_the_history() -> None:
    # u0 has 0 1 2: of the list 3 1 0 that leaves 1 0, popularities 2 4
    # u1 has 0 1: of 0 2 1 that leaves 0 1, popularities 4 2; u2 has 0 alone
    values = measure_queries(
        PopularityRankCorrelation(over="history"),
        make_popularity_evidence([[3, 1, 0], [0, 2, 1], [0, 1]]),
    )
    assert values == pytest.approx([-1.0, 1.0, math.nan], nan_ok=True)


def test_rank_correlation_over_the_test_items() -> None:
    of = make_evidence(make_lists([[0, 2, 1], [0, 1]]), [[1, 2], [1]], n_items=5, train=TRAIN)
    # of the first list the places of 2 and 1 count: popularities 1 2; of the second only one
    values = measure_queries(PopularityRankCorrelation(over="test"), of)
    assert values == pytest.approx([-1.0, math.nan], nan_ok=True)
    assert PopularityRankCorrelation(over="test").needs_now() == {"lists", "train", "test"}
    with pytest.raises(MissingEvidence, match="needs test"):
        PopularityRankCorrelation(over="test").measure(make_popularity_evidence([[0, 1]]))


@given(seed=st.integers(0, 2**32 - 1))
def test_rank_correlation_equals_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train = make_interactions([(0, int(item)) for item in rng.integers(0, 30, 120)], n_items=30)
    items = rng.permutation(30)[:12].tolist()
    of = make_evidence(make_lists([items]), n_items=30, train=train)
    popularity = train.item_counts()[items]
    expected = spearmanr(popularity, -np.arange(12)).statistic
    assert measure_queries(PopularityRankCorrelation(), of) == pytest.approx([expected])


@pytest.mark.parametrize("metric", HISTORY_METRICS)
@pytest.mark.parametrize("user", [-1, 4])
def test_a_query_without_history_is_undefined(metric: Any, user: int) -> None:
    train = make_interactions([(0, 0), (1, 1)], n_users=5, n_items=5)
    values = measure_queries(
        metric(),
        make_popularity_evidence(
            [[0], [0]], queries=make_user_queries(2, users=[0, user]), train=train
        ),
    )
    assert values == pytest.approx([0.0, math.nan], nan_ok=True)


@pytest.mark.parametrize("metric", METRICS)
def test_missing_evidence_and_columns_raise_errors(metric: Any) -> None:
    with pytest.raises(MissingEvidence, match="needs train"):
        metric().measure(make_popularity_evidence([[0]], train=None))
    with pytest.raises(MissingEvidence, match="needs items"):
        metric(popularity="n_ratings").measure(make_popularity_evidence([[0]]))
    with pytest.raises(UnknownColumn) as error:
        metric(popularity="n_rating").check(
            make_popularity_evidence([[0]], items=make_item_counts([1, 1, 1, 1, 1]))
        )
    assert error.value.where == "popularity"


@pytest.mark.parametrize("metric", HISTORY_METRICS)
@given(given_=POPULARITIES, chosen=POPULARITIES, scale=st.sampled_from([2.0, 7.0, 0.125]))
def test_differences_are_antisymmetric_and_independent_of_scale_and_order(
    metric: Any, given_: list[float], chosen: list[float], scale: float
) -> None:
    of = metric(popularity="n_ratings")
    value = measure_popularity_lists(of, given_, chosen)
    assert -1 <= value <= 1
    assert measure_popularity_lists(of, chosen, given_) == pytest.approx(-value, abs=1e-12)
    larger = ([scale * count for count in counts] for counts in (given_, chosen))
    assert measure_popularity_lists(of, *larger) == pytest.approx(value, abs=1e-9)
    assert measure_popularity_lists(of, given_[::-1], chosen[::-1]) == pytest.approx(
        value, abs=1e-12
    )
    sets = np.array(given_, dtype=float), np.array(chosen, dtype=float)
    assert metric().compare_sets(*sets) == pytest.approx(value, abs=1e-12)


@given(given_=st.lists(st.integers(1, 10**6), min_size=2, max_size=12))
def test_rank_correlation_changes_sign_with_the_order_and_depends_on_ranks_only(
    given_: list[float],
) -> None:
    of = PopularityRankCorrelation(popularity="n_ratings")
    value = measure_popularity_lists(of, given_, [1])
    turned = measure_popularity_lists(of, given_[::-1], [1])
    assert turned == pytest.approx(-value, nan_ok=True, abs=1e-12)
    cubed = measure_popularity_lists(of, [count**3 for count in given_], [1])
    assert cubed == pytest.approx(value, nan_ok=True)
    sets = PopularityRankCorrelation().compare_sets(np.array(given_, dtype=float), np.ones(1))
    assert sets == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("metric", [GiniDifference, PopularityRankCorrelation])
def test_intervals_cover_0_without_bias(metric: Any) -> None:
    """Users pick ten items at random, and are recommended ten others at random."""
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        chances = rng.random((60, 100)).argsort(axis=1)
        train = make_interactions(
            [(u, int(i)) for u in range(60) for i in chances[u, :10]], n_items=100
        )
        frame = Demo(n_users=2, n_items=100, per_user=2).load(Path(), rng).items
        assert frame is not None
        items = Attributes(train.item_ids, frame.frame)
        lists = make_lists(chances[:, 10:20].tolist())
        of = make_evidence(lists, n_items=100, train=train, items=items)
        (measurement,) = metric(popularity="popularity_rank").measure(of)
        covered += measurement.ci_low <= 0.0 <= measurement.ci_high
    # 95 of 100, with a standard deviation of 2.2
    assert 88 <= covered <= 100
