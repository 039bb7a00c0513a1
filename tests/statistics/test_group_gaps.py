from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.measures import Measurement, UnitScores
from recbias.core.queries import Groups, group_by
from recbias.statistics.groups import MAX_PAIRS, compute_gap, summarize_groups


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
    assert measurements[0].units is not None
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
    assert gap.replicates is not None
    assert gap.replicates.min() < 0 < gap.replicates.max()
    spread = compute_gap(measure(values), groups, "std", rng=make_rng(), n_samples=4000)
    assert spread.ci_high == pytest.approx(gap.ci_high / math.sqrt(2))
    ratio = compute_gap(measure(values), groups, "ratio", rng=make_rng(), n_samples=4000)
    assert ratio.ci_high == 1.0
    assert ratio.replicates is not None
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
