from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.measures import Contrast, Measurement, UnitScores
from recbias.statistics.groups import (
    GapKind,
    Members,
    compare_pooled_groups,
    compute_gap_of,
    pool_groups,
)


def measure(group: str, values: dict[str, float], *, share: bool = False) -> Measurement:
    ids = np.array([*values], dtype=object)
    scores = UnitScores("user", ids, np.array([*values.values()]), share)
    return Measurement.from_units(scores, group=group)


def compare(folds: Sequence[Measurement]) -> Contrast:
    (contrast,) = compare_pooled_groups(pool_groups(folds))
    return contrast


def measure_gap(
    folds: Sequence[Measurement], kind: GapKind = "difference", **settings: int
) -> Measurement:
    members = Members.of_pooled(pool_groups(folds))
    rng = np.random.default_rng(0)
    return compute_gap_of(members, kind, rng=rng, **settings)


def test_units_in_some_folds_by_hand() -> None:
    # F: u1 (0.2 + 0.4) / 2 = 0.3, u2 only in seed 1: 0.5 -> mean 0.4, two users
    # M: u3 (0.9 + 0.5) / 2 = 0.7, u4 undefined in seed 1: 0.9, u5 undefined -> mean 0.8
    folds = [
        measure("F", {"u1": 0.2, "u2": 0.5}),
        measure("M", {"u3": 0.9, "u4": math.nan, "u5": math.nan}),
        measure("F", {"u1": 0.4}),
        measure("M", {"u3": 0.5, "u4": 0.9}),
    ]
    f, m = pool_groups(folds)
    assert [f.value, m.value] == pytest.approx([0.4, 0.8])
    assert [(f.n, f.undefined), (m.n, m.undefined)] == [(2, 0), (2, 1)]
    contrast = compare(folds)
    expected = stats.ttest_ind([0.3, 0.5], [0.7, 0.9], equal_var=False)
    assert (contrast.a, contrast.b, contrast.n, contrast.test) == ("F", "M", 4, "welch_t")
    assert contrast.difference == pytest.approx(-0.4)
    assert contrast.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert [contrast.ci_low, contrast.ci_high] == pytest.approx([interval.low, interval.high])


def test_the_sign_is_that_of_the_means_and_not_of_the_first_seed() -> None:
    # seed 1: F is 0.1 above M; seeds 2 and 3: F is 0.4 below M; mean difference -0.7 / 3
    rng = np.random.default_rng(1)
    folds = []
    for gap in (0.1, -0.4, -0.4):
        noise = rng.normal(0, 0.01, 40)
        folds.append(measure("F", {f"f{at}": 0.5 + gap + noise[at] for at in range(20)}))
        folds.append(measure("M", {f"m{at}": 0.5 + noise[20 + at] for at in range(20)}))
    assert compare(folds[:2]).difference == pytest.approx(0.1, abs=0.02)
    contrast, (f, m) = compare(folds), pool_groups(folds)
    assert contrast.difference == pytest.approx(-0.7 / 3, abs=0.02)
    assert contrast.difference == pytest.approx(f.value - m.value)
    assert (contrast.mean_a, contrast.mean_b) == pytest.approx((f.value, m.value))
    assert contrast.ci_high < 0
    assert contrast.p < 1e-6
    assert contrast.n == f.n + m.n == 40


def test_the_gap_is_that_of_the_means_of_the_units() -> None:
    # each user has the mean of two seeds: F 0.3 and 0.5, M 0.4, 0.5 and 0.9; the gaps of the seeds
    # are 0.2 and 0.6, of which the mean is 0.4, and that of the means is 0.6 - 0.4
    folds = [
        *(measure("F", {"u1": 0.6, "u2": 1.0}), measure("M", {"u3": 0.4, "u4": 0.5, "u5": 0.9})),
        *(measure("F", {"u1": 0.0, "u2": 0.0}), measure("M", {"u3": 0.4, "u4": 0.5, "u5": 0.9})),
    ]
    expected = stats.ttest_ind([0.4, 0.5, 0.9], [0.3, 0.5], equal_var=False)
    interval = expected.confidence_interval()
    gap = measure_gap(folds)
    assert gap.value == pytest.approx(0.2)
    assert [gap.ci_low, gap.ci_high] == pytest.approx([0.0, interval.high])
    assert gap.df == pytest.approx(expected.df)
    assert gap.contrasts == (compare(folds),)
    assert measure_gap(folds, "std").ci_high == pytest.approx(interval.high / math.sqrt(2))
    assert measure_gap(folds, "ratio").value == pytest.approx(0.4 / 0.6)


