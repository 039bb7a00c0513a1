from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.permutation import (
    Exchange,
    permute_groups,
    permute_labels,
    permute_sets,
    permute_slots,
)


def permute_gap(a: list[float], b: list[float], *, draws: int = 10_000, seed: int = 0) -> float:
    values = np.array([*a, *b], dtype=np.float64)[None, :, None]
    observed = np.array([[np.mean(a) - np.mean(b)]])
    exchange = Exchange.of_two(np.array([len(a) + len(b)]), np.array([len(a)]))
    rng = np.random.default_rng(seed)
    return float(
        permute_labels(
            values, observed, exchange, np.subtract, n_permutations=draws, rng=rng
        ).item()
    )


def test_all_labellings_are_counted_by_hand() -> None:
    # {1, 2} {6}: 3 labellings with gaps 1.5 - 6 = -4.5, 3.5 - 2 = 1.5, 4 - 1 = 3: 1 of 3
    assert permute_gap([1, 2], [6]) == pytest.approx(1 / 3)


@given(seed=st.integers(0, 2**32 - 1))
def test_exact_p_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 9, 3).astype(float), rng.integers(0, 9, 4).astype(float)

    def measure_gap(x: FloatArray, y: FloatArray) -> float:
        return float(abs(x.mean() - y.mean()))

    # one-sided on |gap|; scipy's "two-sided" doubles the smaller tail, which is another rule
    theirs = permutation_test(
        (a, b), measure_gap, n_resamples=10_000, alternative="greater"
    ).pvalue
    assert permute_gap(a.tolist(), b.tolist()) == pytest.approx(theirs)


def test_strata_are_exchanged_within_themselves() -> None:
    # pairs (3, 1) and (5, 4): signings of the mean gap: (2 + 1)/2, (-2 + 1)/2, (2 - 1)/2, ...
    values = np.array([[[3.0], [1.0], [5.0], [4.0]]])
    exchange = Exchange.of_two(np.array([2, 2]), np.array([1, 1]))
    assert exchange.n_labellings == 4
    rng = np.random.default_rng(0)
    observed = np.array([[4.0 - 2.5]])
    assert permute_labels(values, observed, exchange, np.subtract, rng=rng).item() == 0.5


@pytest.mark.parametrize(
    ("sizes", "firsts"), [([4], [2]), ([3, 2], [1, 1]), ([3, 1, 2], [2, 1, 0])]
)
def test_every_labelling_comes_once(sizes: list[int], firsts: list[int]) -> None:
    exchange = Exchange.of_two(np.array(sizes), np.array(firsts))
    labellings = np.concatenate(list(exchange.enumerate_labellings(2)))
    assert len(labellings) == exchange.n_labellings == len(np.unique(labellings, axis=0))
    ends = np.cumsum(sizes)
    for end, size, first in zip(ends, sizes, firsts, strict=True):
        assert (labellings[:, end - size : end].sum(axis=1) == first).all()


@pytest.mark.parametrize("first", [1, 2])
def test_drawn_labellings_are_uniform(first: int, rng: np.random.Generator) -> None:
    exchange = Exchange.of_two(np.array([4]), np.array([first]))
    labellings = np.concatenate(list(exchange.sample_labellings(24_000, 7_000, rng)))
    assert labellings.shape == (24_000, 4)
    ways = [set(units) for units in combinations(range(4), first)]
    for way in ways:
        labelling = np.isin(np.arange(4), list(way))
        share = (labellings == labelling).all(axis=1).mean()
        # standard error of a share of 1/6 in 24,000: 0.0024; five of them
        assert share == pytest.approx(1 / len(ways), abs=0.015)


@pytest.mark.parametrize("first", [2, 250, 400, 598])
def test_many_units_are_dealt_exactly_and_evenly(first: int, rng: np.random.Generator) -> None:
    exchange = Exchange.of_two(np.array([600]), np.array([first]))
    labellings = np.concatenate(list(exchange.sample_labellings(4_000, 1_500, rng)))
    assert (labellings.sum(axis=1) == first).all()
    share = first / 600
    # each unit: standard error of a share in 4,000; the largest of 600 deviations is about 3.2
    error = np.sqrt(share * (1 - share) / 4_000)
    assert np.abs(labellings.mean(axis=0) - share).max() < 5 * error
    # two units of one draw: hypergeometric, P(both) = share (first - 1) / 599
    both = (labellings[:, :300] & labellings[:, 300:]).mean()
    assert both == pytest.approx(share * (first - 1) / 599, abs=5 * error / np.sqrt(300) + 1e-4)


