from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.dataset import Attributes, BoolArray, FloatArray, Vocabulary
from recbias.core.measures import Contrast, Measurement, UnitScores
from recbias.core.queries import Groups, group_by
from recbias.statistics.groups import compute_gap, overlap_contrasts, summarize_groups

PAIR = (np.array([0]), np.array([1]))


def measure(values: list[float]) -> Measurement:
    ids = np.array([f"u{query}" for query in range(len(values))], dtype=object)
    return Measurement.from_units(UnitScores("user", ids, np.array(values)))


def group(labels: list[str]) -> Groups:
    ids = Vocabulary.of([str(query) for query in range(len(labels))])
    table = Attributes(ids, pd.DataFrame({"g": labels}), "query")
    return group_by(table, "g", split_cells=True)


def compare(values: FloatArray, members: BoolArray) -> Contrast:
    (contrast,) = overlap_contrasts(("a", "b"), values, members, between="groups", pairs=PAIR)
    return contrast


def test_small_groups_are_shown_but_neither_compared_nor_in_the_gap() -> None:
    # means: a 0.2 (2), b 0.5 (2), c 0.9 (1); without c the difference is 0.3, the ratio 0.4
    values, groups = measure([0.1, 0.3, 0.4, 0.6, 0.9]), group(list("aabbc"))
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
        group(list("aab")),
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
    gap = compute_gap(values, group(list("aabbbcc")), "difference", rng=rng, min_group=2)
    assert gap.value == pytest.approx(0.6)
    assert gap.replicates is None


def test_each_other_group_is_compared_with_the_reference() -> None:
    values, groups = measure([0.1, 0.3, 0.4, 0.6, 0.8, 0.9]), group(list("aabbcc"))
    tests = summarize_groups(values, groups, reference=groups.find_code("b"))[0].contrasts
    assert [(test.a, test.b) for test in tests] == [("g=a", "g=b"), ("g=c", "g=b")]
    assert [test.difference for test in tests] == pytest.approx([-0.3, 0.35])
    welch = stats.ttest_ind([0.1, 0.3], [0.4, 0.6], equal_var=False)
    assert tests[0].p == pytest.approx(welch.pvalue)


def test_a_query_counts_in_each_of_its_groups() -> None:
    # de: 0.2, 0.4, 0.6 -> 0.4;  en: 0.4, 0.6, 1.0 -> 2/3;  the gap is 4/15 over 4 queries
    values, groups = measure([0.2, 0.4, 0.6, 1.0]), group(["de", "de|en", "en|de", "en"])
    output = summarize_groups(values, groups)
    assert [(row.group, row.n) for row in output] == [("g=de", 3), ("g=en", 3)]
    assert [row.value for row in output] == pytest.approx([0.4, 2 / 3])
    gap = compute_gap(values, groups, "difference", rng=np.random.default_rng(1))
    assert gap.value == pytest.approx(4 / 15)
    assert gap.n == 4
    assert gap.ci_low < gap.value < gap.ci_high


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
