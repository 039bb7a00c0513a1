from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test

from recbias.core.dataset import FloatArray
from recbias.statistics.permutation import LabelExchange, permute_labels


def permute_gap(a: list[float], b: list[float], *, draws: int = 10_000, seed: int = 0) -> float:
    values = np.array([*a, *b], dtype=np.float64)[None, :, None]
    observed = np.array([[[np.mean(a) - np.mean(b)]]])
    exchange = LabelExchange(np.array([len(a) + len(b)]), np.array([len(a)]))
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
    exchange = LabelExchange(np.array([2, 2]), np.array([1, 1]))
    assert exchange.n_labellings == 4
    rng = np.random.default_rng(0)
    observed = np.array([[[4.0 - 2.5]]])
    assert permute_labels(values, observed, exchange, np.subtract, rng=rng).item() == 0.5


@pytest.mark.parametrize(
    ("sizes", "firsts"), [([4], [2]), ([3, 2], [1, 1]), ([3, 1, 2], [2, 1, 0])]
)
def test_every_labelling_comes_once(sizes: list[int], firsts: list[int]) -> None:
    exchange = LabelExchange(np.array(sizes), np.array(firsts))
    labellings = np.concatenate(list(exchange.enumerate_labellings(2)))
    assert len(labellings) == exchange.n_labellings == len(np.unique(labellings, axis=0))
    ends = np.cumsum(sizes)
    for end, size, first in zip(ends, sizes, firsts, strict=True):
        assert (labellings[:, end - size : end].sum(axis=1) == first).all()


@pytest.mark.parametrize("first", [1, 2])
def test_drawn_labellings_are_uniform(first: int, rng: np.random.Generator) -> None:
    exchange = LabelExchange(np.array([4]), np.array([first]))
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
    exchange = LabelExchange(np.array([600]), np.array([first]))
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
    exchange = LabelExchange(np.array([3]), np.array([1]))
    observed = compute_ratio(values[:, 2], values[:, :2].mean(axis=1))[:, None]
    rng = np.random.default_rng(0)
    p = permute_labels(values, observed, exchange, compute_ratio, rng=rng)
    assert np.isnan(p[0, 0, 1])
    # (4 - 1.5)/6 = 0.417; (1 - 3)/3 = -0.667; (2 - 2.5)/5 = -0.1: 2 of 3
    assert p[0, 0, 0] == pytest.approx(2 / 3)


def test_a_test_of_nothing_rejects_at_its_level(rng: np.random.Generator) -> None:
    p_values = [
        permute_gap(row[:8].tolist(), row[8:].tolist(), draws=199)
        for row in rng.exponential(size=(400, 18))
    ]
    # 5% of 400 is 20, standard error 4.4
    assert 6 <= sum(p <= 0.05 for p in p_values) <= 36
