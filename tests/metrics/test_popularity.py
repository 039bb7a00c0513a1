from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence_worlds import asked, evidence, ranked, words
from recbias.core.attributes import Attributes
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.core.notes import noting
from recbias.metrics.popularity import APLT, ARP, LogPopularityDifference, PopularityLift
from worlds import rows

METRICS = (ARP, LogPopularityDifference, PopularityLift, APLT)
AGAINST_HISTORY = (LogPopularityDifference, PopularityLift)

# item:        0  1  2  3  4
# popularity:  4  2  1  1  0
# histories:   u0 {0, 1, 2}, u1 {0, 1}, u2 {0}, u3 {0, 3}
TRAIN = rows([(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (0, 2), (3, 3)], n_items=5)


def facts(lists: list[list[int]], **others: Any) -> Evidence:
    return evidence(ranked(lists, outside=["new"]), **{"n_items": 5, "train": TRAIN, **others})


def values(metric: Any, of: Evidence) -> list[float]:
    (found,) = metric.measure(of)
    return found.units.values.tolist()  # type: ignore[no-any-return]


def counted(column: list[float | None]) -> Attributes:
    return Attributes(words("i", 5), pd.DataFrame({"n_ratings": column}, dtype=np.float64))


def test_arp_is_the_mean_popularity_of_the_list() -> None:
    assert values(ARP(), facts([[1, 3], [0]])) == [1.5, 4.0]


def test_log_popularity_difference_by_hand() -> None:
    # u0: list {0, 1}: (ln 4 + ln 2) / 2 = 1.5 ln 2; history {0, 1, 2}: (2 + 1 + 0) ln 2 / 3 = ln 2
    # u1: list {2, 3}: 0;                            history {0, 1}: 1.5 ln 2
    found = values(LogPopularityDifference(), facts([[0, 1], [2, 3]]))
    assert found == pytest.approx([0.5 * math.log(2), -1.5 * math.log(2)])


def test_popularity_lift_by_hand() -> None:
    # u0: list {0, 1}: 3; history {0, 1, 2}: 7/3; lift (3 - 7/3) / (7/3) = 2/7
    # u1: list {2, 3}: 1; history {0, 1}: 3;      lift -2/3
    assert values(PopularityLift(), facts([[0, 1], [2, 3]])) == pytest.approx([2 / 7, -2 / 3])


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        # 8 interactions: item 0 holds 4 of them, items 0 and 1 hold 6, items 0, 1 and 2 hold 7
        (0.0, [1.0, 1.0]),
        (0.5, [2 / 3, 1.0]),
        (0.75, [1 / 3, 1.0]),
        (0.8, [0.0, 1.0]),
        (1.0, [0.0, 0.5]),  # the item without an interaction stays in the tail
    ],
)
def test_aplt_is_the_share_outside_the_head(head: float, expected: list[float]) -> None:
    assert values(APLT(head=head), facts([[0, 1, 2], [3, 4]])) == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_only_the_first_k_places_count(metric: Any) -> None:
    whole, cut = facts([[0, 1, 2], [3, 1, 0]]), facts([[0], [3]])
    assert values(metric(k=1), whole) == values(metric(), cut)


@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_list_is_undefined_and_counted(metric: Any) -> None:
    (found,) = metric().measure(facts([[0], []]))
    assert math.isnan(found.units.values[1])
    assert (found.n, found.undefined) == (1, 1)


@pytest.mark.parametrize("metric", AGAINST_HISTORY)
@pytest.mark.parametrize("user", [-1, 4])
def test_a_query_without_history_is_undefined(metric: Any, user: int) -> None:
    train = rows([(0, 0), (1, 1)], n_users=5, n_items=5)
    found = values(metric(), facts([[0], [0]], queries=asked(2, users=[0, user]), train=train))
    assert found[0] == 0
    assert math.isnan(found[1])


def test_queries_have_the_history_of_their_own_user() -> None:
    # u2 alone chose item 0 only: a list of item 0 is neutral to it
    found = values(LogPopularityDifference(), facts([[0]], queries=asked(1, users=[2])))
    assert found == [0.0]


@pytest.mark.parametrize("metric", METRICS)
def test_items_outside_the_catalogue_are_left_out_and_said(metric: Any) -> None:
    with noting() as notes:
        found = values(metric(), facts([[5, 0], [1]]))
    assert found == values(metric(), facts([[0], [1]]))
    assert len(notes) == 1
    assert "the metric: 1 places of the lists hold an item without a popularity" in notes[0]


