from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import expit, logit
from scipy.stats import t

from recbias.core.dataset import FloatArray
from recbias.statistics import bootstrap
from recbias.statistics.bootstrap import (
    LARGE,
    N_SETS,
    add_in_sets,
    combine_slot_samples,
    compare_replicates,
    compute_group_means,
    count_slot_dfs,
    join_rows,
    list_slot_sets,
    prepare_sums,
    resample_group_means,
    resample_linear_part,
    resample_means,
    resample_sums,
    sample_cluster_weights,
    sample_slot_weights,
    widen_samples,
)
from recbias.statistics.inequality import gini, gini_without_rows
from recbias.statistics.intervals import (
    arcsine_t_interval,
    bootstrap_interval,
    bootstrap_standard_error,
    logit_t_interval,
)


def sample_sums(matrix: np.ndarray, n_samples: int, seed: int) -> np.ndarray:
    return np.concatenate(list(resample_sums(csr_array(matrix), n_samples, seed)))


def test_sums_are_those_of_rows_drawn_with_replacement(rng: np.random.Generator) -> None:
    matrix = rng.integers(0, 2, size=(17, 6))
    draws = np.random.default_rng(8)
    expected = [matrix[draws.integers(17, size=17)].sum(axis=0).tolist() for _ in range(50)]
    assert sample_sums(matrix, 50, 8).tolist() == expected


def test_undefined_members_are_left_out_of_the_mean_of_a_sample() -> None:
    values, codes = np.array([5.0, np.nan, 5.0, 2.0, np.nan, 2.0] * 20), np.repeat([0, 1] * 20, 3)
    samples = resample_group_means(values, codes, 2, 10, np.random.default_rng(0))
    np.testing.assert_allclose(samples, np.tile([5.0, 2.0], (10, 1)))


def test_pairs_by_hand() -> None:
    # differences of a and b over four samples: 2, 1, -1, 0: mean 0.5, se sqrt(5 / 3) = 1.290994;
    # the figures differ by 2: z = 1.549193, p = 0.121335; interval 2 +- 1.959964 x 1.290994
    columns = compare_replicates(
        np.array([3.0, 1.0]), np.array([[3.0, 3, 1, 2], [1, 2, 2, 2]]), alpha=0.05
    )
    assert columns["difference"].tolist() == [2]
    assert (columns["mean_a"].tolist(), columns["mean_b"].tolist()) == ([3], [1])
    assert columns["statistic"][0] == pytest.approx(1.549193, abs=1e-6)
    assert columns["p"][0] == pytest.approx(0.121335, abs=1e-6)
    assert columns["ci_low"][0] == pytest.approx(2 - 1.959964 * 1.290994, abs=1e-5)
    assert columns["ci_high"][0] == pytest.approx(2 + 1.959964 * 1.290994, abs=1e-5)
    for name in ("n", "df", "effect_size"):
        assert np.isnan(columns[name]).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_no_sample_changes_has_no_test(sign: int) -> None:
    replicates = np.stack([np.zeros(999), np.full(999, -0.5 * sign)])
    columns = compare_replicates(np.array([0.0, -0.5 * sign]), replicates, 0.05)
    assert columns["difference"].tolist() == [0.5 * sign]
    for name in ("statistic", "p", "ci_low", "ci_high"):
        assert np.isnan(columns[name]).all(), name


def test_systems_that_never_differ_have_a_p_of_one() -> None:
    columns = compare_replicates(np.array([0.3, 0.3]), np.full((2, 10), 0.3), 0.05)
    assert columns["p"].tolist() == [1]


def test_samples_without_a_figure_are_left_out_pair_by_pair() -> None:
    replicates = np.array([[1.0, np.nan, 2, 3], [0, 5, np.nan, 1], [np.nan] * 4])
    columns = compare_replicates(np.array([1.0, 0.5, np.nan]), replicates, 0.05)
    # (0, 1): differences 1 and 2 are left: se sqrt(1 / 2), z = 0.5 / 0.707107
    assert columns["statistic"][0] == pytest.approx(0.707107, abs=1e-6)
    assert np.isnan(columns["p"]).tolist() == [False, True, True]
    assert np.isnan(columns["ci_low"]).tolist() == [False, True, True]


