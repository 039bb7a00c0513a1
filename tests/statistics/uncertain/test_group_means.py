from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from recbias.core.dataset import FloatArray
from recbias.core.measures import Measurement, UnitScores
from recbias.core.queries import UncertainGroups
from recbias.statistics.groups import pool_groups
from recbias.statistics.uncertain import (
    TEST,
    compare_pooled_contributions,
    compute_uncertain_gap,
    measure_contributions,
    summarize_uncertain_groups,
)


def make_groups(p: FloatArray) -> UncertainGroups:
    names = tuple(f"g{code}" for code in range(p.shape[1]))
    return UncertainGroups("probabilities", names, p, "probability")


def measure(values: FloatArray) -> Measurement:
    ids = np.array([f"u{row}" for row in range(values.size)], dtype=object)
    return Measurement.from_units(UnitScores("user", ids, values))


def draw(n_groups: int = 2, n: int = 200, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_groups, 0.5), n)
    return p, np.asarray(p[:, 0] * 0.5 + rng.random(n))


def test_the_test_of_two_groups_is_the_paired_test_of_their_contributions() -> None:
    p, x = draw()
    groups = make_groups(p)
    first, second = summarize_uncertain_groups(measure(x), groups)
    (test,) = first.contrasts
    assert first.units is not None
    assert second.units is not None
    expected = stats.ttest_rel(first.units.values, second.units.values)
    assert (test.a, test.b, test.test, test.n) == ("g0", "g1", TEST, 200)
    assert test.statistic == pytest.approx(expected.statistic)
    assert test.p == pytest.approx(2.0 * stats.t.sf(abs(test.statistic), test.df))
    assert test.df < 199  # fewer than of equal weights
    half = stats.t.ppf(0.975, test.df) * test.difference / test.statistic
    assert (test.ci_low, test.ci_high) == pytest.approx(
        (test.difference - half, test.difference + half)
    )


def test_each_pair_or_each_group_against_the_reference_is_tested() -> None:
    p, x = draw(3)
    first, *_ = summarize_uncertain_groups(measure(x), make_groups(p))
    assert [(test.a, test.b) for test in first.contrasts] == [
        ("g0", "g1"),
        ("g0", "g2"),
        ("g1", "g2"),
    ]
    first, *_ = summarize_uncertain_groups(measure(x), make_groups(p), reference=1)
    assert [(test.a, test.b) for test in first.contrasts] == [("g0", "g1"), ("g2", "g1")]


def test_the_gap_of_two_groups_has_the_interval_of_the_test() -> None:
    p, x = draw()
    gap = compute_uncertain_gap(
        measure(x), make_groups(p), "difference", rng=np.random.default_rng(0), n_samples=4000
    )
    (test,) = gap.contrasts
    assert gap.value == pytest.approx(abs(test.difference))
    half = (test.ci_high - test.ci_low) / 2.0
    assert gap.ci_high - gap.value == pytest.approx(half)
    assert gap.df == test.df


def test_ratio_and_std_follow_from_the_means() -> None:
    p, x = draw()
    low, high = sorted(measure_contributions(x, make_groups(p)).means)
    for kind, value in (("ratio", low / high), ("std", (high - low) / math.sqrt(2.0))):
        gap = compute_uncertain_gap(
            measure(x),
            make_groups(p),
            kind,  # type: ignore[arg-type]
            rng=np.random.default_rng(0),
        )
        assert gap.value == pytest.approx(value)
        assert gap.ci_low < value < gap.ci_high
        assert not gap.contrasts


def test_the_gap_of_three_groups_has_no_interval() -> None:
    p, x = draw(3)
    gap = compute_uncertain_gap(
        measure(x), make_groups(p), "difference", rng=np.random.default_rng(0)
    )
    means = measure_contributions(x, make_groups(p)).means
    assert gap.value == pytest.approx(means.max() - means.min())
    assert math.isnan(gap.ci_low)
    assert not gap.contrasts


def test_equal_values_have_no_test() -> None:
    share = np.random.default_rng(0).random(40)
    p = np.stack([share, 1.0 - share], axis=1)
    first, _ = summarize_uncertain_groups(measure(np.full(40, 1.0)), make_groups(p))
    assert first.value == pytest.approx(1.0)
    assert math.isnan(first.contrasts[0].p)
    assert first.contrasts[0].difference == 0.0  # not a difference by rounding


def test_groups_over_folds_are_compared_by_the_mean_contribution() -> None:
    p, x = draw()
    noisy = x + np.random.default_rng(2).normal(0.0, 0.1, 200)
    folds = [*summarize_uncertain_groups(measure(x), make_groups(p))]
    folds += summarize_uncertain_groups(measure(noisy), make_groups(p))
    pooled = pool_groups(folds)
    (test,) = compare_pooled_contributions(pooled)
    mean = measure_contributions((x + noisy) / 2.0, make_groups(p)).means
    assert test.difference == pytest.approx(mean[0] - mean[1])
    assert (test.n, test.df, test.test) == (200, 199.0, TEST)
    assert compare_pooled_contributions(pooled, reference="g0")[0].a == "g1"