@pytest.mark.parametrize("n_folds", [1, 3, 10])
def test_the_interval_of_equal_groups_holds_0(n_folds: int) -> None:
    rng, n_covered = np.random.default_rng(n_folds), 0
    for _ in range(300):
        folds = [
            measure(name, {f"{name}{at}": value for at, value in enumerate(rng.beta(2, 4, 6))})
            for _ in range(n_folds)
            for name in "ab"
        ]
        n_covered += measure_gap(folds, n_samples=2).ci_low <= 0.0
    assert 270 <= n_covered <= 299  # 95% of 300 is 285; four standard errors are 15


def test_a_user_whose_group_depends_on_the_seed_counts_in_each_group() -> None:
    # u2 is in a (0.4) with seed 1 and in b (0.8) with seed 2
    folds = [
        *(measure("a", {"u1": 0.1, "u2": 0.4}), measure("b", {"u3": 0.6})),
        *(measure("a", {"u1": 0.3}), measure("b", {"u2": 0.8, "u3": 1.0})),
    ]
    a, b = pool_groups(folds)
    assert [a.value, b.value] == pytest.approx([0.3, 0.8])
    contrast = compare(folds)
    # w: u1 (0.2 - 0.3) / √2, u2 (0.4 - 0.3) / √2 - (0.8 - 0.8) / √2, u3 0; b has the variance of a
    assert (contrast.test, contrast.n) == ("overlap_t", 3)
    assert contrast.difference == pytest.approx(-0.5)
    assert contrast.statistic == pytest.approx(-0.5 / math.sqrt(0.01 + 0.02 / 2))


def test_a_difference_of_three_groups_has_the_analysis_of_variance() -> None:
    values = {"a": [0.1, 0.3, 0.2], "b": [0.4, 0.6, 0.7], "c": [0.9, 0.8, 0.5], "d": [0.0]}
    folds = [
        measure(name, {f"{name}{at}": value + shift for at, value in enumerate(numbers)})
        for shift in (-0.1, 0.1)
        for name, numbers in values.items()
    ]
    (contrast,) = measure_gap(folds, min_group=2).contrasts
    expected = stats.alexandergovern(*(values[name] for name in "abc"))
    assert (contrast.test, contrast.a, contrast.b, contrast.n) == ("welch_anova", "c", "a", 9)
    assert contrast.p == pytest.approx(expected.pvalue, abs=0.02)  # another approximation
    assert measure_gap(folds[:1], min_group=4).contrasts == ()


def test_shares_keep_wilsons_interval_only_if_each_unit_has_one_value() -> None:
    once = [measure("g", {"u1": 1.0}, share=True), measure("g", {"u2": 1.0}, share=True)]
    assert pool_groups(once)[0].ci_low == pytest.approx(2 / (2 + 1.959963984540054**2))
    twice = [measure("g", {"u1": 1.0, "u2": 0.0}, share=True) for _ in range(2)]
    assert pool_groups(twice)[0].ci_low < 0  # Student's t


@given(seed=st.integers(0, 10**6), n_folds=st.integers(1, 4), share=st.floats(0.3, 1))
def test_the_test_is_welchs_of_the_means_of_the_units(
    seed: int, n_folds: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    tables = {name: rng.normal(size=(n_folds, size)) for name, size in (("a", 8), ("b", 11))}
    for table in tables.values():
        table[rng.random(table.shape) > share] = np.nan
        table[0, :3] = rng.normal(size=3)
    folds = [
        measure(name, {f"{name}{unit}": value for unit, value in enumerate(row)})
        for name, table in tables.items()
        for row in table
    ]
    order = rng.permutation(n_folds)
    shuffled = [folds[at + n_folds * half] for half in (0, 1) for at in order]
    means = [
        [np.mean(unit[~np.isnan(unit)]) for unit in table.T if not np.isnan(unit).all()]
        for table in tables.values()
    ]
    expected = stats.ttest_ind(*means, equal_var=False)
    for contrast in (compare(folds), compare(shuffled)):
        assert contrast.difference == pytest.approx(np.mean(means[0]) - np.mean(means[1]))
        assert contrast.p == pytest.approx(expected.pvalue, rel=1e-6)
        assert contrast.n == sum(map(len, means))


@given(seed=st.integers(0, 10**6), n=st.integers(2, 9))
def test_equal_or_disjoint_folds_give_the_test_of_one_fold(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values = {name: {f"{name}{at}": float(rng.normal()) for at in range(n)} for name in "ab"}
    one = [measure(name, scores) for name, scores in values.items()]
    halves = [
        measure(name, dict(part))
        for name, scores in values.items()
        for part in ([*scores.items()][:1], [*scores.items()][1:])
    ]
    for folds in (one * 3, halves):
        for pooled, single in zip(pool_groups(folds), one, strict=True):
            assert pooled.value == pytest.approx(single.value)
            assert [pooled.ci_low, pooled.ci_high] == pytest.approx(
                [single.ci_low, single.ci_high]
            )
        assert compare(folds).p == pytest.approx(compare(one).p)
