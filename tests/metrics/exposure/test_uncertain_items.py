"""Groups of items known as probabilities: ``attribute: weight of p_minor``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.errors import Contradiction, OutOfRange, UnknownColumn, UserError
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics.exposure import (
    AWRF,
    ExpectedExposureDisparity,
    ExposureGap,
    ExposureParity,
    ExposureToRelevance,
    ProviderGap,
    ProviderGini,
)
from support.worlds.exposure_worlds import (
    make_exposure_evidence,
    make_random_world,
    measure_one,
)

HALF: dict[str, Any] = {"browsing": "rbp", "gamma": 0.5}


def with_columns(evidence: Evidence, **columns: Any) -> Evidence:
    items: Any = evidence.items
    return replace(evidence, items=Attributes(items.ids, pd.DataFrame(columns)))


def test_exposure_is_weighted_by_probabilities() -> None:
    # lists 0 2 3 and 3 1 with 1, 1/2, 1/4: exposure of p 1 + 0.2/2 + 0 + 0 + 0.5/2 = 1.35, of
    # not p 3.25 - 1.35 = 1.9; candidates 0 to 4 of p 1 + 0.5 + 0.2 + 0 + 0.3 = 2, of not p 3
    evidence = with_columns(make_exposure_evidence(), p=[1.0, 0.5, 0.2, 0.0, 0.3, 0.9])
    with collect_warnings():
        measured = measure_one(ExposureParity(**HALF, attribute="weight of p"), evidence)
    assert measured.value == pytest.approx((1.9 / 3) / (1.35 / 2), abs=1e-12)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000))
def test_probabilities_of_0_and_1_give_the_values_of_the_label(seed: int) -> None:
    evidence = make_random_world(seed)
    items: Any = evidence.items
    is_p = np.random.default_rng(seed).random(len(items.ids)) < 0.5
    is_p[:4] = [True, False, True, False]
    labels = np.where(is_p, "p", "not p")
    evidence = with_columns(evidence, p=is_p.astype(np.float64), label=labels)
    for metric in (ExposureParity, ExposureToRelevance, AWRF):
        certain = measure_one(metric(attribute="label"), evidence)
        weighted = measure_one(metric(attribute="weight of p"), evidence)
        assert weighted.value == pytest.approx(certain.value, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("attribute", "changes", "kind", "message"),
    [
        ("weight of p", {}, OutOfRange, "'p' has 1 of 6 values outside 0 to 1, such as 1.2 of"),
        ("weight of a + b", {}, OutOfRange, "a + b is not 1 for 6 items, such as 0.8 for item"),
        ("weight of q", {}, UnknownColumn, "no item carries the label 'q'"),
        ("probability of a", {}, Contradiction, "is a sum weighted by probabilities"),
        ("weight of a", {"multiple": "full"}, Contradiction, "has no full part in a group"),
    ],
)
def test_unusable_probabilities_are_refused(
    attribute: str, changes: dict[str, Any], kind: type[UserError], message: str
) -> None:
    columns = {"p": [1.2] + [0.5] * 5, "a": [0.1, *[0.4] * 5], "b": [0.7, *[0.4] * 5]}
    evidence = with_columns(make_exposure_evidence(), **columns)
    with pytest.raises(kind) as caught:
        ExposureParity(attribute=attribute, **changes).check(evidence)
    assert message in caught.value.message
    assert caught.value.where == "attribute"
    assert caught.value.remedy


def test_the_interval_of_a_gap_accounts_for_the_hidden_groups_by_hand() -> None:
    # lists 0 2 3 and 3 1 with 1, 1/2, 1/4 are shares 4/7, 2/7, 1/7 of the first list and 2/3, 1/3
    # of the second: s = 2/7, 1/6, 1/7, 1/14 + 1/3, 0; the target gives each of 0 to 4 1/5
    p = np.array([0.9, 0.5, 0.2, 0.7, 0.3])
    evidence = with_columns(make_exposure_evidence(), p=[*p, 0.9])
    gap = ExposureGap(**HALF, attribute="weight of p").measure(evidence)[0]
    shares = np.array([2 / 7, 1 / 6, 1 / 7, 1 / 14 + 1 / 3, 0])
    hidden = 1.959964**2 * np.sum((shares - 1 / 5) ** 2 * p * (1 - p))
    of_lists = [4 / 7 * 0.9 + 2 / 7 * 0.2 + 1 / 7 * 0.7, 2 / 3 * 0.7 + 1 / 3 * 0.5]
    sampled = 12.7062 * np.std(of_lists, ddof=1) / np.sqrt(2)  # t(0.975; 1)
    assert gap.ci_high - gap.value == pytest.approx(np.sqrt(sampled**2 + hidden), rel=1e-5)
    assert gap.own_interval


@pytest.mark.parametrize("target", ["catalogue", "interactions", "relevant"])
def test_the_hidden_variance_is_that_of_drawn_groups(target: Any) -> None:
    evidence = make_random_world(3, n_queries=8, n_items=30)
    items: Any = evidence.items
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, len(items.ids))
    metric = ExposureGap(attribute="weight of p", target=target)
    (gap, _) = metric.measure(with_columns(evidence, p=p))
    known = [
        metric.measure(with_columns(evidence, p=(rng.random(p.size) < p).astype(np.float64)))
        for _ in range(120)
    ]
    gaps = [row.value for rows in known for row in rows if row.target == "weight of p=p"]
    half_width = (gap.ci_high - gap.ci_low) / 2
    units: Any = gap.units
    of_queries = Measurement.from_units(units)
    sampled = (of_queries.ci_high - of_queries.ci_low) / 2
    hidden = np.sqrt(half_width**2 - sampled**2) / 1.959964
    assert np.std(gaps) == pytest.approx(hidden, rel=0.25)


@pytest.mark.parametrize(
    "metric",
    [
        AWRF,
        ExposureParity,
        ExposureToRelevance,
        ProviderGap,
        ProviderGini,
        ExpectedExposureDisparity,
    ],
)
def test_other_measures_of_hidden_groups_have_no_interval_and_say_why(metric: Any) -> None:
    evidence = with_columns(make_exposure_evidence(), p=[1.0, 0.5, 0.2, 0.0, 0.3, 0.9])
    with collect_warnings() as warnings:
        hidden = measure_one(metric(attribute="weight of p"), evidence)
    assert np.isnan([hidden.ci_low, hidden.ci_high]).all()
    assert not np.isnan(hidden.value)
    assert any("no interval, because the groups of the items are unknown" in w for w in warnings)
    certain = with_columns(make_exposure_evidence(), p=[1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    known = measure_one(metric(attribute="weight of p"), certain)
    assert not np.isnan([known.ci_low, known.ci_high]).any()
