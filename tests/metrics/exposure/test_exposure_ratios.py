from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.metrics.exposure import (
    AttentionRatio,
    ClicksToRelevance,
    ExposureParity,
    ExposureToRelevance,
)
from support.worlds.exposure_worlds import (
    list_exposures,
    list_items,
    list_relevant,
    make_exposure_evidence,
    make_makers,
    make_random_world,
    measure_one,
    sum_makers,
)

HALF: dict[str, Any] = {"attribute": "maker", "browsing": "rbp", "gamma": 0.5}
METRICS = (ExposureParity, AttentionRatio, ExposureToRelevance, ClicksToRelevance)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # lists 0 2 3 and 3 1 with 1, 1/2, 1/4: exposure of a 1 + 1/8 + 1/2 + 1/2 = 17/8,
        # of b 1/2 + 1/8 + 1/2 = 9/8; candidates of a 5/2, of b 3/2: means 17/20 and 15/20
        (ExposureParity(**HALF), 15 / 17),
        (AttentionRatio(**HALF), 15 / 17),
        # relevant 2 4 and 0 3: of a 3/2, of b 3/2
        (ExposureToRelevance(**HALF), 9 / 17),
        # clicks: u0 on 2 at rank 2, u1 on 3 at rank 1: a 1/2, b 1/2 + 1/2
        (ClicksToRelevance(**HALF), 1 / 2),
        # cut to one rank: items 0 and 3: a 3/2 of 5/2, b 1/2 of 3/2
        (ExposureParity(**HALF, k=1), (1 / 3) / (3 / 5)),
        # item 3 in full to both: a 1 + 1/4 + 1 + 1/2 of 3, b 1/2 + 1/4 + 1 of 2
        (ExposureParity(**HALF, multiple="full"), (7 / 8) / (11 / 12)),
        # item 4 is never shown
        (ExposureParity(**HALF, ungrouped="group"), 0.0),
    ],
)
def test_values_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    measurement = measure_one(metric, make_exposure_evidence())
    assert measurement.value == pytest.approx(expected, abs=1e-12)
    assert (measurement.n, measurement.undefined) == (2, 0)
    assert measurement.units is None


def test_queries_and_groups_without_relevant_items_are_excluded() -> None:
    evidence = make_exposure_evidence(
        [[0], [2], [4]], [[0], [], [1]], items=make_makers(["a", "b", "b", "b", "c", None])
    )
    with collect_warnings() as warnings:
        measurement = measure_one(ExposureToRelevance(**HALF), evidence)
    # a: 1 of 1, b: 0 of 1, c: no relevant item; the list of u1 does not count
    assert measurement.value == 0.0
    assert (measurement.n, measurement.undefined) == (2, 1)
    assert warnings == ["the metric: 1 groups of maker have no relevant item and are excluded"]


@given(seed=st.integers(0, 2**32 - 1))
def test_values_equal_plain_loops_and_stay_in_range(seed: int) -> None:
    evidence = make_random_world(seed)
    with collect_warnings():
        parity, attention, treatment, impact = (
            measure_one(metric(attribute="maker"), evidence) for metric in METRICS
        )
    dcg, rbp = (
        [list_exposures(list_items(evidence, query), browsing) for query in range(5)]
        for browsing in ("dcg", "rbp")
    )
    relevant = [list_relevant(evidence, query) for query in range(5)]
    candidates: Any = evidence.candidates
    ones = dict.fromkeys(np.flatnonzero(candidates).tolist(), 1.0)
    sizes = sum_makers(ones, evidence)
    judged = [query for query in range(5) if relevant[query]]
    relevance = add_makers([dict.fromkeys(relevant[query], 1.0) for query in judged], evidence)
    clicks = [
        {item: exposure for item, exposure in dcg[query].items() if item in relevant[query]}
        for query in judged
    ]
    expected = (
        compare(add_makers(dcg, evidence), sizes),
        compare(add_makers(rbp, evidence), sizes),
        compare(add_makers([dcg[query] for query in judged], evidence), relevance),
        compare(add_makers(clicks, evidence), relevance),
    )
    values = [measurement.value for measurement in (parity, attention, treatment, impact)]
    assert values == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert all(math.isnan(value) or 0 <= value <= 1 for value in values)
    assert treatment.undefined == 5 - (0 if math.isnan(treatment.value) else len(judged))


def add_makers(exposures: list[Any], evidence: Any) -> dict[str, float]:
    totals: dict[str, float] = {}
    for exposure in exposures:
        for maker, part in sum_makers(exposure, evidence).items():
            totals[maker] = totals.get(maker, 0.0) + part
    return totals


def compare(gains: dict[str, float], sizes: Any) -> float:
    values = [gains.get(maker, 0.0) / size for maker, size in sizes.items()]
    if len(values) < 2 or not max(values):
        return math.nan
    return float(min(values) / max(values))


@pytest.mark.parametrize("metric", METRICS)
def test_replicates_equal_the_estimates_of_resampled_queries(metric: Any) -> None:
    rng = np.random.default_rng(5)
    lists = [rng.permutation(5)[:3].tolist() for _ in range(12)]
    relevant = [rng.permutation(5)[:2].tolist() for _ in range(12)]
    items = make_makers([*"aabbbb"])

    def measure(queries: Any, n_bootstrap: int) -> Any:
        evidence = make_exposure_evidence(
            [lists[query] for query in queries],
            [relevant[query] for query in queries],
            items=items,
            n_bootstrap=n_bootstrap,
            bootstrap_seed=7,
        )
        return measure_one(metric(attribute="maker"), evidence)

    measurement = measure(range(12), 20)
    draws = np.random.default_rng(7)
    expected = [measure(draws.integers(12, size=12), 1).value for _ in range(20)]
    assert measurement.replicates == pytest.approx(np.array(expected), rel=1e-12)
    factor = math.exp(1.959963984540054 * float(np.std(np.log(expected), ddof=1)))
    ends = (measurement.value / factor, measurement.value * factor)
    assert (measurement.ci_low, measurement.ci_high) == pytest.approx(ends, rel=1e-9)
