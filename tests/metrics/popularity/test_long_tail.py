from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.metrics.popularity.long_tail import ACLT, APLT, in_tail
from support.evidence_worlds import make_evidence, make_lists
from support.popularity_worlds import make_item_counts, make_popularity_evidence, measure_queries
from support.worlds import make_interactions

METRICS = (APLT, ACLT)


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
def test_what_lies_outside_the_head(head: float, of: Any, expected: list[int]) -> None:
    lists = make_popularity_evidence([[0, 1, 2], [3, 4]])
    assert measure_queries(ACLT(head=head, head_of=of), lists) == expected
    shares = [expected[0] / 3, expected[1] / 2]
    assert measure_queries(APLT(head=head, head_of=of), lists) == pytest.approx(shares)


@pytest.mark.parametrize("metric", METRICS)
def test_only_the_first_k_places_count(metric: Any) -> None:
    whole, cut = (
        make_popularity_evidence([[0, 1, 2], [3, 1, 0]]),
        make_popularity_evidence([[0], [3]]),
    )
    assert measure_queries(metric(k=1), whole) == measure_queries(metric(), cut) == [0.0, 1.0]


@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_list_is_undefined_and_counted(metric: Any) -> None:
    (found,) = metric().measure(make_popularity_evidence([[0], []]))
    assert math.isnan(found.units.values[1])
    assert (found.n, found.undefined) == (1, 1)


@pytest.mark.parametrize("metric", METRICS)
def test_items_of_unknown_popularity_are_in_neither_part(metric: Any) -> None:
    items = make_item_counts([100, 10, 10, 1, None])
    with collect_warnings() as notes:
        found = measure_queries(
            metric(head=0.9, popularity="n_ratings"),
            make_popularity_evidence([[0, 2, 4, 5]], items=items),
        )
    # the head holds 0.9 of 121, that is items 0 and 1 (of 1 and 2, as popular, the lower code)
    assert found == [0.5 if metric is APLT else 1.0]
    (said,) = notes
    assert said.startswith("the metric: 2 places of the lists hold an item without a popularity")


def test_a_share_of_the_items_is_of_those_whose_popularity_is_known() -> None:
    popularity = np.array([3.0, np.nan, 2.0, np.nan, 1.0, 0.0])
    assert in_tail(popularity, 0.5, "items") == pytest.approx(
        np.array([0, np.nan, 0, np.nan, 1, 1]), nan_ok=True
    )


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_missing_is_said(metric: Any) -> None:
    with pytest.raises(MissingEvidence, match="needs train"):
        metric().measure(make_popularity_evidence([[0]], train=None))
    with pytest.raises(MissingEvidence, match="needs items"):
        metric(popularity="n_ratings").measure(make_popularity_evidence([[0]]))
    with pytest.raises(UnknownColumn) as error:
        metric(popularity="n_rating").check(
            make_popularity_evidence([[0]], items=make_item_counts([1, 1, 1, 1, 1]))
        )
    assert error.value.where == "popularity"


@given(seed=st.integers(0, 2**32 - 1))
def test_the_share_is_the_number_by_the_length_and_order_does_not_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train = make_interactions([(0, item) for item in rng.integers(0, 12, 30)], n_items=12)
    lists = [rng.permutation(12)[: rng.integers(1, 6)].tolist() for _ in range(4)]
    of = make_evidence(make_lists(lists), n_items=12, train=train)
    turned = make_evidence(make_lists([each[::-1] for each in lists]), n_items=12, train=train)
    number, share = np.array(measure_queries(ACLT(), of)), np.array(measure_queries(APLT(), of))
    assert share == pytest.approx(number / [len(each) for each in lists])
    assert measure_queries(ACLT(), turned) == number.tolist()
