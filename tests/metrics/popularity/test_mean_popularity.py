from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.errors import OutOfRange
from recbias.core.evidence import Evidence
from recbias.data.demo import Demo
from recbias.metrics.popularity import ARP, LogPopularityDifference, PopularityLift
from support.worlds.evidence_worlds import make_evidence, make_lists, make_user_queries
from support.worlds.popularity_worlds import (
    make_item_counts,
    make_popularity_evidence,
    measure_popularity_lists,
    measure_queries,
)
from support.worlds.small_worlds import make_interactions

HISTORY_METRICS = (LogPopularityDifference, PopularityLift)


def test_arp_is_the_mean_popularity_of_the_list() -> None:
    assert measure_queries(ARP(), make_popularity_evidence([[1, 3], [0]])) == [1.5, 4.0]


def test_log_popularity_difference_by_hand() -> None:
    # u0: list {0, 1}: (ln 4 + ln 2) / 2 = 1.5 ln 2; history {0, 1, 2}: (2 + 1 + 0) ln 2 / 3 = ln 2
    # u1: list {2, 3}: 0;                            history {0, 1}: 1.5 ln 2
    values = measure_queries(LogPopularityDifference(), make_popularity_evidence([[0, 1], [2, 3]]))
    assert values == pytest.approx([0.5 * math.log(2), -1.5 * math.log(2)])


def test_popularity_lift_by_hand() -> None:
    # u0: list {0, 1}: 3; history {0, 1, 2}: 7/3; lift (3 - 7/3) / (7/3) = 2/7
    # u1: list {2, 3}: 1; history {0, 1}: 3;      lift -2/3
    assert measure_queries(
        PopularityLift(), make_popularity_evidence([[0, 1], [2, 3]])
    ) == pytest.approx([2 / 7, -2 / 3])


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
    assert values[0] == 0
    assert math.isnan(values[1])


def test_list_is_compared_with_the_history_of_its_user() -> None:
    # u2 alone chose item 0 only: a list of item 0 is neutral to it
    values = measure_queries(
        LogPopularityDifference(),
        make_popularity_evidence([[0]], queries=make_user_queries(1, users=[2])),
    )
    assert values == [0.0]


def test_listed_items_of_popularity_0_are_excluded_with_a_warning() -> None:
    # u0: list {4, 0} without 4: ln 4; history {0, 1, 2}: ln 2
    # u1: no item remains
    with collect_warnings() as warnings:
        values = measure_queries(
            LogPopularityDifference(), make_popularity_evidence([[4, 0], [4], [0]])
        )
    assert values == [pytest.approx(math.log(2)), pytest.approx(math.nan, nan_ok=True), 0.0]
    message = "2 positions of the lists hold an item of popularity 0 and are excluded"
    assert warnings == [f"the metric: {message}"]


def test_popularity_0_in_a_history_raises_an_error_that_names_the_first_items() -> None:
    train = make_interactions([(0, item) for item in range(9)], n_items=9)
    items = make_item_counts([1, 0, 0, 0, 0, 0, 0, 1, 1])
    of = make_evidence(make_lists([[0]]), n_items=9, train=train, items=items)
    metric = LogPopularityDifference(popularity="n_ratings")
    with pytest.raises(OutOfRange) as error:
        metric.measure(of)
    message = "6 item(s) of the histories have popularity 0, which has no logarithm"
    assert str(error.value) == f"smoothing: {message}: i1, i2, i3, i4, i5, ..."
    assert "smoothing: 1" in error.value.remedy
    smoothed = LogPopularityDifference(popularity="n_ratings", smoothing=1)
    # list ln 2; history (3 ln 2 + 6 ln 1) / 9
    assert measure_queries(smoothed, of) == pytest.approx([2 / 3 * math.log(2)])


def test_smoothing_is_added_to_every_popularity() -> None:
    # list {4, 0}: (ln 1 + ln 5) / 2; history of u0 {0, 1, 2}: (ln 5 + ln 3 + ln 2) / 3
    values = measure_queries(
        LogPopularityDifference(smoothing=1), make_popularity_evidence([[4, 0]])
    )
    assert values == pytest.approx([math.log(5) / 2 - math.log(30) / 3])


@pytest.mark.parametrize("metric", HISTORY_METRICS)
def test_history_counts_each_item_once(metric: Any) -> None:
    # the pair (0, 1) occurs twice: item 1 has popularity 2, and is one of two chosen items
    train = make_interactions([(0, 1), (0, 1), (0, 0), (1, 0), (2, 0), (3, 0)], n_items=5)
    values = measure_queries(metric(), make_popularity_evidence([[0]], train=train))
    expected = math.log(4) - 1.5 * math.log(2) if metric is LogPopularityDifference else 1 / 3
    assert values == pytest.approx([expected])


