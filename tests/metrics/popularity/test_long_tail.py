from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.metrics.popularity import ACLT, APLT
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.popularity_worlds import (
    make_item_counts,
    make_popularity_evidence,
    measure_queries,
)
from support.worlds.small_worlds import make_interactions

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
def test_long_tail_is_outside_the_head(head: float, of: Any, expected: list[int]) -> None:
    lists = make_popularity_evidence([[0, 1, 2], [3, 4]])
    assert measure_queries(ACLT(head=head, head_of=of), lists) == expected
    shares = [expected[0] / 3, expected[1] / 2]
    assert measure_queries(APLT(head=head, head_of=of), lists) == pytest.approx(shares)


@pytest.mark.parametrize("metric", METRICS)
def test_items_of_unknown_popularity_are_in_neither_head_nor_tail(metric: Any) -> None:
    items = make_item_counts([100, 10, 10, 1, None])
    with collect_warnings() as warnings:
        values = measure_queries(
            metric(head=0.9, popularity="n_ratings"),
            make_popularity_evidence([[0, 2, 4, 5]], items=items),
        )
    # the head holds 0.9 of 121, that is items 0 and 1 (of 1 and 2, as popular, the lower code)
    assert values == [0.5 if metric is APLT else 1.0]
    outside, unknown = warnings
    assert outside.startswith("the metric: 1 positions of the lists hold no item of the catalogue")
    assert unknown.startswith(
        "the metric: 1 positions of the lists hold an item of unknown popularity"
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_aplt_is_aclt_divided_by_the_length_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train = make_interactions([(0, item) for item in rng.integers(0, 12, 30)], n_items=12)
    lists = [rng.permutation(12)[: rng.integers(1, 6)].tolist() for _ in range(4)]
    evidence = make_evidence(make_lists(lists), n_items=12, train=train)
    reversed_lists = make_evidence(
        make_lists([row[::-1] for row in lists]), n_items=12, train=train
    )
    number, share = (
        np.array(measure_queries(ACLT(), evidence)),
        np.array(measure_queries(APLT(), evidence)),
    )
    assert share == pytest.approx(number / [len(row) for row in lists])
    assert measure_queries(ACLT(), reversed_lists) == number.tolist()
