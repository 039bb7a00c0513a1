from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import csr_array
from scipy.stats import f_oneway, mannwhitneyu, ttest_ind

from recbias.core.dataset import Attributes, BoolArray, FloatArray, Vocabulary
from recbias.core.grouping import Groups, group_by
from recbias.core.measures import Contrast, Measurement, UnitScores
from recbias.statistics.groups import (
    MAX_PAIRS,
    GapKind,
    Members,
    compare_pooled_groups,
    compare_ranks,
    compute_gap,
    compute_gap_of,
    compute_moments,
    overlap_contrasts,
    pool_groups,
    summarize_groups,
    welch_anova,
    welch_contrasts,
)
from recbias.statistics.paired import cohens_d
from recbias.statistics.prediction_powered import Audit


def measure(values: list[float]) -> Measurement:
    ids = np.array([f"u{query}" for query in range(len(values))], dtype=object)
    return Measurement.from_units(UnitScores("user", ids, np.array(values)))


def group(labels: Sequence[str | None]) -> Groups:
    ids = Vocabulary.of([str(query) for query in range(len(labels))])
    return group_by(Attributes(ids, pd.DataFrame({"g": labels}), "query"), "g")


def make_rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_each_group_has_its_mean_and_its_counts() -> None:
    # F: 0.5, 1.0, NaN -> mean 0.75 of 2, 1 undefined;  M: 0.25 -> 0.25 of 1;  no label: left out
    measurements = summarize_groups(
        measure([0.5, 1.0, math.nan, 0.25, 9.0]), group(["F", "F", "F", "M", None])
    )
    assert [
        (measurement.group, measurement.value, measurement.n, measurement.undefined)
        for measurement in measurements
    ] == [("g=F", 0.75, 2, 1), ("g=M", 0.25, 1, 0)]
    assert measurements[0].units.ids.tolist() == ["u0", "u1", "u2"]
    assert [(measurement.a, measurement.b) for measurement in measurements[0].contrasts] == [
        ("g=F", "g=M")
    ]
    assert math.isnan(measurements[0].contrasts[0].p)


def test_gaps_by_hand() -> None:
    # means 0.2, 0.5, 0.8: difference 0.6, ratio 0.25, std 0.3
    values, labels = [0.1, 0.3, 0.4, 0.6, 0.7, 0.9], list("aabbcc")
    groups = group(list(labels))
    for kind, value in (("difference", 0.6), ("ratio", 0.25), ("std", 0.3)):
        gap = compute_gap(measure(values), groups, kind, rng=make_rng())  # type: ignore[arg-type]
        assert gap.value == pytest.approx(value)
        assert gap.n == 6
        assert math.isnan(gap.ci_low) == (kind != "difference")
        assert gap.replicates is None


def test_the_gap_of_ordered_groups_has_an_interval_and_the_test_of_their_trend() -> None:
    labels = [*["18-24"] * 3, *["under 18"] * 3, *["50+"] * 3]
    values = [0.4, 0.5, 0.6, 0.1, 0.2, 0.3, 0.7, 0.8, 0.9]
    gap = compute_gap(measure(values), group(labels), "difference", rng=make_rng())
    assert gap.value == pytest.approx(0.6)
    assert gap.ci_low <= gap.value <= gap.ci_high
    anova, trend = gap.contrasts
    assert (anova.test, trend.test) == ("welch_anova", "jonckheere_terpstra")
    # 2 of the 9! / 3!³ = 1,680 divisions rise or fall throughout
    assert (trend.a, trend.b) == ("g=50+", "g=under 18")
    assert trend.p == pytest.approx(2 / 1680)
    assert [part[0] for part in gap.parts.values()] == pytest.approx([0.2, 0.5, 0.8])


def test_of_three_groups_the_test_is_that_all_have_one_mean() -> None:
    groups = group(list("aabbcc"))
    (test,) = compute_gap(
        measure([0.1, 0.3, 0.4, 0.6, 0.7, 0.9]), groups, "difference", rng=make_rng()
    ).contrasts
    assert (test.test, test.a, test.b, test.n) == ("welch_anova", "g=c", "g=a", 6)
    # each variance 0.02: F = (2 * (0.3^2 + 0.3^2) / 0.02 / 2) / (1 + 2/8 * 3 * (2/3)^2 / 1) = 6.75
    assert test.statistic == pytest.approx(6.75)
    assert compute_gap(measure([0.1] * 6), groups, "std", rng=make_rng()).contrasts == ()


