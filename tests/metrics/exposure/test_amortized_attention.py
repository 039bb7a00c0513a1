from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.metrics.exposure import AmortizedAttention
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.exposure_worlds import (
    list_exposures,
    list_items,
    list_relevant,
    make_exposure_evidence,
    make_random_world,
    measure_one,
)


def test_value_equals_that_worked_by_hand() -> None:
    # u0: attention 4/7, 2/7, 1/7 to 0, 2, 3; relevant 2 and 4, half each
    # u1: attention 2/3, 1/3 to 3, 1; relevant 0 and 3, half each
    # sums of the differences: 1/14, 1/3, -3/14, 13/42, -1/2 of the items 0 to 4
    measurement = measure_one(AmortizedAttention(gamma=0.5), make_exposure_evidence())
    assert measurement.value == pytest.approx(
        (1 / 14 + 1 / 3 + 3 / 14 + 13 / 42 + 1 / 2) / 2 / 5, abs=1e-12
    )
    assert (measurement.n, measurement.undefined) == (2, 0)


def test_lists_that_are_unfair_alone_can_be_fair_together() -> None:
    # both items are relevant to both users, and each is first once
    evidence = make_evidence(make_lists([[0, 1], [1, 0]]), [[0, 1], [0, 1]], n_items=3)
    assert measure_one(AmortizedAttention(), evidence).value == pytest.approx(0.0, abs=1e-12)


def test_queries_without_relevant_items_are_excluded_and_empty_lists_count() -> None:
    evidence = make_exposure_evidence([[0], [2], []], [[0], [], [3]])
    measurement = measure_one(AmortizedAttention(), evidence)
    assert measurement.value == pytest.approx(1 / 2 / 5)  # item 3 gets nothing from u2
    assert (measurement.n, measurement.undefined) == (2, 1)
    nothing = measure_one(AmortizedAttention(), make_exposure_evidence([[0]], [[]]))
    assert math.isnan(nothing.value)
    assert (nothing.n, nothing.undefined) == (0, 1)


@given(seed=st.integers(0, 2**32 - 1))
def test_value_equals_a_plain_loop(seed: int) -> None:
    evidence = make_random_world(seed)
    sums = np.zeros(9)
    judged = 0
    for query in range(5):
        relevant = list_relevant(evidence, query)
        if not relevant:
            continue
        judged += 1
        exposure = list_exposures(list_items(evidence, query))
        for item, share in exposure.items():
            sums[item] += share / sum(exposure.values())
        sums[relevant] -= 1 / len(relevant)
    candidates: Any = evidence.candidates
    value = measure_one(AmortizedAttention(), evidence).value
    if not judged:
        assert math.isnan(value)
        return
    assert value == pytest.approx(np.abs(sums[candidates] / judged).mean(), abs=1e-12)
    assert 0 <= value <= 2 / np.count_nonzero(candidates) + 1e-12