@pytest.mark.parametrize("metric", HISTORY_METRICS)
def test_planted_bias_is_measured(metric: Any, rng: np.random.Generator) -> None:
    # items 0-49 have twice the interactions of items 50-99; everyone chose from the second half
    # and is recommended from the first: ln 2 too popular, a lift of 1
    crowd = [(user, item) for item in range(50) for user in range(100, 140)]
    crowd += [(user, item) for item in range(50, 100) for user in range(100, 110)]
    chosen = [(user, 50 + (user + step) % 50) for user in range(50) for step in range(10)]
    train = make_interactions(crowd + chosen, n_items=100)
    lists = make_lists([rng.permutation(50)[:10].tolist() for _ in range(50)])
    of = make_evidence(lists, n_items=100, train=train)
    assert of.popularity[:50].tolist() == [40] * 50
    assert of.popularity[50:].tolist() == [20] * 50
    (measurement,) = metric().measure(of)
    assert measurement.value == pytest.approx(
        math.log(2) if metric is LogPopularityDifference else 1.0
    )


@pytest.mark.parametrize("metric", HISTORY_METRICS)
@given(
    given_=st.lists(st.integers(1, 10**6), min_size=1, max_size=12),
    chosen=st.lists(st.integers(1, 10**6), min_size=1, max_size=12),
    scale=st.sampled_from([2.0, 7.0, 0.125]),
)
def test_values_do_not_depend_on_scale_or_order(
    metric: Any, given_: list[float], chosen: list[float], scale: float
) -> None:
    of = metric(popularity="n_ratings")
    value = measure_popularity_lists(of, given_, chosen)
    assert measure_popularity_lists(
        of, [scale * count for count in given_], [scale * count for count in chosen]
    ) == (pytest.approx(value, rel=1e-9, abs=1e-9))
    turned = measure_popularity_lists(of, given_[::-1], chosen[::-1])
    assert turned == pytest.approx(value, rel=1e-9, abs=1e-12)
    sets = np.array(given_, dtype=float), np.array(chosen, dtype=float)
    assert metric().compare_sets(*sets) == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert metric().compare_sets(sets[0], sets[0]) == pytest.approx(0.0, abs=1e-12)


@given(
    given_=st.lists(st.integers(1, 10**6), min_size=1, max_size=12),
    chosen=st.lists(st.integers(1, 10**6), min_size=1, max_size=12),
)
def test_log_difference_is_antisymmetric_and_lift_its_reciprocal(
    given_: list[float], chosen: list[float]
) -> None:
    log = LogPopularityDifference(popularity="n_ratings")
    assert measure_popularity_lists(log, given_, chosen) == pytest.approx(
        -measure_popularity_lists(log, chosen, given_)
    )
    lift = PopularityLift(popularity="n_ratings")
    forward, backward = (
        measure_popularity_lists(lift, given_, chosen),
        measure_popularity_lists(lift, chosen, given_),
    )
    assert (1 + forward) * (1 + backward) == pytest.approx(1.0)


def random_lists(seed: int, popularity: float, n_users: int = 60) -> Evidence:
    """Random lists in a demo world; the column is the chance of a pick in a world of 0.8."""
    rng = np.random.default_rng(seed)
    demo = Demo(n_users=n_users, n_items=100, per_user=12, popularity=popularity)
    world = replace(demo, taste=0, preference=0, prominence=0).load(Path(), rng)
    assert world.items is not None
    lists = np.argsort(rng.random((n_users, 100)), axis=1)[:, :10]
    frame = world.items.frame.assign(chance=1000 / world.items.numbers("popularity_rank") ** 0.8)
    items = Attributes(world.items.ids, frame)
    return make_evidence(
        make_lists(lists.tolist()), n_items=100, train=world.interactions, items=items
    )


@pytest.mark.parametrize(
    ("popularity", "planted"),
    [
        (0.0, 0.0),  # everybody picks at random, as Random recommends
        # a first pick lies 0.8 (Σ_i p_i ln i - mean ln i) = -0.941 from a random item, p_i the
        # chance of rank i; later ones, of what is left, less: -0.73 over the picks of many users
        (0.8, None),
    ],
)
def test_intervals_cover_the_planted_bias(popularity: float, planted: float | None) -> None:
    metric = LogPopularityDifference(popularity="chance")
    if planted is None:
        planted = metric.measure(random_lists(12345, popularity, n_users=20_000))[0].value
        logs = np.log(np.arange(1, 101))
        first = 0.8 * float(np.average(logs, weights=np.exp(-popularity * logs)) - logs.mean())
        assert first < planted < 0.7 * first
    measurements = [metric.measure(random_lists(seed, popularity))[0] for seed in range(100)]
    covered = sum(
        measurement.ci_low <= planted <= measurement.ci_high for measurement in measurements
    )
    # 95 of 100, with a standard deviation of 2.2
    assert 88 <= covered <= 100
    assert np.mean([measurement.value for measurement in measurements]) == pytest.approx(
        planted, abs=0.025
    )