def test_the_interval_holds_the_difference_where_the_samples_lie_beside_it() -> None:
    """Coverage: every sample is lower than the figure, and lower by more for one of the two."""
    rng = np.random.default_rng(2)
    samples = np.stack([0.45 + 0.01 * rng.normal(size=500), 0.48 + 0.01 * rng.normal(size=500)])
    columns = compare_replicates(np.array([0.60, 0.50]), samples, 0.05)
    assert columns["ci_low"][0] < columns["difference"][0] < columns["ci_high"][0]
    assert columns["statistic"][0] > 0


@pytest.mark.slow
def test_the_level_holds_and_a_planted_difference_is_found(rng: np.random.Generator) -> None:
    # the figure is the share of ones among 200 rows; 500 worlds with equal systems, and 100 in
    # which one has a quarter more
    def compute_p_value(share: float, seed: int) -> float:
        rows = np.stack([rng.random(200) < 0.5, rng.random(200) < share], axis=1).astype(int)
        replicates = sample_sums(rows, 199, seed).T / 200
        return float(compare_replicates(rows.mean(axis=0), replicates, 0.05)["p"][0])

    null = np.mean([compute_p_value(0.5, seed) <= 0.05 for seed in range(500)])
    assert 0.02 < null < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 500)
    assert np.mean([compute_p_value(0.75, seed) <= 0.05 for seed in range(100)]) > 0.95


@pytest.mark.parametrize("df", [math.nan, 4.0])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_the_same_lists_added_up_in_another_order_do_not_differ(unit: float, df: float) -> None:
    rng = np.random.default_rng(3)
    values = unit * rng.random(300)
    samples = [rng.permutation(300) for _ in range(200)]
    # the same numbers in every sample, from the front and from the back
    replicates = np.array(
        [
            [sum(values[sample]) / 300 for sample in samples],
            [sum(values[::-1][e]) / 300 for e in samples],
        ]
    )
    points = np.array([sum(values) / 300, sum(values[::-1]) / 300])
    assert points[0] != points[1]
    assert (replicates[0] != replicates[1]).any()
    columns = compare_replicates(points, replicates, 0.05, df=df)
    assert columns["p"].tolist() == [1]
    assert np.isnan(columns["statistic"]).all()
    for name in ("difference", "ci_low", "ci_high"):
        assert columns[name].tolist() == [0]


@pytest.mark.parametrize("unit", [1.0, 1e-30, 1e30])
def test_a_difference_that_is_small_but_no_rounding_is_tested(unit: float) -> None:
    rng = np.random.default_rng(3)
    values = 0.5 + 0.01 * rng.normal(size=500)
    gaps = 1e-10 * rng.normal(size=500)
    gaps /= gaps.std(ddof=1) / 1e-10
    columns = compare_replicates(
        unit * np.array([0.5 + 4e-10, 0.5]), unit * np.stack([values + gaps, values]), 0.05
    )
    # the spread of the gaps is 1e-10: z = 4 and p = 6.334e-05
    assert columns["difference"][0] == pytest.approx(unit * 4e-10, rel=1e-5)
    assert columns["statistic"][0] == pytest.approx(4, rel=1e-4)
    assert columns["p"][0] == pytest.approx(6.334e-05, rel=1e-3)


def test_sums_of_joined_rows_are_exact_in_single_precision(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 500, size=(40, 30))
    weights = np.array(rng.multinomial(40, np.full(40, 1 / 40), 50))
    sums = prepare_sums(counts)(weights)
    assert sums.dtype == np.float32
    np.testing.assert_array_equal(sums, weights @ counts)
    np.testing.assert_array_equal(prepare_sums(csr_array(counts))(weights), weights @ counts)
    assert prepare_sums(counts * 10**6)(weights).dtype == np.float64
    assert prepare_sums(counts * 0.5)(weights).dtype == np.float64


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(6, 40), n_sets=st.integers(1, 5))
def test_each_row_is_in_one_set_and_sets_have_the_same_size(
    seed: int, n: int, n_sets: int
) -> None:
    rows = np.column_stack([np.ones(n), 2.0 ** np.arange(n)])
    sums = join_rows(rows, np.random.default_rng(seed), large=5, n_sets=n_sets)
    assert sums[:, 0].max() - sums[:, 0].min() <= 1
    assert sums.sum(axis=0).tolist() == rows.sum(axis=0).tolist()
    sparse = join_rows(csr_array(rows), np.random.default_rng(seed), large=5, n_sets=n_sets)
    assert sparse.tolist() == sums.tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_sums_of_sets_are_those_of_a_product(
    dtype: type, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = csr_array((rng.random((30, 7)) * 5).astype(dtype) * (rng.random((30, 7)) < 0.4))
    sets = rng.integers(-1, 4, 30)
    members = (sets[None, :] == np.arange(4)[:, None]).astype(dtype)
    sums = add_in_sets(rows, sets, 4)
    assert sums.dtype == dtype
    np.testing.assert_array_equal(sums, members @ rows.toarray())
    np.testing.assert_array_equal(
        add_in_sets(rows, sets, 4, are_full=False).toarray(), members @ rows.toarray()
    )
    monkeypatch.setattr(bootstrap, "DENSE_CELLS", 27)
    assert add_in_sets(rows, sets, 4).toarray().tolist() == sums.tolist()


@pytest.fixture
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "LARGE", 500)
    monkeypatch.setattr(bootstrap, "N_SETS", 100)