def test_a_group_of_one_value_is_left_out_of_the_analysis_of_variance() -> None:
    values, labels = [0.1, 0.3, 0.4, 0.6, 0.7, 0.9], list("aabbcc")
    (expected,) = compute_gap(
        measure(values), group([*labels]), "difference", rng=make_rng()
    ).contrasts
    (test,) = compute_gap(
        measure([*values, 5.0]), group([*labels, "d"]), "difference", rng=make_rng()
    ).contrasts
    assert test == expected
    alone = compute_gap(measure([0.1, 0.3, 0.4]), group(list("abc")), "difference", rng=make_rng())
    assert alone.contrasts == ()


def test_of_two_groups_there_is_an_interval() -> None:
    gap = compute_gap(
        measure([0.1, 0.3, 0.4, 0.6]), group(list("aabb")), "difference", rng=make_rng()
    )
    assert gap.ci_low < gap.value < gap.ci_high
    assert gap.replicates is not None


def test_a_ratio_to_a_mean_that_may_be_0_has_the_whole_range() -> None:
    gap = compute_gap(measure([0.0, 0.0, 0.4, 0.6]), group(list("aabb")), "ratio", rng=make_rng())
    assert (gap.value, gap.ci_low, gap.ci_high) == (0.0, 0.0, 1.0)


def test_one_group_or_an_empty_one_has_no_gap() -> None:
    assert math.isnan(
        compute_gap(measure([1.0, 2.0]), group(["a", "a"]), "difference", rng=make_rng()).value
    )
    gap = compute_gap(measure([1.0, math.nan]), group(["a", "b"]), "difference", rng=make_rng())
    assert math.isnan(gap.value)
    assert (gap.n, gap.undefined) == (0, 2)


def test_a_group_of_one_has_no_interval() -> None:
    gap = compute_gap(
        measure([1.0, 2.0, 3.0]), group(["a", "a", "b"]), "difference", rng=make_rng()
    )
    assert gap.value == 1.5
    assert math.isnan(gap.ci_low)


def test_a_ratio_of_negative_means_is_undefined() -> None:
    gap = compute_gap(
        measure([-1.0, -1.0, 1.0, 1.0]), group(list("aabb")), "ratio", rng=make_rng()
    )
    assert math.isnan(gap.value)


def test_the_interval_holds_a_planted_difference() -> None:
    rng = np.random.default_rng(0)
    labels = group(["a"] * 80 + ["b"] * 60)
    n_covered = 0
    for _ in range(200):
        values = np.concatenate([rng.normal(0.2, 0.1, 80), rng.normal(0.5, 0.2, 60)])
        gap = compute_gap(
            measure(values.tolist()), labels, "difference", rng=make_rng(), n_samples=300
        )
        n_covered += gap.ci_low <= 0.3 <= gap.ci_high
    assert 180 <= n_covered <= 199  # 95% of 200 is 190; four standard errors are 12


def test_the_interval_of_a_small_gap_is_that_of_the_signed_difference() -> None:
    # means 0.5 and 0.52 of 100 values each: the standard error of the difference is
    # sqrt(2 * 0.25 / 100) = 0.0707 by the bootstrap, whose variance is divided by n
    values = [0.0, 1.0] * 50 + [0.02, 1.02] * 50
    groups = group(["a"] * 100 + ["b"] * 100)
    gap = compute_gap(measure(values), groups, "difference", rng=make_rng(), n_samples=4000)
    assert gap.value == pytest.approx(0.02)
    assert gap.ci_low == 0.0, "a gap is never negative"
    assert gap.ci_high == pytest.approx(0.02 + 1.96 * math.sqrt(2 * 0.25 / 100), abs=0.005)
    assert gap.replicates.min() < 0 < gap.replicates.max()
    spread = compute_gap(measure(values), groups, "std", rng=make_rng(), n_samples=4000)
    assert spread.ci_high == pytest.approx(gap.ci_high / math.sqrt(2))
    ratio = compute_gap(measure(values), groups, "ratio", rng=make_rng(), n_samples=4000)
    assert ratio.ci_high == 1.0
    assert ratio.replicates.max() > 1.0


@pytest.mark.parametrize("limit", [1.5, 2.0, 3.0])
def test_a_gap_as_large_as_the_limit_rarely_lies_below_it(limit: float) -> None:
    """``limit`` is in standard errors of the difference; the level of a check is 2.5%."""
    rng = np.random.default_rng(3)
    labels, true_gap = group(["a"] * 50 + ["b"] * 50), limit * math.sqrt(2 / 50)
    n_passed = 0
    for _ in range(400):
        values = rng.normal(size=100) + np.repeat([0.0, true_gap], 50)
        gap = compute_gap(
            measure(values.tolist()), labels, "difference", rng=make_rng(), n_samples=200
        )
        n_passed += gap.ci_high < true_gap
    assert n_passed <= 22  # 2.5% of 400 is 10; four standard errors are 12


