"""Groups of items known as probabilities: ``attribute: weight of p_minor``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import Contradiction, OutOfRange, UnknownColumn, UserError
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.exposure.attention import AWRF
from recbias.metrics.exposure.exposure_ratios import ExposureParity, ExposureToRelevance
from recbias.metrics.exposure.provider_gaps import ExposureGap
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


def test_items_without_a_probability_are_in_no_group() -> None:
    evidence = with_columns(make_exposure_evidence(), p=[1.0, 0.5, None, 0.0, 0.3, 0.9])
    gaps = ExposureGap(**HALF, attribute="weight of p", ungrouped="group").measure(evidence)
    assert [gap.target for gap in gaps] == [
        f"weight of p={name}" for name in ("p", "not p", "(none)")
    ]
    assert sum(gap.value for gap in gaps) == pytest.approx(0.0, abs=1e-12)


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
