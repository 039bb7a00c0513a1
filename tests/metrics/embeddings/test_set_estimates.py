from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from recbias.metrics.embeddings.sets import (
    SetValues,
    add_interval,
    attach_estimate,
    compute_effect_size,
    select_sets,
)
from support.worlds.vector_worlds import GENRES, make_vectors

FIRST, SECOND = np.array([1.3, -0.1]), np.array([-1.3, 0.86, 0.1])


def make_values() -> SetValues:
    return SetValues(select_sets(make_vectors(), GENRES), (FIRST, SECOND))


def test_effect_size_by_hand() -> None:
    # means 0.6 and -0.34 / 3; all five: mean 0.172, squares from it 3.99168, sd sqrt(0.99792)
    expected = (0.6 + 0.34 / 3) / math.sqrt(3.99168 / 4)
    assert compute_effect_size(FIRST, SECOND) == pytest.approx(expected)
    assert compute_effect_size(SECOND, FIRST) == pytest.approx(-expected)


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_values_that_are_all_alike_have_no_effect_size(value: float) -> None:
    assert math.isnan(compute_effect_size(np.full(3, value), np.full(7, value)))


def test_difference_and_means() -> None:
    main = make_values().measure_difference(make_vectors())
    assert main.value == pytest.approx(0.6 + 0.34 / 3)
    assert (main.n, main.undefined) == (5, 0)
    assert [
        measurement.value for measurement in make_values().measure_means(make_vectors())
    ] == pytest.approx([0.6, -0.34 / 3])
    assert [
        measurement.target
        for measurement in make_values().measure_means(make_vectors(), "mean of ")
    ] == [
        "mean of genres=Romance",
        "mean of genres=Action",
    ]


def test_sums_have_the_size_of_their_set() -> None:
    first, second = make_values().measure_sums(make_vectors())
    assert (first.value, second.value) == pytest.approx((1.2, -0.34))
    assert (first.n, second.n) == (2, 3)
    # a sum spreads as much as its set is large: sd of a mean times n
    assert first.replicates is not None
    assert first.replicates.std() == pytest.approx(FIRST.std(ddof=1) * math.sqrt(2), rel=0.1)


def test_a_mean_and_its_sum_have_one_interval() -> None:
    sums, means = (
        make_values().measure_sums(make_vectors()),
        make_values().measure_means(make_vectors()),
    )
    for whole, mean, n in zip(sums, means, (2, 3), strict=True):
        assert (n * mean.ci_low, n * mean.ci_high) == pytest.approx((whole.ci_low, whole.ci_high))
        assert mean.units is not None


def test_few_samples_have_the_interval_of_student() -> None:
    few = replace(make_values(), samples=(np.array([1.0, 2.0, 3.0]), np.zeros(3)), df=2.0)
    main = few.measure_difference(make_vectors())
    assert main.ci_high - main.ci_low == pytest.approx(2 * 4.302653)
    assert main.df == 2


def test_samples_are_the_same_for_every_model() -> None:
    first, second = make_values().resample(make_vectors()), make_values().resample(make_vectors())
    assert [samples.tolist() for samples in first] == [samples.tolist() for samples in second]


def test_the_test_of_membership() -> None:
    contrast = make_values().test("targets", 10_000, make_vectors())
    assert (contrast.between, contrast.a, contrast.b, contrast.test) == (
        *("targets", "genres=Romance", "genres=Action", "permutation"),
    )
    assert (contrast.n, contrast.p) == (5, 0.5)
    assert contrast.difference == pytest.approx(0.6 + 0.34 / 3)


def test_a_test_is_told_of_its_figure() -> None:
    figure = add_interval(
        make_values().measure_difference(make_vectors()), np.array([1.0, 2.0, 3.0])
    )
    test = make_values().test("targets", 99, make_vectors())
    contrast = attach_estimate(test, figure)
    assert (contrast.mean_a, contrast.mean_b) == (test.mean_a, test.mean_b)
    assert contrast.difference == contrast.statistic == figure.value
    assert (contrast.ci_low, contrast.ci_high) == (figure.ci_low, figure.ci_high)
    assert contrast.ci_high - contrast.ci_low == pytest.approx(2 * 1.959964)
