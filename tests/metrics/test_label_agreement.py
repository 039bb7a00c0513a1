from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import MissingEvidence, OutOfRange, UnknownColumn
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.label_agreement import CohenKappa, KrippendorffAlpha
from recbias.testing import check_metric
from support.evidence_worlds import make_user_queries, make_vocabulary

NAN = math.nan


def catalogue(**columns: list[float]) -> Evidence:
    n = len(next(iter(columns.values())))
    ids = make_vocabulary("i", n)
    items = Attributes(ids, pd.DataFrame(columns))
    return Evidence(make_user_queries(0), ids, items=items, metric="the metric", n_bootstrap=200)


def kappa(of: Evidence) -> Measurement:
    (found,) = CohenKappa(a="a", b="b").measure(of)
    return found


def alpha(of: Evidence, **settings: Any) -> Measurement:
    names = tuple(of.items.names) if of.items else ()
    (found,) = KrippendorffAlpha(labels=names, **settings).measure(of)
    return found


# a: 1 1 0 0, b: 1 0 0 0, as in the tests of rater_agreement; the last two items lack one
A = [1.0, 1.0, 0.0, 0.0, 1.0, NAN]
B = [1.0, 0.0, 0.0, 0.0, NAN, 1.0]


def test_kappa_by_hand() -> None:
    # agreed 3/4, by chance 1/2; the standard error is 0.375
    found = kappa(catalogue(a=A, b=B))
    assert found.value == pytest.approx(0.5)
    assert (found.n, found.undefined) == (4, 2)
    assert found.ci_low == pytest.approx(0.5 - 1.959964 * 0.375, abs=1e-6)
    assert found.ci_high == pytest.approx(0.5 + 1.959964 * 0.375, abs=1e-6)
    assert found.units is None


def test_alpha_by_hand() -> None:
    # units (1, 1), (1, 0), (0, 0), (0, 0): n = 8, D_o = 2/8; three 1 and five 0:
    # D_e = 2 * 3 * 5 / 56 = 15/28; 1 - 7/15
    found = alpha(catalogue(a=A, b=B))
    assert found.value == pytest.approx(8 / 15)
    assert (found.n, found.undefined) == (4, 2)
    assert found.ci_low < 8 / 15 < found.ci_high


def test_alpha_of_three_labels_uses_items_that_lack_one() -> None:
    # with c the fifth item has the labels 1 and 1, the sixth 1 and 0
    found = alpha(catalogue(a=A, b=B, c=[NAN, NAN, NAN, NAN, 1.0, 0.0]))
    # D_o = (2 + 2) / 12; six 1 and six 0: D_e = 2 * 36 / 132 = 6/11; 1 - (1/3) (11/6) = 7/18
    assert found.value == pytest.approx(7 / 18)
    assert (found.n, found.undefined) == (6, 0)


def test_alpha_of_grades_counts_how_far_they_are_apart() -> None:
    near = catalogue(a=[0.0, 0.5, 1.0, 0.2], b=[0.1, 0.5, 0.9, 0.2])
    assert alpha(near, level="interval").value > 0.95
    assert alpha(near).value < 0.5


def test_the_intervals_of_a_large_catalogue_are_narrow_and_alike(
    rng: np.random.Generator,
) -> None:
    truth = rng.random(4_000) < 0.4
    a, b = (np.where(rng.random(4_000) < 0.9, truth, ~truth).astype(float) for _ in range(2))
    of = catalogue(a=a.tolist(), b=b.tolist())
    # two raters who err in a tenth of the items each agree in 0.82 of them; both say 1 in
    # 0.4 * 0.9 + 0.6 * 0.1 = 0.42, so chance is 0.42² + 0.58² = 0.5128: (0.82 - 0.5128) / 0.4872
    for found in (kappa(of), alpha(of)):
        assert found.ci_low < 0.6305 < found.ci_high
        assert found.ci_high - found.ci_low == pytest.approx(0.048, rel=0.2)


@pytest.mark.parametrize("same", [[1.0, 1.0], [NAN, NAN]])
def test_labels_that_are_all_the_same_are_undefined(same: list[float]) -> None:
    for found in (kappa(catalogue(a=same, b=same)), alpha(catalogue(a=same, b=same))):
        assert math.isnan(found.value)
        assert math.isnan(found.ci_low)
        assert (found.n, found.undefined) == (0, 2)


@pytest.mark.parametrize(
    ("metric", "where"),
    [
        (CohenKappa(a="ab", b="b"), "a"),
        (CohenKappa(a="a", b="ab"), "b"),
        (KrippendorffAlpha(labels=("a", "ab")), "labels"),
    ],
)
def test_a_label_that_is_not_there_is_found_early(metric: Any, where: str) -> None:
    of = catalogue(a=A, b=B)
    for step in (metric.check, metric.measure):
        with pytest.raises(UnknownColumn, match="no column 'ab'") as caught:
            step(of)
        assert (caught.value.where, caught.value.remedy) == (where, "did you mean b or a?")
        with pytest.raises(MissingEvidence, match="needs items"):
            step(Evidence(make_user_queries(0), make_vocabulary("i", 0), metric="the metric"))


@pytest.mark.parametrize(
    "metric",
    [CohenKappa(a="a", b="b"), KrippendorffAlpha(labels=("a", "b"))],
    ids=["kappa", "alpha"],
)
def test_they_keep_the_contract(metric: Any) -> None:
    check_metric(metric, evidence=catalogue(a=A, b=B))
    metric.check(catalogue(a=A, b=B))


@given(seed=st.integers(0, 2**32 - 1))
def test_agreement_does_not_depend_on_which_is_which(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, 15)).astype(float).tolist()
    assert kappa(catalogue(a=a, b=b)).value == pytest.approx(
        kappa(catalogue(a=b, b=a)).value, nan_ok=True
    )
    assert alpha(catalogue(a=a, b=b)).value == pytest.approx(
        alpha(catalogue(a=b, b=a)).value, nan_ok=True
    )


def test_a_measurement_is_no_category() -> None:
    numbers = [each / 50 for each in range(30)]
    world = catalogue(a=[float(each % 2) for each in range(30)], b=numbers)
    with pytest.raises(OutOfRange, match="30 distinct numbers") as caught:
        CohenKappa(a="a", b="b").check(world)
    assert caught.value.where == "b"
