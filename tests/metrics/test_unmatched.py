from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from recbias.core.evidence import Responses
from recbias.core.measures import Measurement
from recbias.metrics.labels import Unmatched
from support.worlds.evidence_worlds import make_evidence, make_lists

LISTS = make_lists([[0, 1, 2], [3, 10, 11], [10], []], outside=["(unknown) A", "(watched) B"])
"""Three, one, no and no item of a catalogue of ten: codes 10 and 11 are outside."""


def make_responses(ids: list[str], **counts: list[int]) -> Responses:
    labels = pd.DataFrame({f"invalid.{name}": column for name, column in counts.items()})
    texts = np.full(len(ids), "text", dtype=object)
    return Responses(np.array(ids, dtype=object), texts, texts, labels.assign(prompt="?"))


def list_values(measurements: list[Measurement]) -> dict[str, list[float]]:
    return {
        measurement.target: measurement.units.values.tolist()  # type: ignore[union-attr]
        for measurement in measurements
    }


def assert_equal(values: list[float], expected: list[float]) -> None:
    np.testing.assert_array_equal(values, expected)


def test_ranks_without_an_item_of_the_catalogue_are_counted() -> None:
    (measurement,) = Unmatched().measure(make_evidence(LISTS))
    assert measurement.units is not None
    # the second list has one item in three ranks, the third none; the fourth query has no list
    assert_equal(measurement.units.values.tolist(), [0, 2, 3, math.nan])
    assert (measurement.value, measurement.n, measurement.undefined) == (5 / 3, 3, 1)


def test_reasons_are_read_from_the_replies_by_query() -> None:
    # in another order than the queries, and u0 has no reply
    responses = make_responses(
        ["u3", "u1", "u2"], unknown=[0, 1, 1], watched=[0, 1, 0], missing=[3, 0, 2]
    )
    total, *reasons = Unmatched().measure(make_evidence(LISTS, responses=responses))
    assert_equal(list_values([total])[""], [0, 2, 3, 3])  # the empty reply to u3 is three ranks
    # unknown: 1, 1, 0 of u1, u2, u3; watched: 1, 0, 0; missing: 0, 2, 3
    expected = {"unknown": 2 / 3, "watched": 1 / 3, "missing": 5 / 3}
    assert {row.target: row.value for row in reasons} == {
        f"reason={reason}": pytest.approx(value) for reason, value in expected.items()
    }
    assert all((row.n, row.undefined) == (3, 1) for row in reasons)
