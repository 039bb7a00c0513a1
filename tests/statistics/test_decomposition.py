"""Parts of a gap, Shapley values, and honest groups."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from recbias.statistics.decomposition import (
    METHODS,
    compute_shapley,
    decompose_gap,
    explain_by_regression,
    explain_by_reweighting,
    find_honest_groups,
)


def make_world(rng: np.random.Generator, n: int = 400) -> tuple[np.ndarray, ...]:
    """Return values, group A, and two properties: the gap is 2 x 0.5 by the first, and 0.3."""
    in_a = rng.random(n) < 0.4
    first = rng.normal(size=n) + 0.5 * in_a
    second = rng.normal(size=n)
    return 2 * first + 0.3 * in_a + 0.5 * rng.normal(size=n), in_a, first, second


def test_the_part_by_regression_is_that_of_oaxaca_and_blinder() -> None:
    values = np.array([3.0, 5.0, 7.0, 1.0, 2.0, 3.0, 4.0])
    in_a = np.array([True, True, True, False, False, False, False])
    column = np.array([[2.0], [3.0], [4.0], [0.0], [1.0], [2.0], [3.0]])  # slope of B: 1
    part = explain_by_regression(values, in_a, column, np.ones(7))
    assert part == pytest.approx((3.0 - 1.5) * 1.0)


def test_the_part_by_regression_is_that_of_statsmodels() -> None:
    # pip install statsmodels==0.15.0, with x and y as below:
    # OaxacaBlinder(y, DataFrame({"a": a, "x": x, "z": z}), "a", hasconst=False).three_fold()
    t = np.arange(60)
    in_a = t % 3 == 0
    x = np.column_stack([np.sin(t) + 0.5 * in_a, np.cos(2.0 * t)])
    y = 1.0 + x @ [2.0, -1.0] + 0.3 * in_a + 0.1 * np.sin(7.0 * t)
    part = explain_by_regression(y, in_a, x, np.ones(60))
    assert part == pytest.approx(1.0855301540593774, abs=1e-10)


def test_the_part_by_reweighting_of_a_binary_property_is_that_of_kitagawa() -> None:
    values = np.array([4.0, 4.0, 4.0, 2.0, 3.0, 1.0, 1.0, 1.0])
    in_a = np.array([True] * 4 + [False] * 4)
    column = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])[:, None]
    part = explain_by_reweighting(values, in_a, column, np.ones(8))
    assert part == pytest.approx((0.75 - 0.25) * (3.0 - 1.0), abs=1e-3)


def test_shapley_values_are_those_of_all_orders() -> None:
    rng = np.random.default_rng(1)
    worth: dict[tuple[int, ...], float] = {}

    def value(chosen: tuple[int, ...]) -> float:
        return worth.setdefault(tuple(sorted(chosen)), float(rng.normal()))

    shares = compute_shapley(4, value)
    expected = np.zeros(4)
    for order in permutations(range(4)):
        for at, player in enumerate(order):
            expected[player] += (value(order[: at + 1]) - value(order[:at])) / 24
    assert shares == pytest.approx(expected)


@pytest.mark.parametrize("method", METHODS)
def test_parts_add_up_to_the_gap_and_find_its_cause(method: str) -> None:
    rng = np.random.default_rng(5)
    values, in_a, first, second = make_world(rng)
    found = decompose_gap(values, in_a, [first[:, None], second[:, None]], method, rng, 100)
    assert found.parts.sum() == pytest.approx(found.gap, abs=1e-12)
    truth = [2 * 0.5, 0.0, 0.3]
    assert (found.ci_low <= truth).all()
    assert (truth <= found.ci_high).all()
    assert found.ci_low[0] > 0 > found.ci_low[1]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_parts_cover(method: str) -> None:
    rng, n_worlds = np.random.default_rng(6), 200
    covered = np.zeros(3)
    for _ in range(n_worlds):
        values, in_a, first, second = make_world(rng)
        found = decompose_gap(values, in_a, [first[:, None], second[:, None]], method, rng, 100)
        truth = np.array([1.0, 0.0, 0.3])
        covered += (found.ci_low <= truth) & (truth <= found.ci_high)
    assert (covered / n_worlds >= 0.9).all()


def test_honest_groups_are_the_worst_off_ones() -> None:
    rng = np.random.default_rng(7)
    columns = rng.normal(size=(600, 3))
    values = rng.normal(size=600) - 2.0 * (columns[:, 1] > 0.5)
    worst = find_honest_groups(values, columns, rng)[0]
    assert worst.p_adjusted < 1e-4
    assert any(column == 1 and sign == ">" for column, sign, _ in worst.rule)
    assert worst.difference == pytest.approx(-2.0, abs=0.5)


def test_honest_groups_of_noise_are_not_found() -> None:
    rng, n_false = np.random.default_rng(8), 0
    for _ in range(100):
        leaves = find_honest_groups(rng.normal(size=200), rng.normal(size=(200, 4)), rng)
        n_false += any(leaf.p_adjusted < 0.05 for leaf in leaves)
    assert n_false <= 12  # 5 expected at most; 99.9% of binomial draws
