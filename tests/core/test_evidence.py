from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import csr_array

from recbias.core.dataset import FloatArray, Matrix, Odds
from recbias.core.errors import BrokenContract, MissingEvidence
from recbias.core.evidence import (
    REMEDIES,
    Evidence,
    RankedLists,
    check_lists,
    rank_ideal_lists,
    weigh_lists,
)
from recbias.core.measures import Measurement, UnitScores, limit_interval, read_bounds
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary


@pytest.mark.parametrize("kind", sorted(REMEDIES))
def test_missing_evidence_names_the_metric_and_the_remedy(kind: str) -> None:
    evidence = Evidence(
        queries=make_user_queries(1), item_ids=make_vocabulary("i", 2), metric="nDCG"
    )
    with pytest.raises(MissingEvidence, match=f"nDCG needs {kind}") as caught:
        evidence.need(kind)
    assert caught.value.remedy == REMEDIES[kind]


def make_histories(rows: list[list[int]], n_items: int) -> Any:
    dense = np.zeros((len(rows), n_items))
    for row, items in enumerate(rows):
        dense[row, items] = 1.0
    return csr_array(dense)


def test_hand_worked_lists() -> None:
    # types 0 and 1 like the items in the orders 3 2 1 0 and 0 1 2 3; user 0 is of type 1 and has
    # had item 0; user 1 is of type 0 and item 2 is no candidate; the third query is no user
    odds = Odds(np.array([[0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]]), np.array([1, 0]))
    users = np.array([0, 1, -1], dtype=np.int32)
    histories = make_histories([[0], [], []], 4)
    candidates = np.array([True, True, False, True])
    lists = rank_ideal_lists(odds, users, histories, candidates, 3)
    assert lists.tolist() == [[1, 3, -1], [3, 1, 0], [-1, -1, -1]]
    # relative to the best item of each user, e^-1 and e^-3; e^0, e^-2 and e^-3
    np.testing.assert_allclose(
        weigh_lists(odds, users, lists),
        [
            [np.exp(-1.0), np.exp(-3.0), 0.0],
            [1.0, np.exp(-2.0), np.exp(-3.0)],
            [np.nan, np.nan, np.nan],
        ],
    )


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6))
def test_lists_are_those_of_a_sort_of_every_user_by_itself(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    n_users, n_items = 5, 6
    odds = Odds(rng.integers(0, 4, (3, n_items)).astype(float), rng.integers(0, 3, n_users))
    had = rng.random((n_users, n_items)) < 0.4
    candidates = rng.random(n_items) < 0.8
    users = rng.integers(-1, n_users, 7).astype(np.int32)
    lists = rank_ideal_lists(odds, users, csr_array(had[users].astype(float)), candidates, k)
    for user, row in zip(users, lists.tolist(), strict=True):
        free = [i for i in range(n_items) if user >= 0 and candidates[i] and not had[user, i]]
        likes = odds.by_type[odds.types[user]]
        best = sorted(free, key=lambda item: (-likes[item], item))[:k]
        assert row == best + [-1] * (k - len(best))


NAN = float("nan")


def make_lists(
    items: list[list[int]], scores: list[list[float]] | None = None, outside: int = 0
) -> RankedLists:
    codes = np.array(items, dtype=np.int32)
    values = np.full(codes.shape, np.nan) if scores is None else np.array(scores)
    names = np.array([f"x{item}" for item in range(outside)], dtype=object)
    return RankedLists(codes, values.astype(np.float32), names)


def check(lists: RankedLists, *, n_queries: int | None = None, seen: Matrix | None = None) -> None:
    n_lists = len(lists) if n_queries is None else n_queries
    check_lists(lists, n_queries=n_lists, seen=seen, n_items=5, model="mine")


@pytest.mark.parametrize(
    ("lists", "violation"),
    [
        (make_lists([[0, 1, 0]]), "an item twice in 1 lists, the first for query 0"),
        (make_lists([[0, 1], [2, 2], [3, 3]]), "an item twice in 2 lists, the first for query 1"),
        (make_lists([[0, -1, 1]]), "an item after an empty position"),
        (make_lists([[0, 5]]), "codes outside -1 to 4"),
        (make_lists([[0, 1, 2]], [[3, NAN, 1]]), "a score of NaN"),
        (make_lists([[0, 1, 2]], [[1, 3, 2]]), "scores that increase"),
    ],
)
def test_a_violation_is_named(lists: RankedLists, violation: str) -> None:
    with pytest.raises(BrokenContract) as caught:
        check(lists)
    assert violation in str(caught.value)
    assert str(caught.value).startswith("mine returned ")
    assert caught.value.remedy


def test_another_number_of_lists_is_a_violation() -> None:
    with pytest.raises(BrokenContract, match="2 lists for 3 queries"):
        check(make_lists([[0], [1]]), n_queries=3)


def make_units(values: list[float]) -> UnitScores:
    ids = np.array([f"u{user}" for user in range(len(values))], dtype=object)
    return UnitScores("user", ids, np.array(values, dtype=np.float64))


def test_mean_standard_deviation_and_interval_of_four_units() -> None:
    # mean 0.5; squares 4 x 0.25 over 3 = 1/3, sd 0.577350; t(0.975; 3) = 3.182446
    # half = 3.182446 x 0.577350 / 2 = 0.918693
    measurement = Measurement.from_units(make_units([0, 1, 1, 0]))
    assert measurement.value == 0.5
    assert measurement.std == pytest.approx(0.577350, abs=1e-6)
    assert measurement.ci_low == pytest.approx(0.5 - 0.918693, abs=1e-6)
    assert measurement.ci_high == pytest.approx(0.5 + 0.918693, abs=1e-6)
    assert (measurement.n, measurement.undefined) == (4, 0)


def test_undefined_units_are_counted_and_excluded_from_the_mean() -> None:
    measurement = Measurement.from_units(
        make_units([1, math.nan, 3]), group="race=black", target="price=$"
    )
    assert (measurement.value, measurement.n, measurement.undefined) == (2, 2, 1)
    assert (measurement.group, measurement.target) == ("race=black", "price=$")
    assert len(measurement.units.values) == 3


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_the_interval_agrees_with_scipy(values: list[float]) -> None:
    measurement = Measurement.from_values(np.array(values))
    sem = np.std(values, ddof=1) / math.sqrt(len(values))
    half = stats.t.ppf(0.975, len(values) - 1) * sem
    assert measurement.ci_high - measurement.value == pytest.approx(half, rel=1e-6, abs=1e-6)
    assert measurement.value - measurement.ci_low == pytest.approx(half, rel=1e-6, abs=1e-6)


def test_a_proportion_has_wilsons_interval() -> None:
    # 8 of 10: centre (0.8 + 3.8415/20) / (1 + 0.38415) = 0.716740; half 0.226579
    ids = np.array([str(user) for user in range(10)], dtype=object)
    scores = UnitScores("user", ids, np.array([1.0] * 8 + [0.0] * 2), share=True)
    measurement = Measurement.from_units(scores)
    expected = stats.binomtest(8, 10).proportion_ci(method="wilson")
    assert (measurement.ci_low, measurement.ci_high) == pytest.approx(
        (expected.low, expected.high), abs=1e-9
    )


INF = math.inf


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("0 to 1; undefined for an empty list", (0, 1)),
        ("-1 to 1: 1 for identical lists", (-1, 1)),
        ("0 to 100", (0, 100)),
        ("0 to 1, at most 2 / n; undefined without a query", (0, 1)),
        ("0 to 1 - 1/|C|; undefined if no list holds a candidate", (0, 1)),
        ("at most 1, and rarely below 0", (-INF, 1)),
        ("-1 or more; undefined for an empty list", (-1, INF)),
        ("0 to log2 |C| bits", (0, INF)),
        # a multiple of an unknown number is no bound, and neither is a number further on
        ("0 to 2 |C|", (0, INF)),
        ("0 to 2 / n", (0, INF)),
        ("Any number, at most 2", (-INF, INF)),
        ("That of the ratings: 0 to 2 for the scale", (-INF, INF)),
        ("", (-INF, INF)),
    ],
)
def test_bounds_are_the_numbers_at_the_start(text: str, bounds: tuple[float, float]) -> None:
    assert read_bounds(text) == bounds


