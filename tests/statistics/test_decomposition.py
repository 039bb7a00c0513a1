"""Parts of a gap, Shapley values, and honest groups."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from recbias.statistics.decomposition import (
    METHODS,
    Method,
    add_curves,
    compute_shapley,
    decompose_gap,
    find_honest_groups,
)


def make_world(rng: np.random.Generator, n: int = 400) -> tuple[np.ndarray, ...]:
    """Return values, group A, and two properties: the gap is 2 x 0.5 by the first, and 0.3."""
    in_a = rng.random(n) < 0.4
    first = rng.normal(size=n) + 0.5 * in_a
    second = rng.normal(size=n)
    return 2 * first + 0.3 * in_a + 0.5 * rng.normal(size=n), in_a, first, second


def test_parts_by_regression_are_those_of_oaxaca_blinder_and_reimers() -> None:
    values = np.array([3.0, 5.0, 7.0, 1.0, 2.0, 3.0, 4.0])
    in_a = np.array([True, True, True, False, False, False, False])
    column = np.array([[2.0], [3.0], [4.0], [0.0], [1.0], [2.0], [3.0]])  # slopes: 2 and 1
    found = decompose_gap(values, in_a, [column], "regression")
    assert found.parts == pytest.approx([(3.0 - 1.5) * 1.5, 2.5 - 2.25])


def test_parts_by_regression_are_those_of_statsmodels() -> None:
    # pip install statsmodels==0.14.4, with x and y as below: OaxacaBlinder(y, DataFrame({"a": a,
    # "x": x, "z": z}), "a", hasconst=False).two_fold(two_fold_type="reimers")
    t = np.arange(60)
    in_a = t % 3 == 0
    x = np.column_stack([np.sin(t) + 0.5 * in_a, np.cos(2.0 * t)])
    y = 1.0 + x @ [2.0, -1.0] + 0.3 * in_a + 0.1 * np.sin(7.0 * t)
    found = decompose_gap(y, in_a, [x[:, :1], x[:, 1:]], "regression")
    assert found.parts[:2].sum() == pytest.approx(1.0859458445493593, abs=1e-10)
    assert found.parts[2] == pytest.approx(0.3045831733642316, abs=1e-10)


def test_parts_by_reweighting_of_a_binary_property_are_those_of_kitagawa() -> None:
    values = np.array([4.0, 4.0, 4.0, 2.0, 3.0, 1.0, 1.0, 1.0])
    in_a = np.array([True] * 4 + [False] * 4)
    column = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])[:, None]
    found = decompose_gap(values, in_a, [column], "reweighting")
    rates = (0.75 - 0.25) * ((4.0 - 2.0) + (3.0 - 1.0)) / 2
    assert found.parts == pytest.approx([rates, 3.5 - 1.5 - rates])


def test_reweighted_groups_have_the_means_of_each_other() -> None:
    # the weights ~ exp(l x) that move the mean of B to that of A, and the reverse, by bisection
    rng = np.random.default_rng(2)
    x = np.array([0.0, 1.0, 2.0] * 20 + [0.0, 1.0, 2.0, 2.0] * 15)
    in_a = np.arange(120) >= 60
    values = x**2 + 0.1 * rng.normal(size=120)
    found = decompose_gap(values, in_a, [x[:, None]], "reweighting")

    def move(rows: np.ndarray, target: float) -> float:
        low, high = -5.0, 5.0
        for _ in range(80):
            middle = (low + high) / 2
            weights = np.exp(middle * x[rows])
            low, high = (
                (middle, high) if weights @ x[rows] < target * weights.sum() else (low, middle)
            )
        return float(weights @ values[rows] / weights.sum() - values[rows].mean())

    expected = (move(~in_a, x[in_a].mean()) - move(in_a, x[~in_a].mean())) / 2
    assert found.parts[0] == pytest.approx(expected, abs=1e-9)


def test_groups_that_cannot_be_made_alike_have_no_parts_by_reweighting() -> None:
    values, in_a = np.arange(40.0), np.arange(40) >= 20
    found = decompose_gap(values, in_a, [values[:, None]], "reweighting")
    assert np.isnan([*found.parts, *found.ci_low]).all()
    assert found.gap == 20.0
    found = decompose_gap(values, in_a, [np.tile(values[:, None], 30)], "regression")
    assert np.isnan(found.parts).all()


def test_numbers_get_curves_and_labels_do_not() -> None:
    rng = np.random.default_rng(3)
    number, label, in_a = (
        rng.normal(size=(200, 1)),
        rng.random((200, 1)) < 0.5,
        np.arange(200) < 90,
    )
    curved, same = add_curves([number, label.astype(np.float64)], in_a)
    assert curved.shape == (200, 3)
    assert same.shape == (200, 1)
    above = number[:, 0] > np.quantile(number, 0.95)
    slopes = np.diff(curved[above][np.argsort(number[above, 0])], axis=0)
    assert np.ptp(slopes[:, 1:] / slopes[:, :1], axis=0) == pytest.approx([0.0, 0.0], abs=1e-9)
    few = add_curves([number[:50]], in_a[:50] & (np.arange(50) < 20))
    assert few[0].shape == (50, 1)


def test_a_number_that_hardly_overlaps_acts_by_a_line() -> None:
    """A curve, fitted within 12 to 24, reaches -54 at 60 for a gap of 0.3."""
    rng = np.random.default_rng(4)
    in_a = np.arange(400) < 200
    number = np.where(in_a, rng.integers(12, 25, 400), rng.integers(25, 61, 400)).astype(float)
    (column,) = add_curves([number[:, None]], in_a)
    assert column.shape == (400, 1)
    values = 0.5 - 0.01 * number + rng.normal(0, 0.05, 400)
    found = decompose_gap(values, in_a, [column], "regression")
    assert found.parts == pytest.approx([found.gap, 0.0], abs=0.05)
    assert found.parts.sum() == pytest.approx(found.gap, abs=1e-9)


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
def test_parts_add_up_to_the_gap_and_find_its_cause(method: Method) -> None:
    values, in_a, first, second = make_world(np.random.default_rng(5))
    found = decompose_gap(values, in_a, [first[:, None], second[:, None]], method)
    assert found.parts.sum() == pytest.approx(found.gap, abs=1e-12)
    truth = [2 * 0.5, 0.0, 0.3]
    assert (found.ci_low <= truth).all()
    assert (truth <= found.ci_high).all()
    assert found.ci_low[0] > 0 > found.ci_low[1]


@pytest.mark.parametrize("method", METHODS)
def test_errors_of_parts_are_those_of_the_jackknife(method: Method) -> None:
    values, in_a, first, second = make_world(np.random.default_rng(9), n=200)
    properties = [np.column_stack([first, first**2]), second[:, None]]
    found = decompose_gap(values, in_a, properties, method)
    parts = np.empty((200, 3))
    for left_out in range(200):
        rows = np.arange(200) != left_out
        own = [columns[rows] for columns in properties]
        parts[left_out] = decompose_gap(values[rows], in_a[rows], own, method).parts
    variance = np.zeros(3)
    for group in (in_a, ~in_a):
        of_group = parts[group]
        variance += (len(of_group) - 1) ** 2 / len(of_group) * of_group.var(axis=0, ddof=1)
    errors = (found.ci_high - found.parts) / 1.959964
    assert errors == pytest.approx(np.sqrt(variance), rel=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_parts_cover(method: Method) -> None:
    rng, n_worlds = np.random.default_rng(6), 200
    covered = np.zeros(3)
    for _ in range(n_worlds):
        values, in_a, first, second = make_world(rng)
        found = decompose_gap(values, in_a, [first[:, None], second[:, None]], method)
        truth = np.array([1.0, 0.0, 0.3])
        covered += (found.ci_low <= truth) & (truth <= found.ci_high)
    assert (covered / n_worlds >= 0.91).all()  # 99% of binomial draws
    assert (covered[[0, 2]] / n_worlds <= 0.985).all()  # cautious where a property has no part


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