def test_without_a_difference_one_test_in_twenty_is_significant() -> None:
    rng = np.random.default_rng(1)
    labels = group(["a"] * 40 + ["b"] * 25)
    p = [
        summarize_groups(measure(rng.random(65).tolist()), labels)[0].contrasts[0].p
        for _ in range(600)
    ]
    assert 0.02 <= np.mean(np.array(p) < 0.05) <= 0.085


def test_a_label_with_very_many_values_is_not_tested() -> None:
    n = int(math.sqrt(2 * MAX_PAIRS)) + 2
    measurements = summarize_groups(
        measure([float(number) for number in range(n)]), group([f"g{i}" for i in range(n)])
    )
    assert measurements[0].contrasts == ()


def test_the_gap_of_two_groups_has_the_test_of_the_groups() -> None:
    values, groups = measure([0.1, 0.3, 0.4, 0.6]), group(list("aabb"))
    gap = compute_gap(values, groups, "difference", rng=make_rng())
    assert gap.contrasts == summarize_groups(values, groups)[0].contrasts
    assert compute_gap(values, groups, "ratio", rng=make_rng()).contrasts == ()
    undefined = measure([math.nan, math.nan, 0.4, 0.6])
    assert compute_gap(undefined, groups, "difference", rng=make_rng()).contrasts == ()


PAIR = (np.array([0]), np.array([1]))


def group_comparisons(labels: list[str]) -> Groups:
    ids = Vocabulary.of([str(query) for query in range(len(labels))])
    table = Attributes(ids, pd.DataFrame({"g": labels}), "query")
    return group_by(table, "g", split_cells=True)


def compare(values: FloatArray, members: BoolArray) -> Contrast:
    (contrast,) = overlap_contrasts(("a", "b"), values, members, between="groups", pairs=PAIR)
    return contrast


def test_small_groups_are_shown_but_neither_compared_nor_in_the_gap() -> None:
    # means: a 0.2 (2), b 0.5 (2), c 0.9 (1); without c the difference is 0.3, the ratio 0.4
    values, groups = measure([0.1, 0.3, 0.4, 0.6, 0.9]), group_comparisons(list("aabbc"))
    output = summarize_groups(values, groups, min_group=2)
    assert [row.value for row in output] == pytest.approx([0.2, 0.5, 0.9])
    assert [(test.a, test.b) for test in output[0].contrasts] == [("g=a", "g=b")]
    rng = np.random.default_rng(1)
    gap = compute_gap(values, groups, "difference", rng=rng, min_group=2)
    assert gap.value == pytest.approx(0.3)
    assert (gap.n, gap.undefined) == (4, 1)
    (contrast,) = gap.contrasts  # two groups: their own test, and no analysis of variance
    expected = stats.ttest_ind([0.1, 0.3], [0.4, 0.6], equal_var=False)
    assert (contrast.a, contrast.b, contrast.test) == ("g=a", "g=b", "welch_t")
    assert [contrast.difference, contrast.p] == pytest.approx([-0.3, expected.pvalue])
    assert gap.ci_low < 0.3 < gap.ci_high
    ratio = compute_gap(values, groups, "ratio", rng=rng, min_group=2)
    assert ratio.value == pytest.approx(0.4)


def test_a_gap_without_two_large_groups_is_undefined() -> None:
    gap = compute_gap(
        measure([0.1, 0.3, 0.4]),
        group_comparisons(list("aab")),
        "difference",
        rng=np.random.default_rng(1),
        min_group=2,
    )
    assert math.isnan(gap.value)
    assert (gap.n, gap.undefined) == (0, 3)


def test_undefined_values_do_not_count_towards_the_size_of_a_group() -> None:
    # b has three queries but one defined value; models with other undefined values would exclude
    # other groups, so the gap of a and c has no samples to compare models by
    values = measure([0.1, 0.3, 0.5, math.nan, math.nan, 0.7, 0.9])
    rng = np.random.default_rng(1)
    gap = compute_gap(
        values, group_comparisons(list("aabbbcc")), "difference", rng=rng, min_group=2
    )
    assert gap.value == pytest.approx(0.6)
    assert gap.replicates is None