@pytest.mark.usefixtures("small_sets")
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_sums_of_sets_spread_as_sums_of_rows_do(dtype: Any, rng: np.random.Generator) -> None:
    rows = rng.binomial(1, [0.5, 0.1, 0.02], size=(2_000, 3)).astype(dtype)
    samples = np.concatenate(list(resample_sums(csr_array(rows), 2_000, 4)))
    assert samples.dtype == dtype
    # the standard deviation of a sum of 2,000 rows; that of 100 sets is estimated within 7%
    expected = np.sqrt(2_000) * rows.std(axis=0)
    assert samples.std(axis=0) == pytest.approx(expected, rel=0.3)
    assert samples.mean(axis=0) == pytest.approx(rows.sum(axis=0), rel=0.02)
    again = np.concatenate(list(resample_sums(csr_array(rows[:, ::-1]), 2_000, 4)))
    assert (again[:, ::-1] == samples).all()


def average(sums: Any) -> FloatArray:
    return np.asarray(sums[..., 0] / sums[..., 1])


@given(seed=st.integers(0, 2**32 - 1))
def test_samples_of_a_mean_are_those_of_resampled_rows(seed: int) -> None:
    # without the factor, the part of a row in a mean is (x - mean) / (q - 1)
    values = np.random.default_rng(seed).normal(size=15)
    rows = csr_array(np.stack([values, np.ones(15)], axis=1))
    samples, df = resample_linear_part(rows, average, 30, seed)
    means = np.concatenate([average(sums) for sums in resample_sums(rows, 30, seed)])
    factor = math.sqrt(14 / 15) * 15 / 14
    assert samples - values.mean() == pytest.approx((means - values.mean()) * factor, abs=1e-12)
    assert df == 14


def test_standard_error_of_a_mean_is_that_of_its_formula() -> None:
    values = np.array([1.0, 2.0, 6.0, 11.0])
    rows = csr_array(np.stack([values, np.ones(4)], axis=1))
    samples, _ = resample_linear_part(rows, average, 40_000, 0)
    assert float(samples.std()) == pytest.approx(values.std(ddof=1) / 2, rel=0.02)


def test_the_faster_computation_gives_the_same_samples() -> None:
    rows = csr_array((np.random.default_rng(0).random((50, 20)) < 0.3).astype(np.int32))
    slow, _ = resample_linear_part(rows, gini, 20, 3)
    fast, _ = resample_linear_part(rows, gini, 20, 3, leave_out=gini_without_rows)
    assert fast == pytest.approx(slow, rel=1e-12)


def test_many_rows_are_left_out_in_sets() -> None:
    values = np.random.default_rng(0).normal(size=LARGE + 1)
    rows = csr_array(np.stack([values, np.ones(values.size)], axis=1))
    samples, df = resample_linear_part(rows, average, 400, 0)
    assert df == N_SETS - 1
    expected = values.std(ddof=1) / math.sqrt(values.size)
    assert float(samples.std(ddof=1)) == pytest.approx(expected, rel=0.15)


def test_a_single_row_and_an_undefined_estimate_have_no_samples() -> None:
    one, df = resample_linear_part(csr_array([[1, 0]]), gini, 5, 0)
    assert np.isnan(one).all()
    assert math.isnan(df)
    nothing_left, _ = resample_linear_part(csr_array([[1, 0], [0, 0]]), gini, 5, 0)
    assert np.isnan(nothing_left).all()


