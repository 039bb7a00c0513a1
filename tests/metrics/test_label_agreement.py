from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.core.errors import MissingEvidence, OutOfRange, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics.labels import CohenKappa, KrippendorffAlpha, LabelAccuracy
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary

NAN = math.nan


def make_catalogue(**columns: list[float]) -> Evidence:
    n = len(next(iter(columns.values())))
    ids = make_vocabulary("i", n)
    items = Attributes(ids, pd.DataFrame(columns))
    return Evidence(make_user_queries(0), ids, items=items, metric="the metric", n_bootstrap=200)


def measure_kappa(of: Evidence) -> Measurement:
    (measurement,) = CohenKappa(a="a", b="b").measure(of)
    return measurement


def measure_alpha(of: Evidence, **settings: Any) -> Measurement:
    names = tuple(of.items.names) if of.items else ()
    (measurement,) = KrippendorffAlpha(labels=names, **settings).measure(of)
    return measurement


# a: 1 1 0 0, b: 1 0 0 0, as in the tests of rater_agreement; the last two items lack one
A = [1.0, 1.0, 0.0, 0.0, 1.0, NAN]
B = [1.0, 0.0, 0.0, 0.0, NAN, 1.0]


def test_kappa_by_hand() -> None:
    # agreed 3/4, by chance 1/2; the standard error is 0.375
    measurement = measure_kappa(make_catalogue(a=A, b=B))
    assert measurement.value == pytest.approx(0.5)
    assert (measurement.n, measurement.undefined) == (4, 2)
    assert measurement.ci_low == pytest.approx(0.5 - 1.959964 * 0.375, abs=1e-6)
    assert measurement.ci_high == pytest.approx(0.5 + 1.959964 * 0.375, abs=1e-6)
    assert measurement.units is None


def test_accuracy_by_hand() -> None:
    (measurement,) = LabelAccuracy(a="a", b="b").measure(make_catalogue(a=A, b=B))
    assert measurement.value == 0.75
    assert (measurement.n, measurement.undefined) == (4, 2)
    # Wilson: centre (3 + 1.9207) / (4 + 3.8415), half width 1.96 sqrt(3/4 + 0.9604) / 7.8415
    assert measurement.ci_low == pytest.approx(0.3006, abs=1e-4)
    assert measurement.ci_high == pytest.approx(0.9544, abs=1e-4)


def test_accuracy_is_that_of_scikit_learn(rng: np.random.Generator) -> None:
    from sklearn.metrics import accuracy_score

    a, b = rng.integers(0, 3, (2, 200)).astype(float)
    (measurement,) = LabelAccuracy(a="a", b="b").measure(make_catalogue(a=[*a], b=[*b]))
    assert measurement.value == pytest.approx(accuracy_score(a, b))


def test_alpha_by_hand() -> None:
    # units (1, 1), (1, 0), (0, 0), (0, 0): n = 8, D_o = 2/8; three 1 and five 0:
    # D_e = 2 * 3 * 5 / 56 = 15/28; 1 - 7/15
    measurement = measure_alpha(make_catalogue(a=A, b=B))
    assert measurement.value == pytest.approx(8 / 15)
    assert (measurement.n, measurement.undefined) == (4, 2)
    assert measurement.ci_low < 8 / 15 < measurement.ci_high


def test_alpha_of_three_labels_uses_items_that_lack_one() -> None:
    # with c the fifth item has the labels 1 and 1, the sixth 1 and 0
    measurement = measure_alpha(make_catalogue(a=A, b=B, c=[NAN, NAN, NAN, NAN, 1.0, 0.0]))
    # D_o = (2 + 2) / 12; six 1 and six 0: D_e = 2 * 36 / 132 = 6/11; 1 - (1/3) (11/6) = 7/18
    assert measurement.value == pytest.approx(7 / 18)
    assert (measurement.n, measurement.undefined) == (6, 0)


def test_alpha_of_grades_counts_how_far_they_are_apart() -> None:
    near = make_catalogue(a=[0.0, 0.5, 1.0, 0.2], b=[0.1, 0.5, 0.9, 0.2])
    assert measure_alpha(near, level="interval").value > 0.95
    assert measure_alpha(near).value < 0.5


def test_the_intervals_of_a_large_catalogue_are_narrow_and_alike(rng: np.random.Generator) -> None:
    truth = rng.random(4_000) < 0.4
    a, b = (np.where(rng.random(4_000) < 0.9, truth, ~truth).astype(float) for _ in range(2))
    of = make_catalogue(a=a.tolist(), b=b.tolist())
    # two raters who err in a tenth of the items each agree in 0.82 of them; both say 1 in
    # 0.4 * 0.9 + 0.6 * 0.1 = 0.42, so chance is 0.42² + 0.58² = 0.5128: (0.82 - 0.5128) / 0.4872
    for measurement in (measure_kappa(of), measure_alpha(of)):
        assert measurement.ci_low < 0.6305 < measurement.ci_high
        assert measurement.ci_high - measurement.ci_low == pytest.approx(0.048, rel=0.2)


@pytest.mark.parametrize("same", [[1.0, 1.0], [NAN, NAN]])
def test_labels_that_are_all_the_same_are_undefined(same: list[float]) -> None:
    for measurement in (
        measure_kappa(make_catalogue(a=same, b=same)),
        measure_alpha(make_catalogue(a=same, b=same)),
    ):
        assert math.isnan(measurement.value)
        assert math.isnan(measurement.ci_low)
        assert (measurement.n, measurement.undefined) == (0, 2)


@pytest.mark.parametrize(
    ("metric", "parameter"),
    [
        (CohenKappa(a="ab", b="b"), "a"),
        (CohenKappa(a="a", b="ab"), "b"),
        (KrippendorffAlpha(labels=("a", "ab")), "labels"),
    ],
)
def test_a_label_that_is_not_there_is_found_early(metric: Any, parameter: str) -> None:
    of = make_catalogue(a=A, b=B)
    for step in (metric.check, metric.measure):
        with pytest.raises(UnknownColumn, match="no column 'ab'") as caught:
            step(of)
        assert (caught.value.where, caught.value.remedy) == (parameter, "did you mean b or a?")
        with pytest.raises(MissingEvidence, match="needs items"):
            step(Evidence(make_user_queries(0), make_vocabulary("i", 0), metric="the metric"))


def test_a_measurement_is_no_category() -> None:
    numbers = [number / 50 for number in range(30)]
    world = make_catalogue(a=[float(number % 2) for number in range(30)], b=numbers)
    with pytest.raises(OutOfRange, match="30 distinct numbers") as caught:
        CohenKappa(a="a", b="b").check(world)
    assert caught.value.where == "b"
