from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.spread import compare_trend

HUNDAL = ([40, 35, 38, 43, 44, 41], [38, 40, 47, 44, 40, 42], [48, 40, 45, 43, 46, 44])
"""Pieces processed by workers with no, rough and accurate information about their output."""


def code(sizes: list[int]) -> AnyArray:
    return np.repeat(np.arange(len(sizes)), sizes)


def test_published_numbers() -> None:
    """Hollander, Wolfe and Chicken, 2014, example 6.2; R's DescTools has the same one-sided p."""
    test = compare_trend(("no", "rough", "accurate"), np.concatenate(HUNDAL) * 1.0, code([6] * 3))
    j = (test.effect_size + 1.0) / 2.0 * 108  # of 3 x 36 pairs
    assert j == pytest.approx(79.0)
    assert stats.norm.sf(test.statistic) == pytest.approx(0.0207, abs=5e-5)
    assert test.p == pytest.approx(2 * stats.norm.sf(test.statistic))
    assert (test.a, test.b, test.n) == ("accurate", "no", 18)
    assert test.difference == pytest.approx(np.mean(HUNDAL[2]) - np.mean(HUNDAL[0]))


def count_rise(values: FloatArray, codes: AnyArray) -> float:
    signs = np.sign(values[None, :] - values[:, None])
    return float(signs[codes[:, None] < codes[None, :]].sum())


@pytest.mark.parametrize("sizes", [[2, 3, 2], [3, 3], [1, 2, 3], [2, 2, 2, 1]])
@pytest.mark.parametrize("n_values", [2, 3, 100])
def test_small_groups_have_the_p_of_all_permutations(
    sizes: list[int], n_values: int, rng: np.random.Generator
) -> None:
    codes = code(sizes)
    values = rng.integers(0, n_values, codes.size).astype(float)
    values[0], values[-1] = 0.0, 1.0
    test = compare_trend(tuple("abcd"[: len(sizes)]), values, codes)
    rise = abs(count_rise(values, codes))
    drawn = [abs(count_rise(np.array(order), codes)) >= rise for order in permutations(values)]
    assert test.p == pytest.approx(np.mean(drawn))
    assert test.effect_size == pytest.approx(stats.somersd(codes, values).statistic)


def test_two_large_groups_have_the_p_of_mann_and_whitney(rng: np.random.Generator) -> None:
    a, b = rng.integers(0, 5, 30) * 1.0, rng.integers(0, 6, 50) * 1.0
    test = compare_trend(("a", "b"), np.concatenate([a, b]), code([30, 50]))
    expected = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False)
    assert test.p == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("values", [[1.0] * 6, [math.nan] * 6, [1.0, 2.0, *[math.nan] * 4]])
def test_without_groups_or_a_spread_it_is_undefined(values: list[float]) -> None:
    test = compare_trend(("a", "b", "c"), np.array(values), code([2] * 3))
    assert math.isnan(test.p)
    assert math.isnan(test.effect_size)


def test_undefined_values_and_empty_groups_do_not_count() -> None:
    values = np.array([1.0, 2.0, math.nan, 3.0, 4.0])
    test = compare_trend(("a", "b", "c"), values, np.array([0, 0, 1, 2, 2]))
    assert (test.a, test.b, test.n, test.effect_size) == ("c", "a", 4, 1.0)
    assert test.p == pytest.approx(2 / 6)


@pytest.mark.parametrize(("step", "least", "most"), [(0.0, 0.025, 0.08), (0.8, 0.8, 1.0)])
def test_fair_worlds_keep_the_level_and_a_planted_trend_is_found(
    step: float, least: float, most: float, rng: np.random.Generator
) -> None:
    codes = code([8, 15, 10, 7])
    worlds = [step * codes + rng.exponential(1.0, codes.size) for _ in range(300)]
    found = np.mean([compare_trend(tuple("abcd"), world, codes).p <= 0.05 for world in worlds])
    assert least <= found <= most