def make_scores(values: FloatArray) -> UnitScores:
    ids = np.arange(values.size).astype(str).astype(object)
    return UnitScores("query", ids, values)


def test_equal_values_of_few_units_have_an_interval_with_a_width() -> None:
    # q = 1 - 0.025^(1/4) = 0.6024: 0.25 - q 0.25 and 0.25 + q 0.75
    measured = Measurement.from_units(make_scores(np.array([0.25] * 4 + [np.nan])))
    assert (measured.ci_low, measured.ci_high) == (0.25, 0.25)
    limited = limit_interval(measured, (0.0, 1.0))
    assert limited.ci_low == pytest.approx(0.0994, abs=1e-4)
    assert limited.ci_high == pytest.approx(0.7018, abs=1e-4)
    assert (limited.value, limited.std, limited.n) == (0.25, 0.0, 4)


@pytest.mark.parametrize(("n", "rare"), [(3, 0.3), (5, 0.1), (20, 0.04), (60, 0.02)])
def test_coverage_in_a_population_in_which_few_users_have_another_value(
    n: int, rare: float
) -> None:
    """A share of the users has a value between 0 and 1, the others have 0: the mean is half it."""
    rng, n_worlds = np.random.default_rng(1), 4_000
    samples = np.where(rng.random((n_worlds, n)) < rare, rng.random((n_worlds, n)), 0.0)
    measured = [Measurement.from_units(make_scores(values)) for values in samples]
    limited = [limit_interval(each, (0.0, 1.0)) for each in measured]
    students, widened = (
        np.mean([each.ci_low <= rare / 2 <= each.ci_high for each in rows])
        for rows in (measured, limited)
    )
    assert students <= 1 - (1 - rare) ** n + 0.03  # it never holds the mean where all are equal
    assert widened >= 0.9


@pytest.mark.parametrize(
    "lists",
    [
        RankedLists(np.zeros((1, 2), np.int32), np.zeros((1, 3), np.float32)),
        RankedLists(np.zeros((1, 2), np.float32), np.zeros((1, 2), np.float32)),
        RankedLists(np.zeros(2, np.int32), np.zeros(2, np.float32)),
    ],
)
def test_arrays_of_another_shape_or_type_are_a_violation(lists: RankedLists) -> None:
    with pytest.raises(BrokenContract, match="returned items"):
        check_lists(lists, n_queries=1, seen=None, n_items=5, model="mine")
