from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.errors import OutOfRange, UnknownName
from recbias.metrics.exposure import ExposureGap, ProviderGap, ProviderGini
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.exposure_worlds import (
    list_exposures,
    list_items,
    make_exposure_evidence,
    make_makers,
    make_random_world,
    measure_one,
    sum_makers,
)

HALF: dict[str, Any] = {"attribute": "maker", "browsing": "rbp", "gamma": 0.5}


def test_gaps_of_groups_equal_those_worked_by_hand() -> None:
    # lists 0 2 3 and 3 1: shares of a 9/14 and 1 / (3/2) = 2/3; of the candidates 5/8
    gap_a, gap_b = ExposureGap(**HALF).measure(make_exposure_evidence())
    assert (gap_a.target, gap_b.target) == ("maker=a", "maker=b")
    assert gap_a.units.values.tolist() == pytest.approx([1 / 56, 1 / 24], abs=1e-12)  # type: ignore[union-attr]
    assert gap_b.value == pytest.approx(-gap_a.value, abs=1e-12)
    assert (gap_a.n, gap_a.undefined) == (2, 0)


def test_gaps_from_the_relevant_items_of_each_query() -> None:
    # relevant of u0: 2 of b (4 has no maker); of u1: 0 of a and 3 of both, so a 3/4
    (gap,) = ExposureGap(**HALF, target="relevant", only=("a",)).measure(make_exposure_evidence())
    assert gap.units.values.tolist() == pytest.approx([9 / 14, 2 / 3 - 3 / 4], abs=1e-12)  # type: ignore[union-attr]


def test_many_groups_need_names() -> None:
    n = 101
    evidence = make_evidence(
        make_lists([[0, 1]]), n_items=n, items=make_makers([f"m{code}" for code in range(n)])
    )
    with pytest.raises(OutOfRange, match="'maker' has 101 groups, more than 100") as many:
        ExposureGap(attribute="maker").check(evidence)
    assert many.value.where == "only"
    with pytest.raises(UnknownName, match="has the maker 'm101'"):
        ExposureGap(attribute="maker", only=("m101",)).check(evidence)
    named = ExposureGap(attribute="maker", only=("m1", "m0"))
    assert [gap.target for gap in named.measure(evidence)] == ["maker=m1", "maker=m0"]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # exposure of a 17/8 and of b 9/8, so shares 17/26 and 9/26; of the candidates 5/8 and 3/8
        (ProviderGap(**HALF), 17 / 26 - 5 / 8),
        (ProviderGap(**HALF, target="equal"), 17 / 26 - 1 / 2),
        (ProviderGap(**HALF, target="interactions"), 17 / 26 - 1 / 2),
        (ProviderGap(**HALF, target="relevant"), 17 / 26 - 1 / 2),  # 3/2 of each
        (ProviderGap(**HALF, target={"a": 0.25, "b": 0.75}), 17 / 26 - 1 / 4),
        # (-1 x 9/8 + 1 x 17/8) / (2 x 26/8)
        (ProviderGini(**HALF), 2 / 13),
        # a third group that is never shown: (-2 x 0 + 0 x 9/8 + 2 x 17/8) / (3 x 26/8)
        (ProviderGini(**HALF, ungrouped="group"), 17 / 39),
    ],
)
def test_summaries_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    measurement = measure_one(metric, make_exposure_evidence())
    assert measurement.value == pytest.approx(expected, abs=1e-12)
    assert (measurement.n, measurement.undefined) == (2, 0)


@given(seed=st.integers(0, 2**32 - 1))
def test_values_equal_plain_loops(seed: int) -> None:
    evidence = make_random_world(seed)
    with collect_warnings():
        gaps = ExposureGap(attribute="maker").measure(evidence)
        gap, gini = (
            measure_one(metric(attribute="maker", target="equal"), evidence)
            if metric is ProviderGap
            else measure_one(metric(attribute="maker"), evidence)
            for metric in (ProviderGap, ProviderGini)
        )
    names = [of.target.removeprefix("maker=") for of in gaps]
    totals = dict.fromkeys(names, 0.0)
    shares = []
    for query in range(5):
        exposure = sum_makers(list_exposures(list_items(evidence, query), "dcg"), evidence)
        inside = {name: exposure.get(name, 0.0) for name in names}
        totals = {name: totals[name] + inside[name] for name in names}
        if total := sum(inside.values()):
            shares.append([inside[name] / total for name in names])
    candidates: Any = evidence.candidates
    sizes = sum_makers(dict.fromkeys(np.flatnonzero(candidates).tolist(), 1.0), evidence)
    due = np.array([sizes[name] for name in names]) / sum(sizes.values())
    if not shares:
        assert math.isnan(gap.value)
        assert math.isnan(gini.value)
        return
    expected = np.mean(shares, axis=0) - due
    assert [of.value for of in gaps] == pytest.approx(expected.tolist(), abs=1e-9)
    assert sum(of.value for of in gaps) == pytest.approx(0.0, abs=1e-9)
    parts = np.array([totals[name] for name in names]) / sum(totals.values())
    assert gap.value == pytest.approx(np.abs(parts - 1 / len(names)).mean(), abs=1e-9)
    differences = np.abs(parts[:, None] - parts[None, :])
    assert gini.value == pytest.approx(differences.mean() / (2 * parts.mean()), abs=1e-9)


def test_the_gini_index_of_items_agrees_with_lenskit() -> None:
    from lenskit.data import ItemList
    from lenskit.metrics.ranking import ExposureGini, GeometricRankWeight

    rng = np.random.default_rng(1)
    lists = [rng.permutation(20)[:6].tolist() for _ in range(30)]
    evidence = make_evidence(
        make_lists(lists), n_items=20, items=make_makers([f"i{code}" for code in range(20)])
    )
    theirs = ExposureGini(items=20, weight=GeometricRankWeight(0.7))
    exposures = [
        theirs.compute_list_data(ItemList(row, ordered=True), ItemList([0])) for row in lists
    ]
    ours = measure_one(ProviderGini(attribute="maker", browsing="rbp", gamma=0.7), evidence)
    assert ours.value == pytest.approx(theirs.global_aggregate(exposures), rel=1e-5)
