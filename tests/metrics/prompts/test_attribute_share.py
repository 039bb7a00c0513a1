from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.metrics.templates.metrics import AttributeShare
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_random_prompts,
)

ITEMS = make_priced_items(["$", "$", "$$", None])
QUERIES = cross_names(make_names(1), 2)
PRICE = AttributeShare(attribute="price")
# $: 2 of 2, 1 of 2, 0 of 1; the last list has no price
HAND = make_prompt_evidence(QUERIES, [[0, 1], [0, 2], [2, 3], [3]], ITEMS)


def test_shares_of_the_lists_by_hand() -> None:
    with collect_warnings() as notes:
        cheap, dear = PRICE.measure(HAND)
    assert (cheap.target, dear.target) == ("price=$", "price=$$")
    assert (cheap.value, dear.value) == ((1 + 1 / 2) / 3, (1 / 2 + 1) / 3)
    assert (cheap.n, cheap.undefined) == (3, 1)
    assert cheap.units is not None
    assert np.isnan(cheap.units.values[3])
    message = "2 positions of the lists hold an item without price and are excluded"
    assert notes == [f"the metric: {message}"]


def test_shares_of_the_items_by_hand() -> None:
    cheap, dear = AttributeShare(attribute="price", of="items").measure(HAND)
    assert (cheap.value, dear.value) == pytest.approx((2 / 3, 1 / 3))
    assert (cheap.n, cheap.undefined) == (3, 1)
    assert cheap.units is not None
    assert cheap.units.unit == "item"


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_shares_of_one_value_each_sum_to_one_and_agree_with_a_loop(seed: int) -> None:
    queries, codes, items = make_random_prompts(np.random.default_rng(seed))
    with collect_warnings():
        estimates = PRICE.measure(make_prompt_evidence(queries, codes.tolist(), items))
    if estimates[0].n:
        assert sum(estimate.value for estimate in estimates) == pytest.approx(1.0)
    prices = items.column("price").tolist()
    for estimate in estimates:
        shares = []
        for row in codes.tolist():
            priced = [prices[item] for item in row if item >= 0 and prices[item] is not None]
            if priced:
                shares.append(priced.count(estimate.target.partition("=")[2]) / len(priced))
        assert estimate.value == pytest.approx(
            np.mean(shares) if shares else math.nan, nan_ok=True
        )


def test_a_missing_attribute_is_refused() -> None:
    with pytest.raises(UnknownColumn):
        AttributeShare(attribute="prize").check(HAND)
    with pytest.raises(NothingLeft):
        PRICE.check(make_prompt_evidence(QUERIES, [[0]] * 4, make_priced_items([None])))
    assert PRICE.needs_now() == {"lists", "items"}
    assert AttributeShare(attribute="price", of="items").needs_now() == {"items"}