def test_samples_are_widened_to_the_wider_ones() -> None:
    linear, wide = np.array([0.0, 1.0, 2.0]), np.array([-1.0, 1.0, 5.0])
    widened = widen_samples(1.0, linear, wide)
    assert float(widened.std()) == pytest.approx(float(wide.std()))
    assert np.corrcoef(widened, linear)[0, 1] == pytest.approx(1)
    assert widen_samples(1.0, wide, linear) is wide
    assert widen_samples(1.0, np.ones(3), wide) is wide
    assert widen_samples(1.0, np.ones(3), np.ones(3)).tolist() == [1, 1, 1]


def test_one_less_than_the_clusters_of_each_stratum_is_drawn(rng: np.random.Generator) -> None:
    weights = sample_cluster_weights(np.array([0, 1, 0, 1, 1]), 50, rng)
    assert weights.shape == (50, 5)
    assert (weights[:, [0, 2]].sum(axis=1) == 1).all()
    assert (weights[:, [1, 3, 4]].sum(axis=1) == 2).all()


def test_a_single_cluster_says_nothing_of_its_spread(rng: np.random.Generator) -> None:
    weights = sample_cluster_weights(np.array([0, 1, 1]), 3, rng)
    assert np.isnan(weights[:, 0]).all()
    assert not np.isnan(weights[:, 1:]).any()


@pytest.mark.parametrize("n", [3, 10])
def test_the_spread_of_a_mean_is_its_standard_error(n: int, rng: np.random.Generator) -> None:
    values = rng.normal(size=(n, 1))
    weights = sample_cluster_weights(np.zeros(n, dtype=int), 20_000, rng)
    means = compute_group_means(values, np.zeros(n, dtype=int), 1, weights)[:, 0, 0]
    # the standard error of a spread of 20,000 samples is about 0.5% of it
    assert float(bootstrap_standard_error(means)) == pytest.approx(
        values.std(ddof=1) / np.sqrt(n), rel=0.03
    )


def test_weighted_means_by_hand() -> None:
    values, groups = np.array([[1.0, 2.0], [3.0, 2.0], [9.0, 0.0]]), np.array([0, 0, 1])
    # weights 1, 3, 0: (1 + 9)/4 and 2; the second group has no weight
    means = compute_group_means(values, groups, 2, np.array([[1.0, 3.0, 0.0]]))
    assert means[0, 0].tolist() == [2.5, 2.0]
    assert np.isnan(means[0, 1]).all()


def test_the_interval_is_students() -> None:
    low, high = bootstrap_interval(5.0, np.array([4.0, 5.0, 6.0]), 4)
    assert float(high) == pytest.approx(5 + t.ppf(0.975, 4))
    assert float(low) == pytest.approx(5 - t.ppf(0.975, 4))
    assert np.isnan(bootstrap_interval(5.0, np.array([4.0, 6.0]), 0)).all()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.97])
def test_the_interval_of_a_share_is_that_of_its_logit(share: float) -> None:
    replicates = np.clip(share + np.array([-0.01, 0.0, 0.01, np.nan]), 1e-3, 1.0)
    low, high = logit_t_interval(share, replicates, 9)
    half = 2.2621572 * logit(replicates[:3]).std(ddof=1)  # t(0.975; 9)
    assert (low, high) == pytest.approx((expit(logit(share) - half), expit(logit(share) + half)))
    assert 0 < low < share < high < 1


def test_a_share_with_a_replicate_of_0_has_the_plain_interval_within_0_and_1() -> None:
    replicates = np.array([0.0, 0.02, 0.04])
    low, high = logit_t_interval(0.02, replicates, 9)
    assert (low, high) == pytest.approx((0.0, 0.02 + 2.2621572 * 0.02))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.4, 1.0])
def test_the_interval_of_a_share_is_that_of_its_arcsine(share: float) -> None:
    replicates = np.array([0.0, 0.1, 0.4, np.nan])
    low, high = arcsine_t_interval(share, replicates, 9)
    half = 2.2621572 * np.arcsin(np.sqrt(replicates[:3])).std(ddof=1)  # t(0.975; 9)
    centre = np.arcsin(np.sqrt(share))
    ends = np.clip([centre - half, centre + half], 0.0, np.pi / 2)
    assert (low, high) == pytest.approx(tuple(np.sin(ends) ** 2))
    assert 0 <= low <= share <= high <= 1


ONE_CLASS = np.zeros((8, 5), dtype=int)
SAME = (np.repeat([0, 1], 4)[:, None] != np.array([0, 0, 0, 1, 1])).astype(int)