def test_each_other_group_is_compared_with_the_reference() -> None:
    values, groups = measure([0.1, 0.3, 0.4, 0.6, 0.8, 0.9]), group_comparisons(list("aabbcc"))
    tests = summarize_groups(values, groups, reference=groups.find_code("b"))[0].contrasts
    assert [(test.a, test.b) for test in tests] == [("g=a", "g=b"), ("g=c", "g=b")]
    assert [test.difference for test in tests] == pytest.approx([-0.3, 0.35])
    welch = stats.ttest_ind([0.1, 0.3], [0.4, 0.6], equal_var=False)
    assert tests[0].p == pytest.approx(welch.pvalue)


def test_a_query_counts_in_each_of_its_groups() -> None:
    # de: 0.2, 0.4, 0.6 -> 0.4;  en: 0.4, 0.6, 1.0 -> 2/3;  the gap is 4/15 over 4 queries
    values, groups = (
        measure([0.2, 0.4, 0.6, 1.0]),
        group_comparisons(["de", "de|en", "en|de", "en"]),
    )
    output = summarize_groups(values, groups)
    assert [(row.group, row.n) for row in output] == [("g=de", 3), ("g=en", 3)]
    assert [row.value for row in output] == pytest.approx([0.4, 2 / 3])
    gap = compute_gap(values, groups, "difference", rng=np.random.default_rng(1))
    assert gap.value == pytest.approx(4 / 15)
    assert gap.n == 4
    assert gap.ci_low < gap.value < gap.ci_high


def test_a_gap_with_an_overlapping_group_of_one_has_no_interval() -> None:
    # a: 0.2, 0.4, 0.6; b: 0.4, 0.6, 1; c: 1, without a warning of numpy
    groups = group_comparisons(["a", "a|b", "b|a", "b|c"])
    values = measure([0.2, 0.4, 0.6, 1.0])
    gap = compute_gap(values, groups, "difference", rng=np.random.default_rng(1))
    assert gap.value == pytest.approx(0.6)
    assert math.isnan(gap.ci_low)


def test_the_test_of_overlapping_groups_by_hand() -> None:
    # a: 1, 3, 5 (mean 3), b: 5, 9 (mean 7), the 5 is in both; 1 / sqrt(n (n - 1)): 1/√6, 1/√2
    # w: -2/√6, 0, 2/√6 + 2/√2, -2/√2;  Σ w² = 4/6 + (2/√6 + √2)² + 2
    values = np.array([1.0, 3.0, 5.0, 9.0])
    members = np.array([[1, 1, 1, 0], [0, 0, 1, 1]], dtype=bool)
    contrast = compare(values, members)
    alone_a, both, alone_b = 4 / 6, (2 / math.sqrt(6) + math.sqrt(2)) ** 2, 2.0
    variance = alone_a + both + alone_b
    assert contrast.difference == -4
    assert contrast.statistic == pytest.approx(-4 / math.sqrt(variance))
    # Satterthwaite: 2 units of a alone, 1 of both and 1 of b alone, with one df each
    df = variance**2 / (alone_a**2 + both**2 + alone_b**2)
    assert contrast.df == pytest.approx(df)
    assert contrast.p == pytest.approx(2 * stats.t.sf(4 / math.sqrt(variance), df))
    assert contrast.n == 4


@given(seed=st.integers(0, 10**6), n_a=st.integers(2, 12), n_b=st.integers(2, 12))
def test_without_shared_units_the_test_is_welchs(seed: int, n_a: int, n_b: int) -> None:
    values = np.random.default_rng(seed).normal(size=n_a + n_b)
    inside = np.arange(n_a + n_b) < n_a
    contrast = compare(values, np.stack([inside, ~inside]))
    welch = stats.ttest_ind(values[inside], values[~inside], equal_var=False)
    assert contrast.statistic == pytest.approx(welch.statistic)
    assert contrast.p == pytest.approx(welch.pvalue)


def test_a_true_null_hypothesis_is_rejected_in_about_five_of_a_hundred_samples() -> None:
    rng, rejected = np.random.default_rng(2), 0
    for _ in range(600):
        members = np.array([rng.random(80) < 0.6, rng.random(80) < 0.6])
        rejected += compare(rng.normal(size=80), members).p < 0.05
    assert 0.02 < rejected / 600 < 0.08


def measure_pooling(group: str, values: dict[str, float], *, share: bool = False) -> Measurement:
    ids = np.array([*values], dtype=object)
    scores = UnitScores("user", ids, np.array([*values.values()]), share)
    return Measurement.from_units(scores, group=group)


def compare_pooling(folds: Sequence[Measurement]) -> Contrast:
    (contrast,) = compare_pooled_groups(pool_groups(folds))
    return contrast