def test_an_undefined_statistic_is_undefined_and_an_undefined_relabelling_a_hit() -> None:
    def compute_ratio(a: FloatArray, b: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((a - b) / (a * b))

    values = np.array([[[1.0, 0.0], [2.0, 0.0], [4.0, 0.0]]])
    exchange = Exchange.of_two(np.array([3]), np.array([1]))
    observed = compute_ratio(values[:, 2], values[:, :2].mean(axis=1))
    rng = np.random.default_rng(0)
    p = permute_labels(values, observed, exchange, compute_ratio, rng=rng)
    assert np.isnan(p[0, 1])
    # (4 - 1.5)/6 = 0.417; (1 - 3)/3 = -0.667; (2 - 2.5)/5 = -0.1: 2 of 3
    assert p[0, 0] == pytest.approx(2 / 3)


def test_a_test_of_nothing_rejects_at_its_level(rng: np.random.Generator) -> None:
    p_values = [
        permute_gap(row[:8].tolist(), row[8:].tolist(), draws=199)
        for row in rng.exponential(size=(400, 18))
    ]
    # 5% of 400 is 20, standard error 4.4
    assert 6 <= sum(p <= 0.05 for p in p_values) <= 36


SAME = np.array([[True, False]]), np.array([[False, True]])


def mark_unlike(a: list[int], b: list[int]) -> AnyArray:
    """0 where both are of one class, else 1."""
    return np.asarray(np.array(a)[:, None] != np.array(b), dtype=np.intp)


def test_words_are_of_one_class_where_they_have_the_same_labels() -> None:
    exchange = Exchange.of_slots(mark_unlike([0, 1, 0, 1], [1, 1, 0]))
    assert [classes.tolist() for classes in exchange.strata] == [[1, 0, 1, 0], [1, 1, 0]]
    assert exchange.n_labellings == 6 * 3


@pytest.mark.parametrize("b", [[0, 1], [0, 0, 1], [0, 0, 1, 1]])
def test_every_way_is_that_of_permuted_words(b: list[int]) -> None:
    labels = mark_unlike([0, 0, 1], b)
    exchange = Exchange.of_slots(labels)
    labellings = np.concatenate(list(exchange.enumerate_labellings(5)))
    assert len(labellings) == exchange.n_labellings
    rows = permutations(range(3))
    theirs = {
        tuple(labels[np.ix_(row, column)].ravel())
        for row in rows
        for column in permutations(range(len(b)))
    }
    assert {tuple(labelling) for labelling in labellings.tolist()} == theirs


def test_p_by_hand() -> None:
    # first words f, m; second f, m; the diagonal is "same": 4 0 / 1 3 -> 3.5 - 0.5 = 3
    # of 2 * 2 ways two leave the labels as they are and two turn them: all as far from 0
    values = np.array([[4.0], [0.0], [1.0], [3.0]])
    statistic, p = permute_slots(
        values, mark_unlike([0, 1], [0, 1]), SAME, np.subtract, rng=np.random.default_rng(0)
    )
    assert (statistic.tolist(), p.tolist()) == ([[3.0]], [[1.0]])


def test_what_words_do_alone_is_no_difference(rng: np.random.Generator) -> None:
    labels = mark_unlike([0] * 4 + [1] * 4, [0] * 3 + [1] * 3)
    alone = rng.normal(0, 5, (8, 1)) + rng.normal(0, 5, 6)
    statistic, p = permute_slots(alone.reshape(-1, 1), labels, SAME, np.subtract, rng=rng)
    assert statistic.item() == pytest.approx(0)
    planted = alone - 0.1 * labels + rng.normal(0, 0.01, (8, 6))
    statistic, p = permute_slots(
        planted.reshape(-1, 1), labels, SAME, np.subtract, n_permutations=2000, rng=rng
    )
    assert statistic.item() == pytest.approx(0.1, abs=0.01)
    # 70 * 20 = 1,400 ways: the observed one, and those with all genders of a slot, or both, turned
    assert p.item() == pytest.approx(4 / 1400)


def test_nothing_to_exchange_and_undefined_figures_have_no_p() -> None:
    rng = np.random.default_rng(0)
    values = np.ones((4, 1))
    _, p = permute_slots(values, np.zeros((2, 2), dtype=int), SAME, np.subtract, rng=rng)
    assert np.isnan(p).all()
    _, p = permute_slots(
        values, mark_unlike([0, 1], [0, 1]), SAME, lambda a, b: (a - b) / (a - a), rng=rng
    )
    assert np.isnan(p).all()


def test_a_test_of_nothing_rejects_at_its_level_slot(rng: np.random.Generator) -> None:
    labels = mark_unlike([0] * 8 + [1] * 8, [0] * 3 + [1] * 3)
    p_values = []
    for _ in range(300):
        values = rng.normal(size=(16, 1)) + rng.normal(size=6) + 0.3 * rng.normal(size=(16, 6))
        _, p = permute_slots(
            values.reshape(-1, 1), labels, SAME, np.subtract, n_permutations=199, rng=rng
        )
        p_values.append(p.item())
    # 5% of 300 is 15, standard error 3.8
    assert 4 <= sum(p <= 0.05 for p in p_values) <= 28


def permute(
    scores: list[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    groups: list[int],
    strata: list[int] | None = None,
    **settings: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    values = np.column_stack([scores, np.ones(len(groups))])
    codes = np.zeros(len(groups), dtype=int) if strata is None else np.array(strata)
    return permute_groups(
        values,
        np.array(groups),
        codes,
        n_groups=settings.pop("n_groups", max(groups) + 1),
        rng=np.random.default_rng(0),
        **settings,
    )


def test_every_labelling_within_strata_occurs_once() -> None:
    strata = (np.array([0, 1, 2]), np.array([0, 0, 1]))
    exchange = Exchange(strata)
    labellings = np.concatenate(list(exchange.enumerate_labellings(4)))
    expected = {
        first + second for first in permutations((0, 1, 2)) for second in permutations((0, 0, 1))
    }
    assert {tuple(row) for row in labellings.tolist()} == expected
    assert len(labellings) == exchange.n_labellings == 18


def test_sampled_labellings_keep_the_labels_of_each_stratum() -> None:
    exchange = Exchange((np.array([0, 1, 2]), np.array([3, 3, 4])))
    blocks = list(exchange.sample_labellings(7, 3, np.random.default_rng(0)))
    assert [len(block) for block in blocks] == [3, 3, 1]
    for row in np.concatenate(blocks):
        assert sorted(row[:3].tolist()) == [0, 1, 2]
        assert sorted(row[3:].tolist()) == [3, 3, 4]


def test_spread_and_p_by_hand() -> None:
    # means 1, 2, 6: range 5; std √((4 + 1 + 9) / 3); of 3! labellings in a stratum each has them
    _, spread, p = permute([1.0, 2.0, 6.0], [0, 1, 2])
    assert (spread[0], p[0]) == (5.0, 1.0)
    assert spread[1] == pytest.approx(np.sqrt(14 / 3))
    # two strata of the same order: 36 labellings; with the same order in both, 6, the range is 5
    _, _, p = permute([1.0, 2.0, 6.0, 1.0, 2.0, 6.0], [0, 1, 2] * 2, [0, 0, 0, 1, 1, 1])
    assert p[0] == pytest.approx(6 / 36)


def test_range_of_two_groups_has_the_p_of_the_test_of_two_labels() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.normal(size=9), [0, 0, 0, 0, 1, 1, 1, 1, 1]
    gap = scores[:4].mean() - scores[4:].mean()
    exchange = Exchange.of_two(np.array([9]), np.array([4]))
    values, observed = scores[None, :, None], np.array([[gap]])
    p = permute_labels(values, observed, exchange, np.subtract, rng=rng).item()
    _, spread, p_values = permute(scores, groups)
    assert spread[0] == pytest.approx(abs(gap))
    assert p_values == pytest.approx([p, p])


def test_differences_between_strata_do_not_count() -> None:
    noise = np.random.default_rng(2).normal(0, 0.01, 30)
    level = np.repeat(np.arange(10.0), 3)
    effect = np.tile([0.0, 0.0, 0.05], 10)
    groups, strata = [0, 1, 2] * 10, np.repeat(np.arange(10), 3).tolist()
    values = level + noise + effect
    assert permute(values, groups, strata, n_permutations=999)[2][0] == 0.001
    assert permute(values, groups, n_permutations=999)[2][0] > 0.5


def test_means_are_weighted_by_the_observations_of_a_unit() -> None:
    values = np.array([[3.0, 3.0], [0.0, 1.0], [1.0, 1.0]])  # means (3 + 0) / 4 and 1
    rng = np.random.default_rng(0)
    means, *_ = permute_groups(values, np.array([0, 0, 1]), np.zeros(3), n_groups=2, rng=rng)
    assert means.tolist() == [0.75, 1.0]


@pytest.mark.parametrize(
    ("groups", "strata", "n_groups"), [([0, 0, 1], [0, 0, 0], 3), ([0, 1], [0, 1], 2)]
)
def test_p_is_undefined_without_a_group_or_without_labels_to_exchange(
    groups: list[int], strata: list[int], n_groups: int
) -> None:
    _, spread, p = permute([1.0, 2.0, 3.0][: len(groups)], groups, strata, n_groups=n_groups)
    assert np.isnan(p[0])
    assert np.isnan(spread[0]) == (n_groups == 3)


def find_p(first: list[float], second: list[float], draws: int = 10_000, seed: int = 0) -> float:
    rng = np.random.default_rng(seed)
    a, b = (np.array(values, dtype=np.float64)[:, None] for values in (first, second))
    return permute_sets(a, b, np.subtract, n_permutations=draws, rng=rng)


def test_every_relabelling_is_counted_by_hand() -> None:
    # mean 0.172; away from it 1.128, -0.272 | -1.472, 0.688, -0.072; the first two make 0.856
    # pairs: 0.856, -0.344, 1.816, 1.056, -1.744, 0.416, -0.344, -0.784, -1.544, 0.616: 5 of 10
    assert find_p([1.3, -0.1], [-1.3, 0.86, 0.1]) == 0.5
    assert find_p([-1.3, 0.86, 0.1], [1.3, -0.1]) == 0.5


def test_the_observed_relabelling_counts_when_they_are_drawn() -> None:
    # no draw of 99 out of 184,756 is likely to separate the sets: 1 of 100
    first, second = (
        [float(value) for value in range(100, 110)],
        [float(value) for value in range(10)],
    )
    assert find_p(first, second, draws=99, seed=1) == 0.01


def test_a_statistic_of_vectors_by_hand() -> None:
    # less their mean (0.75, 1.5) the vectors are (0.25, -1.5), (2.25, 2.5), (-0.75, 0.5),
    # (-1.75, -1.5); sums of two: ±(2.5, 1), ±(0.5, 1), ±(1.5, 3), their lengths 7.25, 1.25, 11.25
    first, second = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [-1.0, 0.0]])

    def lengths(a: Any, b: Any) -> Any:
        return ((a - b) ** 2).sum(axis=-1, keepdims=True)

    for left, right in ((first, second), (second, first)):
        rng = np.random.default_rng(0)
        assert permute_sets(left, right, lengths, n_permutations=6, rng=rng) == 4 / 6


def test_equal_values_differ_in_no_division() -> None:
    assert find_p([0.1] * 3, [0.1] * 4) == 1.0
    assert find_p([0.1] * 30, [0.1] * 40, draws=99) == 1.0


def test_an_empty_set_has_no_test() -> None:
    assert math.isnan(find_p([], [1.0]))
    assert math.isnan(find_p([1.0], []))


def test_it_is_that_of_scipy() -> None:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(1)
    first, second = rng.normal(0.5, 1, 6), rng.normal(0, 1, 8)  # 3,003 relabellings

    def gap(x: Any, y: Any, axis: int = -1) -> Any:
        return np.abs(x.mean(axis=axis) - y.mean(axis=axis))

    theirs: Any = permutation_test(
        (first, second), gap, vectorized=True, alternative="greater", n_resamples=9999
    )
    ours = find_p(first.tolist(), second.tolist())
    assert ours == pytest.approx(theirs.pvalue, abs=1e-12)
    sampled = find_p(first.tolist(), second.tolist(), draws=3000)
    assert sampled == pytest.approx(ours, abs=0.03)


def test_with_nothing_there_5_in_100_are_significant() -> None:
    rng = np.random.default_rng(8)
    worlds = rng.normal(size=(400, 2, 15)).tolist()
    p_values = [find_p(a, b, draws=199, seed=seed) for seed, (a, b) in enumerate(worlds)]
    # 20 of 400 are expected, with a standard deviation of 4.4
    assert 7 <= np.count_nonzero(np.array(p_values) <= 0.05) <= 33
