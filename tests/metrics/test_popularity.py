"""Table 1 of Lichtenberg et al. (Gen-IR 2024): the desiderata of measures of popularity bias."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import spearmanr

from recbias.core.context import collect_warnings
from recbias.core.dataset import AnyArray, Attributes, FloatArray
from recbias.core.errors import MissingEvidence, OutOfRange, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.data.demo import Demo
from recbias.metrics.popularity import (
    ACLT,
    APLT,
    ARP,
    Entropy,
    Gini,
    GiniDifference,
    HerfindahlDifference,
    ItemCoverage,
    LogPopularityDifference,
    PopREO,
    PopRSP,
    PopularityLift,
    PopularityRankCorrelation,
    _correlate_with_rank,
    gini_of_rows,
)
from recbias.reports import published
from recbias.testing import check_metric
from support.worlds.evidence_worlds import make_evidence, make_lists, measure_one, measure_queries
from support.worlds.popularity_worlds import TRAIN, make_item_counts, make_popularity_evidence
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


def test_items_without_a_value_are_left_out_of_the_gini_index_of_a_row() -> None:
    # 1 and 3: (-1 x 1 + 1 x 3) / (2 x 4); the third item has no value
    rows = csr_array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    assert gini_of_rows(rows, np.array([3.0, 1.0, np.nan])).tolist() == [0.25, 0.0]


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


COVERAGE_METRICS = (ItemCoverage, Gini, Entropy)
CANDIDATES = np.array([True, True, True, True, False])


def make_lists_evidence(items: list[list[int]], **fields: Any) -> Evidence:
    """Return lists over five items, of which the last is not a candidate."""
    return make_evidence(make_lists(items), n_items=5, **{"candidates": CANDIDATES, **fields})


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
    measurement = measure_one(metric, make_lists_evidence([[0, 1], [0, 2], [0]]))
    assert measurement.value == pytest.approx(expected, abs=1e-6)
    assert (measurement.n, measurement.undefined) == (3, 0)


@pytest.mark.parametrize("metric", COVERAGE_METRICS)
def test_items_that_are_not_candidates_are_excluded_with_a_warning(metric: Any) -> None:
    lists = make_lists(
        [[0, 4, 5], [1, 2]], outside=["new"]
    )  # 4 is not a candidate, 5 not even an item
    with collect_warnings() as warnings:
        measurement = measure_one(metric(), make_evidence(lists, n_items=5, candidates=CANDIDATES))
    assert measurement.value == measure_one(metric(), make_lists_evidence([[0], [1, 2]])).value
    message = "positions of the lists hold an item that is not a candidate and are excluded"
    assert warnings == [f"the metric: 2 {message}"]


@pytest.mark.parametrize("metric", COVERAGE_METRICS)
def test_replicates_are_sums_of_what_each_list_changes(metric: Any) -> None:
    rng = np.random.default_rng(3)
    items = [rng.permutation(4)[: rng.integers(1, 3)].tolist() for _ in range(12)]
    measurement = measure_one(
        metric(), make_lists_evidence(items, n_bootstrap=40, bootstrap_seed=11)
    )
    left = np.array(
        [
            measure_one(metric(), make_lists_evidence(items[:query] + items[query + 1 :])).value
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
    replicates = measure_one(Gini(), evidence).replicates
    assert replicates is not None
    by_hand = math.sqrt(2 / 3 * (25 + 25 + 100)) / 72
    assert float(np.std(replicates)) == pytest.approx(by_hand, rel=0.02)
    assert float(np.mean(replicates)) == pytest.approx(9 / 20, abs=0.005)


@pytest.mark.parametrize("metric", COVERAGE_METRICS)
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
        return measure_one(metric(), evidence)

    truth = np.std([measure_world(seed, 1).value for seed in range(60)], ddof=1)
    bootstrap = np.mean([np.std(measure_world(seed, 200).replicates, ddof=1) for seed in range(5)])
    most = 1.8 if metric is ItemCoverage else 1.4  # items of few lists: it is conservative
    assert 0.7 < bootstrap / truth < most
    measurement = measure_world(0, 200)
    assert measurement.ci_low < measurement.value < measurement.ci_high


PARITY_METRICS = (PopREO, PopRSP)


def make_lists_evidence_parity(
    lists: list[list[int]], relevant: list[list[int]] | None = None, **fields: Any
) -> Evidence:
    """Return lists over five items; the last has no interaction and is not a candidate."""
    defaults = {"train": TRAIN, "n_items": 5, "candidates": TRAIN.item_counts() > 0, **fields}
    return make_evidence(make_lists(lists, outside=["new"]), relevant, **defaults)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # head 0.75 of 8 interactions: items 0 and 1; tail: 2 and 3
        # lists 0 2 | 2 3 | 1 | 1 2 of users with {0 1 2} {0 1} {0} {0 3}
        # REO: test items 3 | 2 | 1 2 | 1:
        # of the head 2 (recommended 1 1), of the tail 3 (recommended 2)
        # P_head = 2/2, P_tail = 1/3: (1 - 1/3) / (1 + 1/3) = 1/2
        (PopREO(head=0.75), 1 / 2),
        # RSP: of the head recommended 0 | | 1 | 1, 3 in all; could be 0 + 0 + 1 + 1 = 2 of items
        # that users do not have; of the tail 2 | 2 3 | | 2, 4; could be 1 + 2 + 2 + 1 = 6
        # P_head = 3/2 (a list that holds what the user has), P_tail = 4/6:
        # (3/2 - 2/3) / (3/2 + 2/3) = 5/13
        (PopRSP(head=0.75), 5 / 13),
        # cut to one rank 0 | 2 | 1 | 1: REO finds 2 of 2 and 1 of 3
        (PopREO(head=0.75, k=1), 1 / 2),
        # RSP: 3/2 of the head, 1/6 of the tail: (9/6 - 1/6) / (10/6)
        (PopRSP(head=0.75, k=1), 4 / 5),
    ],
)
def test_values_equal_those_worked_by_hand_parity(metric: Any, expected: float) -> None:
    measurement = measure_one(
        metric, make_lists_evidence_parity([[0, 2], [2, 3], [1], [1, 2]], [[3], [2], [1, 2], [1]])
    )
    assert measurement.value == pytest.approx(expected)
    assert (measurement.n, measurement.undefined) == (4, 0)
    assert measurement.units is None


def test_recommending_every_possible_item_is_parity() -> None:
    # everybody is recommended every candidate that they do not have: both chances are 1
    measurement = measure_one(
        PopRSP(head=0.75), make_lists_evidence_parity([[3], [2, 3], [1, 2, 3], [1, 2]])
    )
    assert measurement.value == pytest.approx(0.0)


@pytest.mark.parametrize("metric", PARITY_METRICS)
def test_replicates_equal_the_estimates_of_resampled_queries(metric: Any) -> None:
    rng = np.random.default_rng(3)
    pairs = [(user, int(item)) for user in range(30) for item in rng.permutation(12)[:4]]
    pairs += [(user, 0) for user in range(30) if (user, 0) not in pairs]

    def build_world(users: Any, n_bootstrap: int) -> Evidence:
        resampled = [
            (new, item) for new, old in enumerate(users) for user, item in pairs if user == old
        ]
        lists = [np.random.default_rng(user).permutation(12)[:3].tolist() for user in users]
        test = [np.random.default_rng(99 + user).permutation(12)[:5].tolist() for user in users]
        popular = make_item_counts([float(24 - user) for user in range(12)])
        return make_evidence(
            make_lists(lists),
            test,
            n_items=12,
            train=make_interactions(resampled, n_items=12),
            items=popular,
            candidates=np.ones(12, dtype=bool),
            n_bootstrap=n_bootstrap,
            bootstrap_seed=11,
        )

    of = metric(head=0.4, head_of="items", popularity="n_ratings")
    measurement = measure_one(of, build_world(range(30), 25))
    draws = np.random.default_rng(11)
    samples = [draws.integers(30, size=30) for _ in range(25)]
    expected = [measure_one(of, build_world(sample.tolist(), 1)).value for sample in samples]
    # a sample in which the other group is the favoured one is negative
    assert measurement.replicates is not None
    assert np.abs(measurement.replicates) == pytest.approx(np.array(expected), rel=1e-12)
    half = 1.959963984540054 * float(np.std(measurement.replicates, ddof=1))
    assert measurement.ci_low == pytest.approx(measurement.value - half, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*not candidates")
def test_candidates_default_to_items_with_training_interactions() -> None:
    lists = [[0, 2], [2, 3], [1, 4], [1, 2]]
    bare, named = (
        measure_one(PopRSP(), make_lists_evidence_parity(lists, **fields))
        for fields in ({"candidates": None}, {})
    )
    assert bare.value == named.value


N_PAIRS, SIZE = 400, 8
DESIDERATA_METRICS: dict[str, Any] = {
    "Average popularity lift": PopularityLift,
    "Gini index": GiniDifference,
    "Herfindahl diversity": HerfindahlDifference,
    "Log popularity difference": LogPopularityDifference,
}

Compare = Callable[[FloatArray, FloatArray], FloatArray]


def make_comparison(system: str) -> Compare:
    """Return the value of pairs of a recommended and a consumed set, ``float64[p, n]`` each."""
    if system not in DESIDERATA_METRICS:
        return lambda recommended, _: _correlate_with_rank(recommended)
    metric = DESIDERATA_METRICS[system]()

    def aggregate(sets: FloatArray) -> FloatArray:
        starts = np.arange(0, sets.size + 1, sets.shape[1])
        rows = csr_array((np.ones(sets.size), np.arange(sets.size), starts))
        values: FloatArray = type(metric).aggregate(rows, metric._transform(sets.ravel()))
        return values

    return lambda recommended, consumed: metric._compare(
        aggregate(recommended), aggregate(consumed)
    )


def sample(coefficient: Any, size: int, rng: np.random.Generator) -> FloatArray:
    """Sample popularities of a power law, P(X > x) = x ** -coefficient."""
    return np.asarray((1.0 - rng.random((N_PAIRS, size))) ** (-1.0 / coefficient))


def increase(sets: FloatArray, columns: AnyArray, by: FloatArray) -> FloatArray:
    sets = sets.copy()
    sets[np.arange(len(sets)), columns] += by
    return sets


def is_well_behaved(compare: Compare, rng: np.random.Generator) -> bool:
    """Few pairs of a law without a mean do not dominate; larger sets do not spread more."""
    squares = [compare(*(sample(0.68, size, rng) for _ in "xy")) ** 2 for size in (8, 64, 512)]
    is_spread = all(part.max() <= 0.2 * part.sum() for part in squares)
    return is_spread and bool(squares[-1].mean() <= 1.25**2 * squares[0].mean())


def is_more_sensitive_in_the_tail(compare: Compare, x: FloatArray, y: FloatArray) -> bool:
    lowest, second = np.sort(x, axis=1)[:, :2].T
    step = np.minimum(second - lowest, 0.01 * lowest) / 2  # keeps the order
    least, most = (
        np.abs(compare(increase(x, columns, step), y) - compare(x, y))
        for columns in (x.argmin(axis=1), x.argmax(axis=1))
    )
    return bool((least > most * (1.0 + 1e-6)).all())


def is_monotone(compare: Compare, x: FloatArray, y: FloatArray) -> bool:
    before, columns = compare(x, y), np.arange(SIZE)[:, None].repeat(N_PAIRS, axis=1)
    return all(
        (compare(increase(x, item, 0.1 * x[:, item[0]]), y) > before).all()
        and (compare(x, increase(y, item, 0.1 * y[:, item[0]])) < before).all()
        for item in columns
    )


@pytest.mark.parametrize("system", [*DESIDERATA_METRICS, "Popularity rank correlation"])
def test_desiderata_equal_table_1(system: str) -> None:
    folder = Path(published.__file__).parent / "published_data" / "wok"
    table = pd.read_csv(folder / "1.csv")
    rows = table[table["metric"].str.startswith("desideratum") & (table["system"] == system)]
    compare, rng = make_comparison(system), np.random.default_rng(20240603)
    x, y = (sample(np.exp(rng.uniform(-0.35, 2.3, (N_PAIRS, 1))), SIZE, rng) for _ in "xy")
    met = (
        is_well_behaved(compare, rng),
        np.allclose(compare(x, rng.permuted(x, axis=1)), 0.0, atol=1e-9),
        np.allclose(compare(x, y), -compare(y, x)),
        is_more_sensitive_in_the_tail(compare, x, y),
        is_monotone(compare, x, y),
    )
    printed = rows.sort_values("metric")["value"].tolist()
    assert ["yes" if each else "no" for each in met] == printed