def test_an_item_without_interactions_has_no_logarithm_but_a_popularity_of_zero() -> None:
    with noting() as notes:
        found = values(LogPopularityDifference(), facts([[4, 0], [4]]))
    assert found[0] == pytest.approx(math.log(4) - math.log(2))
    assert math.isnan(found[1])
    assert len(notes) == 1
    with noting() as notes:
        assert values(ARP(), facts([[4, 0], [4]])) == [2.0, 0.0]
        assert values(PopularityLift(), facts([[4], [4]])) == [-1.0, -1.0]
    assert not notes


def test_a_column_of_the_items_can_stand_for_popularity() -> None:
    items = counted([100, 10, 10, 1, None])
    found = values(LogPopularityDifference(popularity="n_ratings"), facts([[0]], items=items))
    # list ln 100; history of u0 {0, 1, 2}: (2 + 1 + 1) ln 10 / 3
    assert found == pytest.approx([2 / 3 * math.log(10)])
    assert values(ARP(popularity="n_ratings"), facts([[0, 1]], items=items)) == [55.0]
    # the head holds 0.9 of 121, that is items 0 and 1 (of 1 and 2, as popular, the lower code)
    aplt = values(APLT(head=0.9, popularity="n_ratings"), facts([[0, 1, 2, 3, 4]], items=items))
    assert aplt == [0.5]  # of the four whose popularity is known


@pytest.mark.parametrize("metric", METRICS)
def test_missing_and_negative_cells_are_unknown(metric: Any) -> None:
    items = counted([4, 2, 1, None, -3])
    with noting() as notes:
        found = values(metric(popularity="n_ratings"), facts([[0, 3, 4]], items=items))
    assert found == values(metric(popularity="n_ratings"), facts([[0]], items=items))
    assert "2 places" in notes[0]


@pytest.mark.parametrize("metric", METRICS)
def test_a_column_that_is_not_there_is_an_error(metric: Any) -> None:
    with pytest.raises(MissingEvidence, match="the metric needs items"):
        metric(popularity="n_ratings").measure(facts([[0]]))
    with pytest.raises(UnknownColumn, match="no column 'n_rating'"):
        metric(popularity="n_rating").measure(facts([[0]], items=counted([1, 1, 1, 1, 1])))


@pytest.mark.parametrize("metric", METRICS)
def test_training_rows_are_needed(metric: Any) -> None:
    assert metric.needs == {"lists", "train"}
    with pytest.raises(MissingEvidence, match="needs train"):
        metric().measure(facts([[0]], train=None))


@pytest.mark.parametrize("metric", AGAINST_HISTORY)
def test_a_history_counts_each_item_once(metric: Any) -> None:
    # the pair (0, 1) stands twice: item 1 has popularity 2, and is one of two chosen items
    train = rows([(0, 1), (0, 1), (0, 0), (1, 0), (2, 0), (3, 0)], n_items=5)
    (found,) = values(metric(), facts([[0]], train=train))
    expected = math.log(4) - 1.5 * math.log(2) if metric is LogPopularityDifference else 1 / 3
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("metric", AGAINST_HISTORY)
def test_a_planted_bias_is_found_with_its_size(metric: Any, rng: np.random.Generator) -> None:
    # items 0-49 have twice the interactions of items 50-99; everyone chose from the second half
    # and is recommended from the first: ln 2 too popular, a lift of 1
    crowd = [(user, item) for item in range(50) for user in range(100, 140)]
    crowd += [(user, item) for item in range(50, 100) for user in range(100, 110)]
    chosen = [(user, 50 + (user + step) % 50) for user in range(50) for step in range(10)]
    train = rows(crowd + chosen, n_items=100)
    lists = ranked([rng.permutation(50)[:10].tolist() for _ in range(50)])
    of = evidence(lists, n_items=100, train=train)
    assert of.popularity[:50].tolist() == [40] * 50
    assert of.popularity[50:].tolist() == [20] * 50
    (found,) = metric().measure(of)
    assert found.value == pytest.approx(math.log(2) if metric is LogPopularityDifference else 1.0)


@given(seed=st.integers(0, 2**32 - 1))
def test_log_difference_is_antisymmetric_and_scale_free(seed: int) -> None:
    """Swapping list and history turns the sign; counting everything c times changes nothing."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(1, 1000, size=5).astype(float)
    one, two = rng.permutation(5)[:2].tolist(), rng.permutation(5)[:3].tolist()
    metric = LogPopularityDifference(popularity="n_ratings")

    def found(list_: list[int], history: list[int], scale: float) -> float:
        train = rows([(0, item) for item in history], n_items=5)
        items = counted((numbers * scale).tolist())
        return values(metric, facts([list_], train=train, items=items))[0]

    assert found(one, two, 1) == pytest.approx(-found(two, one, 1), abs=1e-12)
    assert found(one, two, 7) == pytest.approx(found(one, two, 1), abs=1e-9)
    assert found(one, one, 1) == 0
