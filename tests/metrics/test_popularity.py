from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.errors import MissingEvidence, OutOfRange, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.data.demo import Demo
from recbias.metrics.popularity import (
    ACLT,
    APLT,
    ARP,
    GiniDifference,
    HerfindahlDifference,
    LogPopularityDifference,
    PopularityLift,
    PopularityRankCorrelation,
)
from recbias.testing import check_metric
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.popularity_worlds import (
    make_item_counts,
    make_popularity_evidence,
    measure_queries,
)
from support.worlds.small_worlds import make_interactions

HISTORY_METRICS = (LogPopularityDifference, PopularityLift)


def test_arp_is_the_mean_popularity_of_the_list() -> None:
    assert measure_queries(ARP(), make_popularity_evidence([[1, 3], [0]])) == [1.5, 4.0]


def test_log_popularity_difference_by_hand() -> None:
    # u0: list {0, 1}: (ln 4 + ln 2) / 2 = 1.5 ln 2; history {0, 1, 2}: (2 + 1 + 0) ln 2 / 3 = ln 2
    # u1: list {2, 3}: 0;                            history {0, 1}: 1.5 ln 2
    world = make_popularity_evidence([[0, 1], [2, 3]])
    raw = [0.5 * math.log(2), -1.5 * math.log(2)]
    assert measure_queries(LogPopularityDifference(corrected=False), world) == pytest.approx(raw)
    # ln φ + 1 / (2 φ), for items of the user's own history - 1 / (2 φ)
    # u0: list -(1/8 + 1/4) / 2; history -(1/8 + 1/4 + 1/2) / 3
    # u1: list  (1/2 + 1/2) / 2; history -(1/8 + 1/4) / 2
    own = [-3 / 16 + 7 / 24, 1 / 2 + 3 / 16]
    corrected = [value + change for value, change in zip(raw, own, strict=True)]
    assert measure_queries(LogPopularityDifference(), world) == pytest.approx(corrected)


def test_popularity_lift_by_hand() -> None:
    # u0: list {0, 1}: 3; history {0, 1, 2}: 7/3; lift (3 - 7/3) / (7/3) = 2/7
    # u1: list {2, 3}: 1; history {0, 1}: 3;      lift -2/3
    world = make_popularity_evidence([[0, 1], [2, 3]])
    raw = PopularityLift(corrected=False)
    assert measure_queries(raw, world) == pytest.approx([2 / 7, -2 / 3])
    # the own interactions raise 3 and 7/3 of u0 by 1 each, and 3 of the history of u1
    # u0: 2/7 - 1 / (7/3) + 3 / (7/3)² = 2/7 - 3/7 + 27/49;  u1: 1/3 (1 + 1/3) - 1
    assert measure_queries(PopularityLift(), world) == pytest.approx([20 / 49, -5 / 9])


@pytest.mark.parametrize("metric", HISTORY_METRICS)
def test_the_corrected_mean_is_that_of_the_known_popularity(metric: Any) -> None:
    # users choose items with known chances, and lists are at random: counted, the items of a
    # history look more popular than they are, by each user's own interaction
    rng, chances = np.random.default_rng(5), 0.6 / np.arange(1, 41) ** 0.5
    items = make_item_counts((1e6 * chances).tolist())
    kinds = [metric(popularity="n_ratings"), metric(corrected=False), metric()]
    values = []
    for _ in range(20):
        chosen = rng.random((60, 40)) < chances
        chosen[:, 0] |= ~chosen.any(axis=1)
        train = make_interactions([(u, i) for u, i in np.argwhere(chosen).tolist()], n_items=40)
        lists = make_lists(rng.random((60, 40)).argsort(axis=1)[:, :8].tolist())
        world = make_evidence(lists, n_items=40, train=train, items=items)
        values.append([kind.measure(world)[0].value for kind in kinds])
    truth, raw, corrected = np.mean(values, axis=0)
    assert abs(corrected - truth) < abs(raw - truth) / 4