def measure_gap(
    folds: Sequence[Measurement], kind: GapKind = "difference", **settings: int
) -> Measurement:
    members = Members.of_pooled(pool_groups(folds))
    rng = np.random.default_rng(0)
    return compute_gap_of(members, kind, rng=rng, **settings)


def test_units_in_some_folds_by_hand() -> None:
    # F: seeds 0.35 and 0.4, mean 0.375; u1 0.375 - 0.175/2 + 0.025, u2 0.375 + 0.125/2
    # M: seeds 0.9 and 0.7, mean 0.8; u3 0.8 + 0.1 - 0.3/2, u4 0.8 + 0.1/2, u5 undefined
    folds = [
        measure_pooling("F", {"u1": 0.2, "u2": 0.5}),
        measure_pooling("M", {"u3": 0.9, "u4": math.nan, "u5": math.nan}),
        measure_pooling("F", {"u1": 0.4}),
        measure_pooling("M", {"u3": 0.5, "u4": 0.9}),
    ]
    f, m = pool_groups(folds)
    assert [f.value, m.value] == pytest.approx([0.375, 0.8])
    assert [(f.n, f.undefined), (m.n, m.undefined)] == [(2, 0), (2, 1)]
    contrast = compare_pooling(folds)
    expected = stats.ttest_ind([0.3125, 0.4375], [0.75, 0.85], equal_var=False)
    assert (contrast.a, contrast.b, contrast.n, contrast.test) == ("F", "M", 4, "welch_t")
    assert contrast.difference == pytest.approx(-0.425)
    assert contrast.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert [contrast.ci_low, contrast.ci_high] == pytest.approx([interval.low, interval.high])


def test_the_sign_is_that_of_the_means_and_not_of_the_first_seed() -> None:
    # seed 1: F is 0.1 above M; seeds 2 and 3: F is 0.4 below M; mean difference -0.7 / 3
    rng = np.random.default_rng(1)
    folds = []
    for gap in (0.1, -0.4, -0.4):
        noise = rng.normal(0, 0.01, 40)
        folds.append(measure_pooling("F", {f"f{at}": 0.5 + gap + noise[at] for at in range(20)}))
        folds.append(measure_pooling("M", {f"m{at}": 0.5 + noise[20 + at] for at in range(20)}))
    assert compare_pooling(folds[:2]).difference == pytest.approx(0.1, abs=0.02)
    contrast, (f, m) = compare_pooling(folds), pool_groups(folds)
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
        *(
            measure_pooling("F", {"u1": 0.6, "u2": 1.0}),
            measure_pooling("M", {"u3": 0.4, "u4": 0.5, "u5": 0.9}),
        ),
        *(
            measure_pooling("F", {"u1": 0.0, "u2": 0.0}),
            measure_pooling("M", {"u3": 0.4, "u4": 0.5, "u5": 0.9}),
        ),
    ]
    expected = stats.ttest_ind([0.4, 0.5, 0.9], [0.3, 0.5], equal_var=False)
    interval = expected.confidence_interval()
    gap = measure_gap(folds)
    assert gap.value == pytest.approx(0.2)
    assert [gap.ci_low, gap.ci_high] == pytest.approx([0.0, interval.high])
    assert gap.df == pytest.approx(expected.df)
    assert gap.contrasts == (compare_pooling(folds),)
    assert measure_gap(folds, "std").ci_high == pytest.approx(interval.high / math.sqrt(2))
    assert measure_gap(folds, "ratio").value == pytest.approx(0.4 / 0.6)


@pytest.mark.parametrize("n_folds", [1, 3, 10])
def test_the_interval_of_equal_groups_holds_0(n_folds: int) -> None:
    rng, n_covered = np.random.default_rng(n_folds), 0
    for _ in range(300):
        folds = [
            measure_pooling(
                name, {f"{name}{at}": value for at, value in enumerate(rng.beta(2, 4, 6))}
            )
            for _ in range(n_folds)
            for name in "ab"
        ]
        n_covered += measure_gap(folds, n_samples=2).ci_low <= 0.0
    assert 270 <= n_covered <= 299  # 95% of 300 is 285; four standard errors are 15