def test_sets_of_slots() -> None:
    assert list_slot_sets(3) == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert count_slot_dfs(SAME) == (6, 3)
    assert count_slot_dfs(ONE_CLASS) == (7, 4)


def test_words_of_a_class_keep_their_weight(rng: np.random.Generator) -> None:
    first, second, both = (
        weights.reshape(-1, 8, 5) for weights in sample_slot_weights(SAME, 40, rng)
    )
    assert (first == first[:, :, :1]).all()
    assert (second == second[:, :1]).all()
    for weights in (first, second, both):
        block = weights[:, :4, :3].sum(axis=(1, 2))
        assert block.tolist() == pytest.approx([12.0] * 40)
    assert both.tolist() == pytest.approx(1 + (first - 1) * (second - 1))


def test_a_word_alone_in_its_class_says_nothing_of_its_spread(rng: np.random.Generator) -> None:
    first, second, both = sample_slot_weights(SAME[:, 2:4], 3, rng)
    assert not np.isnan(first).any()
    assert np.isnan(second).all()
    assert np.isnan(both).all()


def test_what_words_do_alone_is_in_their_own_samples_only(rng: np.random.Generator) -> None:
    alone = rng.normal(size=(8, 1)) + np.zeros(5)
    means = [
        (weights @ alone.ravel()) / 40 for weights in sample_slot_weights(ONE_CLASS, 20_000, rng)
    ]
    # the standard error of a mean of 8 words; its own is 0.5% of it
    assert bootstrap_standard_error(means[0]) == pytest.approx(
        alone[:, 0].std(ddof=1) / np.sqrt(8), rel=0.03
    )
    assert bootstrap_standard_error(means[1]) == pytest.approx(0, abs=1e-12)
    assert bootstrap_standard_error(means[2]) == pytest.approx(0, abs=1e-12)


def test_what_words_do_together_counts_once() -> None:
    rng = np.random.default_rng(5)
    variances = []
    for _ in range(200):
        values = rng.normal(size=(8, 5))  # the variance of the mean is 1/40
        samples = [
            (weights @ values.ravel()) / 40 for weights in sample_slot_weights(ONE_CLASS, 200, rng)
        ]
        joined, _ = combine_slot_samples(np.asarray(values.mean()), np.stack(samples), (7, 4))
        variances.append(float(bootstrap_standard_error(joined)) ** 2)
    # taken for what words do alone as well it would be 3/40; it errs above, never being less than
    # what words do together
    assert 1 / 40 < np.mean(variances) < 1.7 / 40


def test_joined_samples_by_hand() -> None:
    # variances 2, 0.5 and 0.5: V = 2, of 2.5; samples 1 -+ 1 and 1 +- 0.5 -> (0.5 * 0.894...)
    samples = np.array([[[0.0], [2.0]], [[1.5], [0.5]], [[0.5], [1.5]]])
    combined, df = combine_slot_samples(np.array([1.0]), samples, (4, 2))
    scale = np.sqrt(2 / 2.5)
    assert combined[:, 0].tolist() == pytest.approx([1 - 0.5 * scale, 1 + 0.5 * scale])
    assert df.tolist() == pytest.approx([2.5**2 / (4 / 4 + 0.25 / 2)])


def test_one_set_is_taken_as_it_is() -> None:
    samples = np.arange(6.0).reshape(1, 3, 2)
    combined, df = combine_slot_samples(np.zeros(2), samples, (9,))
    assert combined.tolist() == samples[0].tolist()
    assert df.tolist() == [9, 9]


def test_samples_lie_around_the_mean_with_its_standard_error(rng: np.random.Generator) -> None:
    values = rng.normal(3.0, 2.0, 400)
    means = resample_means(values, 4000, rng)
    assert means.mean() == pytest.approx(values.mean(), abs=0.01)
    assert means.std() == pytest.approx(values.std(ddof=1) / 20, rel=0.05)


def test_the_spread_is_right_for_small_sets() -> None:
    # of 3 values: 1, 2, 6, mean 3, squares 4 + 1 + 9, variance 7: that of their mean is 7/3
    means = resample_means(np.array([1.0, 2.0, 6.0]), 40_000, np.random.default_rng(0))
    assert means.var() == pytest.approx(7 / 3, rel=0.03)
    assert np.isnan(resample_means(np.array([1.0]), 3, np.random.default_rng(0))).all()
