from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from recbias.core.context import collect_warnings
from recbias.core.errors import NothingLeft, OutOfRange
from recbias.metrics.exposure import AWRF
from support.worlds.exposure_worlds import (
    list_exposures,
    list_items,
    list_relevant,
    make_exposure_evidence,
    make_makers,
    make_random_world,
    measure_one,
    measure_queries,
    sum_makers,
)


def measure_awrf(lists: list[list[int]], **settings: Any) -> list[float]:
    metric = AWRF(attribute="maker", gamma=0.5, **settings)
    return measure_queries(metric, make_exposure_evidence(lists, [[2, 4], [0, 3]])).tolist()  # type: ignore[no-any-return]


def test_values_equal_those_worked_by_hand() -> None:
    # only a is shown, and each has half of the target: the mean of (1, 0) and (1/2, 1/2) is
    # (3/4, 1/4), and the divergence 1/2 (log2(4/3)) + 1/2 (1/2 log2(2/3) + 1/2 log2(2))
    divergence = 0.5 * math.log2(4 / 3) + 0.25 * math.log2(2 / 3) + 0.25
    only_a, both = measure_awrf([[0, 1], [3]], target="equal")
    assert only_a == pytest.approx(1 - divergence, abs=1e-12)
    assert both == 1.0  # item 3 is half of each


def test_targets_are_read_as_documented() -> None:
    shares = np.array([9 / 14, 5 / 14])  # the list 0 2 3: a 1 + 1/8, b 1/2 + 1/8
    targets: dict[Any, list[float]] = {
        "catalogue": [5 / 8, 3 / 8],  # candidates 0 1 3/2 and 2 3/2
        "interactions": [1 / 2, 1 / 2],  # of item 1 and of item 2
        "relevant": [0.0, 1.0],  # of u0: 2, and 4 without a maker
        "equal": [1 / 2, 1 / 2],
    }
    for target, due in targets.items():
        expected = 1 - jensenshannon(shares, due, base=2) ** 2
        value = measure_awrf([[0, 2, 3], [0]], target=target)[0]
        assert value == pytest.approx(expected, abs=1e-12), target
    given_shares = measure_awrf([[0, 2, 3], [0]], target={"a": 9 / 14, "b": 5 / 14})
    assert given_shares[0] == pytest.approx(1.0, abs=1e-12)
    # (1, 0) and (0, 1) have nothing in common
    assert measure_awrf([[0], [0]], target={"b": 1.0}) == [0.0, 0.0]


def test_lists_without_a_group_and_queries_without_relevant_items_are_undefined() -> None:
    evidence = make_exposure_evidence([[4], [], [0], [2]], [[0], [0], [], [4]])
    with collect_warnings() as warnings:
        anybody, relevant = (
            measure_one(AWRF(attribute="maker", target=target), evidence)
            for target in ("catalogue", "relevant")
        )
    assert (anybody.n, anybody.undefined) == (2, 2)
    assert (relevant.n, relevant.undefined) == (0, 4)
    message = "positions of the lists hold an item of no group of 'maker' and are excluded"
    assert warnings == [f"the metric: 1 {message}"] * 2


@given(seed=st.integers(0, 2**32 - 1), multiple=st.sampled_from(["split", "full"]))
def test_values_equal_scipy_and_stay_in_range(seed: int, multiple: Any) -> None:
    evidence = make_random_world(seed)
    with collect_warnings():
        values = measure_queries(
            AWRF(attribute="maker", target="relevant", multiple=multiple), evidence
        )
    for query, value in enumerate(values.tolist()):
        exposure = list_exposures(list_items(evidence, query))
        relevance = dict.fromkeys(list_relevant(evidence, query), 1.0)
        shares, due = (sum_makers(of, evidence, multiple) for of in (exposure, relevance))
        if not shares or not due:
            assert math.isnan(value)
            continue
        names = sorted({*shares, *due})
        pair = ([of.get(name, 0.0) for name in names] for of in (shares, due))
        assert value == pytest.approx(1 - jensenshannon(*pair, base=2) ** 2, abs=1e-9)
        assert 0 <= value <= 1


@given(seed=st.integers(0, 2**32 - 1))
def test_value_is_1_exactly_at_the_target(seed: int) -> None:
    evidence = make_random_world(seed, n_queries=1)
    totals = sum_makers(list_exposures(list_items(evidence, 0)), evidence)
    if not totals:
        return
    total = sum(totals.values())
    target = {name: share / total for name, share in totals.items()}
    with collect_warnings():
        at_target, catalogue = (
            measure_queries(AWRF(attribute="maker", target=of), evidence)[0]
            for of in (target, "catalogue")
        )
    assert at_target == pytest.approx(1.0, abs=1e-12)
    assert catalogue <= at_target + 1e-12


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"a": 0.5, "b": 0.4}, "sum to 0.9, not to 1"),
        ({"a": 1.5, "b": -0.5}, "the share of 'b' is -0.5"),
        ({"a": math.nan, "b": 1.0}, "the share of 'a' is nan"),
        ({}, "sum to 0, not to 1"),
    ],
)
def test_a_target_that_is_no_distribution_is_an_error(target: Any, message: str) -> None:
    with pytest.raises(OutOfRange, match=message) as error:
        AWRF(attribute="maker", target=target)
    assert error.value.where == "target"
    assert error.value.remedy


def test_groups_that_cannot_be_compared_are_an_error() -> None:
    metric = AWRF(attribute="maker")
    for makers, message in (
        (["a"] * 5 + ["b"], "only the group 'a' has an item that may be recommended"),
        ([None] * 5 + ["b"], "no group has an item that may be recommended"),
    ):
        with pytest.raises(NothingLeft, match=message) as error:
            metric.check(make_exposure_evidence(items=make_makers(makers)))
        assert error.value.where == "attribute"
    # a group of one item is compared
    one = make_exposure_evidence(items=make_makers(["a"] * 4 + ["b", None]))
    assert measure_one(metric, one).n == 2