def test_a_user_whose_group_depends_on_the_seed_counts_in_each_group() -> None:
    # u2 is in a (0.4) with seed 1 and in b (0.8) with seed 2
    folds = [
        *(measure_pooling("a", {"u1": 0.1, "u2": 0.4}), measure_pooling("b", {"u3": 0.6})),
        *(measure_pooling("a", {"u1": 0.3}), measure_pooling("b", {"u2": 0.8, "u3": 1.0})),
    ]
    a, b = pool_groups(folds)
    # a: seeds 0.25 and 0.3; u1 0.275 - 0.175/2 + 0.025 = 0.2125, u2 0.275 + 0.125/2 = 0.3375
    # b: seeds 0.6 and 0.9; u3 0.75 - 0.15 + 0.25/2 = 0.725, u2 0.75 + 0.05/2 = 0.775
    assert [a.value, b.value] == pytest.approx([0.275, 0.75])
    contrast = compare_pooling(folds)
    # w: u1 -0.0625 / √2, u2 (0.0625 - 0.025) / √2, u3 0.025 / √2
    assert (contrast.test, contrast.n) == ("overlap_t", 3)
    assert contrast.difference == pytest.approx(-0.475)
    error = math.sqrt((0.0625**2 + 0.0375**2 + 0.025**2) / 2)
    assert contrast.statistic == pytest.approx(-0.475 / error)


def test_a_difference_of_three_groups_has_the_analysis_of_variance() -> None:
    values = {"a": [0.1, 0.3, 0.2], "b": [0.4, 0.6, 0.7], "c": [0.9, 0.8, 0.5], "d": [0.0]}
    folds = [
        measure_pooling(name, {f"{name}{at}": value + shift for at, value in enumerate(numbers)})
        for shift in (-0.1, 0.1)
        for name, numbers in values.items()
    ]
    (contrast,) = measure_gap(folds, min_group=2).contrasts
    expected = stats.alexandergovern(*(values[name] for name in "abc"))
    assert (contrast.test, contrast.a, contrast.b, contrast.n) == ("welch_anova", "c", "a", 9)
    assert contrast.p == pytest.approx(expected.pvalue, abs=0.02)  # another approximation
    assert measure_gap(folds[:1], min_group=4).contrasts == ()


def test_shares_keep_wilsons_interval_only_if_each_unit_has_one_value() -> None:
    once = [
        measure_pooling("g", {"u1": 1.0}, share=True),
        measure_pooling("g", {"u2": 1.0}, share=True),
    ]
    assert pool_groups(once)[0].ci_low == pytest.approx(2 / (2 + 1.959963984540054**2))
    twice = [measure_pooling("g", {"u1": 1.0, "u2": 0.0}, share=True) for _ in range(2)]
    assert pool_groups(twice)[0].ci_low < 0  # Student's t


def test_copies_of_a_fold_have_the_errors_of_its_labels() -> None:
    values, errors = np.random.default_rng(0).random(20), np.random.default_rng(1).random((20, 6))
    audit = Audit(
        csr_array(errors / 5),
        csr_array((20, 6)),
        np.full(6, 1 / 6),
        np.full(6, 0.1),
        np.zeros((20, 0)),
    )
    ids = np.array([f"u{row:02}" for row in range(20)], dtype=object)
    fold = Measurement.from_units(UnitScores("user", ids, values, errors=audit), group="g")
    without = Measurement.from_units(UnitScores("user", ids, values), group="g")
    (pooled,) = pool_groups([fold, fold])
    assert (pooled.ci_low, pooled.ci_high) == pytest.approx((fold.ci_low, fold.ci_high))
    assert pooled.ci_high != pytest.approx(without.ci_high, abs=0.01)