def test_listed_items_of_popularity_0_are_excluded_with_a_warning() -> None:
    # u0: list {4, 0} without 4: ln 4; history {0, 1, 2}: ln 2
    # u1: no item remains
    with collect_warnings() as warnings:
        values = measure_queries(
            LogPopularityDifference(corrected=False), make_popularity_evidence([[4, 0], [4], [0]])
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
        LogPopularityDifference(smoothing=1, corrected=False), make_popularity_evidence([[4, 0]])
    )
    assert values == pytest.approx([math.log(5) / 2 - math.log(30) / 3])


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
    (measurement,) = metric(corrected=False).measure(of)
    assert measurement.value == pytest.approx(
        math.log(2) if metric is LogPopularityDifference else 1.0
    )


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


PROFILE_HISTORY_METRICS = (GiniDifference, HerfindahlDifference)
METRICS = (*PROFILE_HISTORY_METRICS, PopularityRankCorrelation)


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


@given(seed=st.integers(0, 2**32 - 1))
def test_rank_correlation_equals_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train = make_interactions([(0, int(item)) for item in rng.integers(0, 30, 120)], n_items=30)
    items = rng.permutation(30)[:12].tolist()
    of = make_evidence(make_lists([items]), n_items=30, train=train)
    popularity = train.item_counts()[items]
    expected = spearmanr(popularity, -np.arange(12)).statistic
    assert measure_queries(PopularityRankCorrelation(), of) == pytest.approx([expected])


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


@pytest.mark.parametrize(
    ("head", "of", "expected"),
    [
        # 8 interactions: item 0 holds 4 of them, items 0 and 1 hold 6, items 0, 1 and 2 hold 7
        (0.0, "interactions", [3, 2]),
        (0.5, "interactions", [2, 2]),
        (0.75, "interactions", [1, 2]),
        (0.8, "interactions", [0, 2]),
        (1.0, "interactions", [0, 1]),  # the item without an interaction stays in the tail
        # 5 items: 0.2 is item 0, 0.4 items 0 and 1; 0.5 needs a third, item 2
        (0.0, "items", [3, 2]),
        (0.2, "items", [2, 2]),
        (0.4, "items", [1, 2]),
        (0.5, "items", [0, 2]),
        (1.0, "items", [0, 0]),
    ],
)
def test_long_tail_is_outside_the_head(head: float, of: Any, expected: list[int]) -> None:
    lists = make_popularity_evidence([[0, 1, 2], [3, 4]])
    assert measure_queries(ACLT(head=head, head_of=of), lists) == expected
    shares = [expected[0] / 3, expected[1] / 2]
    assert measure_queries(APLT(head=head, head_of=of), lists) == pytest.approx(shares)


@pytest.mark.parametrize("popularity", [None, "train"])
def test_popularity_train_counts_the_training_interactions(popularity: str | None) -> None:
    evidence = make_popularity_evidence([[0, 1]], item_counts=np.full(5, 9.0))
    assert measure_queries(ARP(popularity=popularity), evidence) == [3.0]


def test_popularity_all_counts_the_interactions_of_all_parts() -> None:
    # of 5 items: 4 2 1 1 0 in training, 0 0 1 3 1 held out
    counts = np.array([4.0, 2.0, 2.0, 4.0, 1.0])
    evidence = make_popularity_evidence([[0, 4], [3]], item_counts=counts)
    # u0: list (ln 4 + ln 1) / 2 = ln 2; history {0, 1, 2}: (2 + 1 + 1) ln 2 / 3
    # u1: list 2 ln 2; history {0, 1}: 1.5 ln 2
    raw = LogPopularityDifference(popularity="all", corrected=False)
    values = measure_queries(raw, evidence)
    assert values == pytest.approx([-math.log(2) / 3, math.log(2) / 2])
    assert measure_queries(ARP(popularity="all"), evidence) == [2.5, 4.0]


@pytest.mark.parametrize("over", ["list", "history", "test"])
def test_rank_correlation_meets_the_contract_of_metrics(over: Any) -> None:
    check_metric(PopularityRankCorrelation(over=over))