@given(seed=st.integers(0, 10**6), n_folds=st.integers(1, 4), share=st.floats(0.3, 1))
def test_the_test_is_welchs_of_a_value_for_each_unit(
    seed: int, n_folds: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    tables = {name: rng.normal(size=(n_folds, size)) for name, size in (("a", 8), ("b", 11))}
    for table in tables.values():
        table[rng.random(table.shape) > share] = np.nan
        table[0, :3] = rng.normal(size=3)
    folds = [
        measure_pooling(name, {f"{name}{unit}": value for unit, value in enumerate(row)})
        for name, table in tables.items()
        for row in table
    ]
    order = rng.permutation(n_folds)
    shuffled = [folds[at + n_folds * half] for half in (0, 1) for at in order]
    means, units = [], []
    for table in tables.values():
        used = table[~np.isnan(table).all(axis=1)][:, ~np.isnan(table).all(axis=0)]
        means.append(np.nanmean(used, axis=1).mean())
        weights = used.shape[1] / (len(used) * np.sum(~np.isnan(used), axis=1, keepdims=True))
        units.append(means[-1] + np.nansum((used - means[-1]) * weights, axis=0))
    expected = stats.ttest_ind(*units, equal_var=False)
    for contrast in (compare_pooling(folds), compare_pooling(shuffled)):
        assert contrast.difference == pytest.approx(means[0] - means[1])
        assert contrast.p == pytest.approx(expected.pvalue, rel=1e-6)
        assert contrast.n == sum(map(len, units))


@given(seed=st.integers(0, 10**6), n=st.sampled_from([2, 4, 8]))
def test_equal_or_disjoint_folds_give_the_test_of_one_fold(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values = {name: {f"{name}{at}": float(rng.normal()) for at in range(n)} for name in "ab"}
    one = [measure_pooling(name, scores) for name, scores in values.items()]
    halves = [
        measure_pooling(name, dict(part))
        for name, scores in values.items()
        for part in ([*scores.items()][: n // 2], [*scores.items()][n // 2 :])
    ]
    for folds in (one * 3, halves):
        for pooled, single in zip(pool_groups(folds), one, strict=True):
            assert pooled.value == pytest.approx(single.value)
            assert [pooled.ci_low, pooled.ci_high] == pytest.approx(
                [single.ci_low, single.ci_high]
            )
        assert compare_pooling(folds).p == pytest.approx(compare_pooling(one).p)


def test_welch_by_hand() -> None:
    # a = 1, 3: mean 2, variance 2;  b = 4, 6, 8: mean 6, variance 4
    # error = sqrt(2/2 + 4/3) = 1.527525;  t = -4 / 1.527525 = -2.618615
    # df = (1 + 4/3)^2 / (1^2/1 + (4/3)^2/2) = 5.444444 / 1.888889 = 2.882353
    values, codes = np.array([1.0, 3, 4, 6, 8]), np.array([0, 0, 1, 1, 1])
    (contrast,) = welch_contrasts(("a", "b"), compute_moments(values, codes, 2), between="groups")
    assert (contrast.a, contrast.b, contrast.n) == ("a", "b", 5)
    assert contrast.statistic == pytest.approx(-2.618615, abs=1e-6)
    assert contrast.df == pytest.approx(2.882353, abs=1e-6)
    assert contrast.difference == -4.0


@given(
    st.lists(st.floats(-5, 5), min_size=3, max_size=20).filter(
        lambda sample: np.std(sample) > 0.01
    ),
    st.lists(st.floats(-5, 5), min_size=3, max_size=20).filter(
        lambda sample: np.std(sample) > 0.01
    ),
)
def test_welch_is_scipys(a: list[float], b: list[float]) -> None:
    values = np.array(a + b)
    codes = np.repeat([0, 1], [len(a), len(b)])
    (contrast,) = welch_contrasts(("a", "b"), compute_moments(values, codes, 2), between="groups")
    theirs = ttest_ind(a, b, equal_var=False)
    assert contrast.statistic == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-12)
    assert contrast.p == pytest.approx(theirs.pvalue, rel=1e-7)
    interval = theirs.confidence_interval()
    assert (contrast.ci_low, contrast.ci_high) == pytest.approx(
        (interval.low, interval.high), rel=1e-7
    )
    assert contrast.effect_size == pytest.approx(cohens_d(np.array(a), np.array(b)), rel=1e-9)


@pytest.mark.parametrize("b", [[2.0], [math.nan, math.nan]])
def test_a_group_of_one_or_none_has_no_test(b: list[float]) -> None:
    values = np.array([1.0, 3.0, *b])
    codes = np.repeat([0, 1], [2, len(b)])
    (contrast,) = welch_contrasts(("a", "b"), compute_moments(values, codes, 2), between="groups")
    assert math.isnan(contrast.p)


@pytest.mark.parametrize(
    ("a", "b", "n", "p"),
    [
        (1.0, 0.0, 7, 1 / 120),  # of 10 over 3 divisions
        (0.1, 0.2, 3, 2 / 20),  # and that which swaps them
        (0.7, 0.7, 7, math.nan),
    ],
)
def test_groups_of_equal_values_have_the_p_of_their_labels(
    a: float, b: float, n: int, p: float
) -> None:
    values, codes = np.repeat([a, b], [3, n]), np.repeat([0, 1], [3, n])  # 3 x 0.1 is not 0.3
    moments = compute_moments(values, codes, 2)
    members = np.stack([codes == 0, codes == 1])
    pairs = (np.array([0]), np.array([1]))
    (welch,) = welch_contrasts(("a", "b"), moments, between="groups")
    (overlap,) = overlap_contrasts(("a", "b"), values, members, between="groups", pairs=pairs)
    for test in (welch, overlap):
        names = ("statistic", "effect_size", "ci_low", "ci_high")
        assert all(math.isnan(getattr(test, name)) for name in names), test
    assert welch.p == pytest.approx(p, nan_ok=True)
    assert overlap.p == pytest.approx(p, nan_ok=True)
    assert welch_anova(moments)[2] == pytest.approx(p, nan_ok=True)


@pytest.mark.parametrize(
    ("means", "sizes", "p"),
    [
        ([1, 2, 3], [2, 2, 2], 6 / 90),
        ([1, 2, 3], [2, 3, 4], 1 / 1260),
        ([1, 1, 2], [2, 2, 4], 2 / 420),  # the third group may hold the 1s
        ([1, 1, 1], [2, 2, 2], math.nan),
    ],
)
def test_all_groups_of_equal_values_have_the_p_of_their_labels(
    means: list[float], sizes: list[int], p: float
) -> None:
    codes = np.repeat(np.arange(3), sizes)
    _, _, exact = welch_anova(compute_moments(np.repeat(np.array(means, float), sizes), codes, 3))
    assert exact == pytest.approx(p, nan_ok=True)


def test_a_group_of_equal_values_has_the_spread_of_the_other() -> None:
    values, codes = np.array([0.0, 0, 0, 0, 0, 1, 1]), np.repeat([0, 1], [3, 4])
    moments = compute_moments(values, codes, 2)
    (welch,) = welch_contrasts(("a", "b"), moments, between="groups")
    statistic = -0.5 / math.sqrt((1 / 3) / 3 + (1 / 3) / 4)
    assert welch.statistic == pytest.approx(statistic)
    members, pairs = np.stack([codes == 0, codes == 1]), (np.array([0]), np.array([1]))
    (overlap,) = overlap_contrasts(("a", "b"), values, members, between="groups", pairs=pairs)
    assert (overlap.statistic, overlap.p) == pytest.approx((welch.statistic, welch.p))
    assert welch_anova(moments)[0] == pytest.approx(statistic**2)


@given(
    st.lists(
        st.lists(st.floats(-5, 5), min_size=3, max_size=9).filter(
            lambda sample: np.std(sample) > 0.1
        ),
        min_size=2,
        max_size=5,
    )
)
def test_the_analysis_of_variance_is_scipys(groups: list[list[float]]) -> None:
    values = np.concatenate([np.array(values) for values in groups])
    codes = np.repeat(np.arange(len(groups)), [len(values) for values in groups])
    statistic, df, p = welch_anova(compute_moments(values, codes, len(groups)))
    theirs = f_oneway(*groups, equal_var=False)
    assert statistic == pytest.approx(theirs.statistic, rel=1e-7, abs=1e-10)
    assert p == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
    assert df == len(groups) - 1


def test_groups_that_cannot_be_told_apart_have_no_test() -> None:
    assert math.isnan(welch_anova(compute_moments(np.ones(4), np.array([0, 0, 1, 1]), 2))[2])
    assert math.isnan(welch_anova(compute_moments(np.arange(3.0), np.array([0, 0, 1]), 2))[2])


NAMES = ("a", "b")
SAMPLES = st.lists(st.integers(0, 5), min_size=2, max_size=30)


def test_by_hand() -> None:
    # a above b: (3, 1), (3, 2), (2, 1); equal: (2, 2): U = 3.5 of 4
    test = compare_ranks(NAMES, np.array([3.0, 2.0]), np.array([1.0, 2.0]), between="targets")
    assert (test.statistic, test.effect_size) == (3.5, 0.75)
    assert (test.mean_a, test.mean_b, test.difference, test.n) == (2.5, 1.5, 1.0, 4)
    assert (test.between, test.test, test.a, test.b) == ("targets", "rank_sum", "a", "b")


@given(SAMPLES, SAMPLES)
def test_p_is_that_of_scipy_and_sides_are_symmetric(first: list[int], second: list[int]) -> None:
    a, b = np.array(first, dtype=float), np.array(second, dtype=float)
    test = compare_ranks(NAMES, a, b, between="targets")
    swapped = compare_ranks(NAMES, b, a, between="targets")
    assert swapped.effect_size == pytest.approx(-test.effect_size)
    assert swapped.p == pytest.approx(test.p)
    if np.unique([*first, *second]).size > 1:
        expected = mannwhitneyu(a, b, method="asymptotic")
        assert (test.statistic, test.p) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("size", [0, 1])
def test_a_sample_below_two_values_has_no_p(size: int) -> None:
    test = compare_ranks(NAMES, np.zeros(size), np.ones(3), between="targets")
    assert math.isnan(test.p)
    assert math.isnan(test.effect_size)
